"""Sums over the cells (label, group) of a client's rows: what the server may ask for, and what it steers by."""

import torch
from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Losses
from equfl.core.samples import Samples

CellTable = Float[Tensor, "labels groups"]
"""One number per cell."""


def cell_sums(values: Float[Tensor, " samples"], samples: Samples) -> CellTable:
    """The values added up in each cell, in double precision."""
    cells = samples.labels * samples.group_count + samples.groups
    sums = torch.bincount(cells, weights=values.double(), minlength=samples.classes * samples.group_count)
    return sums.double().view(samples.classes, samples.group_count)


def cell_rows(samples: Samples) -> CellTable:
    """How many rows each cell has."""
    return cell_sums(torch.ones_like(samples.labels, dtype=torch.float64), samples)


def of_row(table: CellTable, samples: Samples) -> Losses:
    """The number of each row's own cell."""
    return table[samples.labels, samples.groups].to(samples.inputs)


def times_importance(weights: Losses, samples: Samples) -> Losses:
    """Weights on top of those that the rows have already."""
    return weights if samples.importance is None else weights * samples.importance
