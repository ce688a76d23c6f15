"""From the columns of a table to inputs, and to the schema's account of them; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import torch
from jaxtyping import Float, Int
from torch import Tensor

from equfl.core.arrays import Inputs
from equfl.core.errors import ConfigError
from equfl.core.schema import Column

Scaling = Literal["schema", "paper"]
"""``schema``: codes stay 0 and 1, numeric columns are standardised. ``paper``: every input is standardised."""


@dataclass(frozen=True)
class Feature:
    """A column of the table and how it is read."""

    name: str
    codes: tuple[int, ...] | tuple[str, ...] = ()
    """The values of a categorical column, in the order of the inputs; empty for a numeric column."""
    meanings: tuple[str, ...] = ()
    """What each code means, for people; the codes themselves where nothing is given."""
    missing: str = ""
    """Name of the code, after all others, that stands for a missing value; empty: a missing value sets no input."""

    @property
    def code_names(self) -> tuple[str, ...]:
        """The codes as the schema has them."""
        return (*map(str, self.codes), self.missing) if self.missing else tuple(map(str, self.codes))

    def meaning(self, position: int) -> str:
        """What the code at that position means."""
        return self.meanings[position] if position < len(self.meanings) else self.code_names[position]


@dataclass(frozen=True)
class Encoded:
    """One client's rows as inputs, and the values that stand for an absent and a present code."""

    inputs: Inputs
    off: Float[Tensor, " inputs"]
    on: Float[Tensor, " inputs"]


def encode(table: pa.Table, features: Sequence[Feature], scaling: Scaling = "schema") -> Encoded:
    """The rows of one client as inputs, standardised over these rows.

    A missing number is 0 before standardising, as in the source of the paper's data protocol; an input that is the
    same in all rows becomes 0 rather than a division by zero.
    """
    if scaling not in ("schema", "paper"):
        raise ConfigError(
            f"data.scaling = {scaling!r}", wanted="'schema' or 'paper'", remedy="'schema' keeps the codes readable"
        )
    starts = _starts(features)
    inputs = torch.zeros(table.num_rows, starts[-1])
    off, on = torch.zeros(starts[-1]), torch.ones(starts[-1])
    for feature, start, stop in zip(features, starts, starts[1:], strict=False):
        if not feature.codes:
            inputs[:, start] = _standardised(numbers(table[feature.name]))[0]
            continue
        codes = positions(table[feature.name], feature)
        known = torch.nonzero(codes >= 0).squeeze(1)
        inputs[known, start + codes[known]] = 1
        if scaling == "paper":
            block, mean, deviation = _standardised(inputs[:, start:stop].double())
            inputs[:, start:stop], off[start:stop], on[start:stop] = block, -mean / deviation, (1 - mean) / deviation
    return Encoded(inputs, off, on)


def columns(features: Sequence[Feature], encoded: Sequence[Encoded]) -> tuple[Column, ...]:
    """The schema's columns; where codes were standardised, on and off are the means over the clients."""
    off = torch.stack([client.off for client in encoded]).mean(dim=0).tolist()
    on = torch.stack([client.on for client in encoded]).mean(dim=0).tolist()
    starts = _starts(features)
    return tuple(
        Column(feature.name, start, feature.code_names, tuple(off[start:stop]), tuple(on[start:stop]))
        if feature.codes
        else Column(feature.name, start)
        for feature, start, stop in zip(features, starts, starts[1:], strict=False)
    )


def positions(column: pa.ChunkedArray, feature: Feature) -> Int[Tensor, " rows"]:
    """Of each row, which of the feature's codes it has; -1 for none of them."""
    values = pa.array(feature.codes)
    # A column without any value has no type of its own, and a code that is not in the type's range is in no row.
    found = pc.index_in(column.cast(values.type), value_set=values, skip_nulls=True)
    if feature.missing:
        found = pc.if_else(pc.is_null(column), pa.scalar(len(feature.codes), pa.int32()), found)
    return torch.from_numpy(pc.fill_null(found, -1).to_numpy().copy()).long()


def numbers(column: pa.ChunkedArray) -> Float[Tensor, " rows"]:
    """A numeric column; missing values are 0."""
    values = torch.from_numpy(pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy().copy())
    return values.nan_to_num(nan=0.0)


def _starts(features: Sequence[Feature]) -> list[int]:
    return list(accumulate((max(1, len(feature.code_names)) for feature in features), initial=0))


def _standardised(values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    mean, deviation = values.mean(dim=0), values.std(dim=0, correction=0)
    # The mean of the same number many times may be off by a rounding, and its deviation then not 0.
    same = values.amax(dim=0) == values.amin(dim=0)
    mean, deviation = values[0].where(same, mean), deviation.masked_fill(same | (deviation == 0), 1)
    return ((values - mean) / deviation).float(), mean.float(), deviation.float()
