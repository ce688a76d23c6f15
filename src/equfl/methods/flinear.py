"""FLinear: fair linear representations (He, Burghardt & Lerman, 2020) at every client."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Inputs
from equfl.core.disclosure import Disclosure
from equfl.core.errors import ConfigError
from equfl.core.samples import Samples
from equfl.fairness.counts import rate
from equfl.methods.base import Method, Tensors


@dataclass(frozen=True)
class FLinear(Method, name="flinear"):
    """Take out of every input what is linear in the group, ``x' = (x - m) - (1 - remain) (m_a - m)``; then FedAvg.

    Symbols: m the mean of the training rows, m_a the mean of those of group a. This is the residual of a regression on
    the group's dummy columns, which the paper finds by making columns orthogonal; the inputs that code the group become
    constant with it. Labels stay as they are.

    The map is fitted on the client's training rows and applied to its test rows, so a prediction needs the group.
    A group that training has not seen is only centred; a client with a single group keeps its rows as they are.

    Differs from the source, whose code fits the test rows by themselves. Where groups are intersections of columns,
    every intersection has its own mean, where the paper would add up one effect per column.
    """

    uses_group_at_prediction: ClassVar[bool] = True

    remain: float = 0.0
    """Share of what the group explains that stays: 0 takes all, 1 only centres. The paper's λ."""
    scope: Literal["local", "global"] = "local"
    """Whose means: each client's own, or those of all clients' rows together."""
    map_test_rows: bool = True
    """Off where the group follows from the label (digits by parity): there the map would tell the model the answer."""

    def __post_init__(self) -> None:
        if not 0 <= self.remain <= 1:
            raise ConfigError(
                f"method.remain = {self.remain}", wanted="a share between 0 and 1", remedy="The paper uses 0"
            )

    def leaves(self) -> tuple[Disclosure, ...]:
        if self.scope == "local":
            return super().leaves()
        return (
            *super().leaves(),
            Disclosure("group_inputs", "inputs of the training rows, added up by group", ("groups", "inputs"), "once"),
            Disclosure("group_rows", "training rows by group", ("groups",), "once"),
        )

    def survey(self, samples: Samples) -> Tensors:
        return _sums(samples) if self.scope == "global" else {}

    def prepare(self, samples: Samples, totals: Tensors) -> Samples:
        return replace(samples, inputs=self._mapped(samples, samples, totals))

    def test_inputs(self, samples: Samples, train: Samples, totals: Tensors) -> Inputs:
        return self._mapped(samples, train, totals) if self.map_test_rows else samples.inputs

    def _mapped(self, samples: Samples, train: Samples, totals: Tensors) -> Inputs:
        sums = totals if self.scope == "global" else _sums(train)
        shift = _shift(sums["group_inputs"], sums["group_rows"], self.remain)
        return samples.inputs - shift[samples.groups].to(samples.inputs).view_as(samples.inputs)


def _sums(samples: Samples) -> dict[str, Tensor]:
    inputs = samples.inputs.flatten(1).double()
    groups = samples.groups
    sums = inputs.new_zeros(samples.group_count, inputs.shape[1]).index_add(0, groups, inputs)
    return {"group_inputs": sums, "group_rows": torch.bincount(groups, minlength=samples.group_count).double()}


def _shift(
    sums: Float[Tensor, "groups inputs"], rows: Float[Tensor, " groups"], remain: float
) -> Float[Tensor, "groups inputs"]:
    """What is taken from the inputs of each group."""
    if (rows > 0).sum() < 2:
        return torch.zeros_like(sums)
    overall = sums.sum(dim=0) / rows.sum()
    apart = (rate(sums, rows.unsqueeze(1).expand_as(sums)) - overall).where(rows.unsqueeze(1) > 0, 0.0)
    return overall + (1 - remain) * apart
