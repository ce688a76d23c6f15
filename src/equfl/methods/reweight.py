"""Reweighing (Kamiran & Calders, 2012): label and group look independent to the loss."""

from dataclasses import dataclass, replace
from typing import Literal

import torch

from equfl.core.disclosure import Disclosure
from equfl.core.errors import ConfigError
from equfl.core.samples import Samples
from equfl.fairness.counts import rate
from equfl.methods._cells import CellTable, cell_rows, of_row, times_importance
from equfl.methods.base import Method, Tensors


@dataclass(frozen=True)
class Reweight(Method, name="reweight"):
    """Every row weighs ``W(y, a) = n_y n_a / (n n_{y,a})``; then FedAvg, whatever the target.

    A client divides a batch's weighted loss by its number of rows, not by their weight. A client with one group, or one
    label, is left with weights of one. Where the group follows from the label, W is ``n_a / n``: nothing to balance,
    and more weight for the larger group.

    Differs from the source: weights are cut at ``max_weight`` (a cell with one row would drown the others), and where
    one was cut, or a cell is empty, all are scaled to a mean of one.
    """

    scope: Literal["local", "global"] = "local"
    """Whose counts: each client's own, or the sums over all clients."""
    max_weight: float = 10.0
    """Where weights are cut, before they are scaled."""

    def __post_init__(self) -> None:
        if self.max_weight < 1:
            raise ConfigError(f"method.max_weight = {self.max_weight}", wanted="1 or more", remedy="The default is 10")

    def leaves(self) -> tuple[Disclosure, ...]:
        cells = Disclosure("cells", "training rows by label and group", ("labels", "groups"), "once")
        return (*super().leaves(), cells) if self.scope == "global" else super().leaves()

    def survey(self, samples: Samples) -> Tensors:
        return {"cells": cell_rows(samples)} if self.scope == "global" else {}

    def prepare(self, samples: Samples, totals: Tensors) -> Samples:
        rows = totals["cells"] if self.scope == "global" else cell_rows(samples)
        weights = of_row(independence_weights(rows, self.max_weight), samples)
        return replace(samples, importance=times_importance(weights, samples))


def independence_weights(rows: CellTable, max_weight: float = float("inf")) -> CellTable:
    """``W(y, a)``; 0 in cells without rows. Weighted, the rows are as many as before."""
    labels, groups = rows.sum(dim=1, keepdim=True), rows.sum(dim=0, keepdim=True)
    weights = rate(labels * groups, rows.sum() * rows).clamp(max=max_weight)
    weights = weights.where(rows > 0, 0.0)
    return weights * torch.as_tensor(rate(rows.sum(), (weights * rows).sum()))
