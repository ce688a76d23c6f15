"""The columns of a user's table that have a role: the label, and the sensitive ones; pure."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from equfl.core.errors import DataError
from equfl.data._column_types import as_numbers, as_text, is_text, is_whole, shown
from equfl.data._table_features import FEW_VALUES
from equfl.data.encoding import Feature

FAVOURABLE = {("0", "1"), ("-1", "1"), ("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t")}
"""Pairs of values of which the second is the favourable one without asking."""


def read_label(name: str, column: pa.ChunkedArray, *, positive: str) -> tuple[pa.ChunkedArray, tuple[str, str]]:
    """The label as 0 and 1 (the favourable value), and what each means."""
    text = as_text(column)
    values = sorted(text.unique().to_pylist())
    if len(values) != 2:
        count = f"{len(values):,} different values" if len(values) > 1 else "one value only"
        raise DataError(
            f"the label {name!r} has {count}: {shown(values)}",
            wanted="exactly two",
            remedy="Make a column of two values of it (above a threshold or not, say)"
            if len(values) > 2
            else "Choose another label, or keep the rows with the other value",
        )
    if positive and positive not in values:
        raise DataError(
            f"the label {name!r} is never {positive!r}",
            wanted=f"positive as one of {shown(values)}",
            remedy="Write it exactly so",
        )
    order = {value.lower(): value for value in values}
    if not positive:
        inferred = [order[second] for first, second in FAVOURABLE if {first, second} == order.keys()]
        if not inferred:
            raise DataError(
                f"the label {name!r} is {values[0]!r} or {values[1]!r}",
                wanted="to know which of them is the favourable outcome",
                remedy=f"Set positive to it, as in --set data.positive='\"{values[1]}\"' or positive={values[1]!r}",
            )
        positive = inferred[0]
    (negative,) = (value for value in values if value != positive)
    return pc.equal(text, positive).cast(pa.int64()), (negative, positive)


def read_sensitive(
    name: str, column: pa.ChunkedArray, *, bins: int, cuts: tuple[float, ...], codes: bool, most_codes: int
) -> tuple[Feature, pa.ChunkedArray]:
    """A sensitive column as codes. Numbers with more than ten different values are divided into ranges.

    The ranges go by another name than the column, because the column itself stays what it is: a number.
    """
    if is_ranged(column, codes=codes):
        return _ranges(name, column, bins, cuts)
    text = as_text(column)
    values = sorted(text.unique().to_pylist(), key=None if not is_whole(column) else int)
    if len(values) > most_codes:
        raise DataError(
            f"the sensitive column {name!r} has {len(values):,} different values: {shown(values)}",
            wanted=f"at most {most_codes} groups",
            remedy="Put values together, or choose another column",
        )
    return Feature(name, tuple(values)), text


def is_ranged(column: pa.ChunkedArray, *, codes: bool) -> bool:
    """Whether a sensitive column is divided into ranges: it is a number, and not one that takes few values."""
    return not codes and not is_text(column) and not (is_whole(column) and len(column.unique()) <= FEW_VALUES)


def _ranges(name: str, column: pa.ChunkedArray, bins: int, cuts: tuple[float, ...]) -> tuple[Feature, pa.ChunkedArray]:
    if pa.types.is_temporal(column.type):
        raise DataError(
            f"the sensitive column {name!r} holds {column.type}",
            wanted="text or numbers",
            remedy="Make an age or a year of it",
        )
    values = as_numbers(name, column).to_numpy()
    if not cuts:
        ordered = np.sort(values)
        quantiles = {float(ordered[len(ordered) * part // bins]) for part in range(1, bins)}
        cuts = tuple(sorted(quantiles - {float(ordered[0])}))
    names = _range_names(cuts, whole=is_whole(column))
    places = np.searchsorted(np.array(cuts), values, side="right")
    present = tuple(names[place] for place in np.unique(places))
    return Feature(f"{name} (ranges)", present), pa.chunked_array([pa.array(names).take(pa.array(places))])


def _range_names(cuts: tuple[float, ...], *, whole: bool) -> list[str]:
    if not cuts:
        return ["any"]
    inner = [
        (f"{low:g}" if high - low == 1 else f"{low:g} to {high - 1:g}") if whole else f"{low:g} to below {high:g}"
        for low, high in pairwise(cuts)
    ]
    return [f"below {cuts[0]:g}", *inner, f"{cuts[-1]:g} or more"]
