"""What the clients' counts tell the server: how the real rates differ from those among its own rows.

Every client counts, for the model it has just received, its rows by (predicted label, true label, group). Only the sum
over clients is used.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from equfl.calibration.problem import Rates, accuracy_of
from equfl.core.arrays import Counts


def credible(counts: Counts, rows: Sequence[float]) -> Bool[Tensor, " clients"]:
    """Which reports can be true: finite, nowhere negative, and of no more rows than the client trained on."""
    cells = counts.flatten(1)
    finite = cells.isfinite().all(dim=1)
    return finite & (cells >= 0).all(dim=1) & (cells.nan_to_num().sum(dim=1) <= torch.tensor(rows).to(cells) + 0.5)


def measured_rates(tables: Counts) -> Rates:
    """Of each (label, group) cell, the share that the clients' rows are predicted positive."""
    rows = tables.sum(dim=1)
    return tables[:, 1] / rows.where(rows > 0, 1.0)


def integrated(
    known: Rates | None, measured: Rates, synthetic: Rates, *, gain: float, leak: float
) -> Float[Tensor, "margins labels groups"]:
    """What is to be added to the synthetic rates to get the real ones, learned further by one round.

    ``offset <- (1 - leak) * offset + gain * (measured - synthetic - offset)``, starting at the first difference. The
    sum is then cut so that the rates it leads to stay between 0 and 1: an integrator that ran further would have to
    run back all the way before it had an effect again.
    """
    fresh = measured - synthetic
    offset = fresh if known is None else (1 - leak) * known + gain * (fresh - known)
    return (synthetic + offset).clamp(0, 1) - synthetic


def certain_loss(before: Counts, expected: Counts) -> float:
    """How much accuracy is lost from one set of tables to the other, and two standard errors more.

    Rows whose prediction has not changed say nothing about the loss, so with a share c of N rows changed, at the least
    those by which cells differ, the standard error is ``sqrt(c / N)``.
    """
    rows = before[0].sum().clamp(min=1)
    # A row that changes leaves one cell and enters another, with several classes in two of the tables.
    moved = (expected / expected[0].sum().clamp(min=1) - before / rows).abs().sum() / (2 * min(2, len(before)))
    return (accuracy_of(before) - accuracy_of(expected) + 2 * (moved / rows).sqrt()).item()
