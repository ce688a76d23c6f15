"""FedFB (Zeng, Chen & Lee, 2021): FairBatch for federations. The server weighs the cells until the groups are alike."""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from equfl.core.arrays import Losses, Vector
from equfl.core.disclosure import Disclosure
from equfl.core.errors import ConfigError
from equfl.core.losses import cross_entropy
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.core.samples import Samples
from equfl.core.vector import Buffers, Network
from equfl.fairness.base import Notion
from equfl.fairness.calibration import Calibration
from equfl.fairness.counts import demand_two_labels, rate
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.fairness.score import logits_of
from equfl.methods._cells import CellTable, cell_rows, cell_sums, of_row, times_importance
from equfl.methods._simplex import on_simplex
from equfl.methods.base import Method, Tensors, demand_single


@dataclass(frozen=True)
class FedFB(Method, name="fedfb"):
    """A row of cell (y, a) weighs ``r(y, a)`` in the loss, 1 on average; each round the server moves r; else FedAvg.

    Symbols: n_{y,a} rows of the cell, S_{y,a} its losses added up, λ the cells' weights, step = ``rate / sqrt(t)``.

    ========================  =======================================================================================
    target                    what moves
    ========================  =======================================================================================
    ``demographic_parity``    ``r(0, a) = λ_a / p_a``, ``r(1, a) = 2 - r(0, a)``, with p_a = n_a / n the start of λ_a.
                              Φ_a = (S_{0,a} - S_{1,a} + n_{1,a}) / n_a, less that of the largest group; with 0/1
                              losses this is the gap of the rates. ``λ_a += step Φ_a``, ``λ_ref -= step sum_a Φ_a``,
                              each kept between 0 and 2 p_a: a group with too many positives learns its negatives.
    ``equalized_odds``        ``r = λ_{y,a} n / n_{y,a}``, where λ starts at n_{y,a} / n. ``λ_{y,a} += step (L_{y,a} -
                              mean_a L_{y,a})`` with L = S / n, and back to the sum that a label's λ have in the start.
    ``calibration``           the part of ``equalized_odds`` with label 1, as the surrogate of the notion does
    ========================  =======================================================================================

    Where the group follows from the label, no label has two groups to compare; then the weights move by group,
    ``λ_a += step (L_a - mean_a L_a)``, which the record says (``fedfb/by_group``).

    Differs from the source: updates are averaged by the clients' rows (the source's routine drops a factor), λ_a is
    kept by its own group's bounds (there by the first group's), the reference is the largest group, and the losses are
    those of the model received in the round: no second exchange, so the weights follow one round later. The losses of
    the random start are not used, and so the first two rounds are FedAvg's. Cells that no participant has keep their λ.
    """

    rate: float = 0.1
    """Step size of the weights in the first round; it falls with the root of the round. The paper's α."""
    statistic: Literal["cross_entropy", "zero_one"] = "cross_entropy"
    """Which loss the clients add up: the one they train on, or the errors, with which Φ is the gap itself."""
    rule: Literal["gradient", "sign_max"] = "gradient"
    """For equalized odds: move every label by the size of its gaps, or the label with the largest by their sign."""

    def __post_init__(self) -> None:
        if self.rate < 0:
            raise ConfigError(f"method.rate = {self.rate}", wanted="0 or more", remedy="The default is 0.1")

    def check(self, target: Notion) -> None:
        demand_single(
            self,
            target,
            (DemographicParity, EqualizedOdds, Calibration),
            "FedFB moves weights of (label, group) cells, and has one rule per notion; run each notion by itself",
        )

    def leaves(self) -> tuple[Disclosure, ...]:
        return (
            *super().leaves(),
            Disclosure("cells", "training rows by label and group", ("labels", "groups"), "once"),
            Disclosure("present_cells", "training rows by label and group", ("labels", "groups")),
            Disclosure("losses", "losses of the received model, added up by label and group", ("labels", "groups")),
        )

    def survey(self, samples: Samples) -> Tensors:
        return {"cells": cell_rows(samples)}

    def instruct(self, state: ServerState, context: RoundContext) -> Tensors:
        cells = state.memory["survey/cells"]
        form = _form(context.target, cells)
        weights = state.memory.get("fedfb/weights")
        return {"weights": form.rows(cells, form.start(cells) if weights is None else weights)}

    def weigh(self, samples: Samples, instructions: Tensors) -> Losses:
        return times_importance(of_row(instructions["weights"], samples), samples)

    def report(
        self, network: Network, vector: Vector, buffers: Buffers, samples: Samples, instructions: Tensors
    ) -> Tensors:
        logits = logits_of(network, vector, buffers, samples.inputs)
        if self.statistic == "zero_one":
            losses = (logits.argmax(dim=1) != samples.labels).to(logits)
        else:
            losses = cross_entropy(logits, samples)
        return {"present_cells": cell_rows(samples), "losses": cell_sums(losses, samples)}

    def step(self, state: ServerState, cohort: Cohort, context: RoundContext) -> tuple[ServerState, Diagnostics]:
        state, diagnostics = super().step(state, cohort, context)
        cells = state.memory["survey/cells"]
        form = _form(context.target, cells)
        rows, losses = cohort.reports["present_cells"].sum(dim=0), cohort.reports["losses"].sum(dim=0)
        told = {"fedfb/empty_cells": float((rows == 0).sum()), "fedfb/by_group": float(isinstance(form, _ByGroup))}
        if context.round == 1:
            return state, {**diagnostics, **told}
        weights = state.memory.get("fedfb/weights")
        weights = form.start(cells) if weights is None else weights
        moved = form.moved(weights, cells, rows, losses, self.rate / context.round**0.5, self.rule)
        return replace(state, memory={**state.memory, "fedfb/weights": moved}), {**diagnostics, **told}


class _Parity:
    """Demographic parity; λ has one entry per group."""

    def start(self, cells: CellTable) -> Tensor:
        return cells.sum(dim=0) / cells.sum()

    def rows(self, cells: CellTable, weights: Tensor) -> CellTable:
        demand_two_labels(len(cells))
        negatives = rate(weights, self.start(cells))
        return torch.stack([negatives, 2 - negatives])

    def moved(
        self, weights: Tensor, cells: CellTable, rows: CellTable, losses: CellTable, step: float, rule: str
    ) -> Tensor:
        shares, groups = self.start(cells), rows.sum(dim=0)
        reference = int(groups.argmax())
        rates = rate(losses[0] - losses[1] + rows[1], groups)
        gaps = (rates - rates[reference]).where(groups > 0, 0.0)
        change = gaps.clone()
        change[reference] = -gaps.sum()
        return torch.minimum((weights + step * change).clamp(min=0), 2 * shares)


@dataclass(frozen=True)
class _Odds:
    """Equalized odds, or one label of it; λ has one entry per cell."""

    labels: tuple[int, ...] | None = None

    def start(self, cells: CellTable) -> Tensor:
        return cells / cells.sum()

    def rows(self, cells: CellTable, weights: Tensor) -> CellTable:
        return rate(weights, self.start(cells))

    def moved(
        self, weights: Tensor, cells: CellTable, rows: CellTable, losses: CellTable, step: float, rule: str
    ) -> Tensor:
        means, present = rate(losses, rows), rows > 0
        everybody = rate((means * present).sum(dim=1), present.to(means).sum(dim=1))
        apart = (means - everybody.unsqueeze(1)).where(present, 0.0)
        labels = tuple(range(len(cells))) if self.labels is None else self.labels
        if rule == "sign_max":
            spread = apart.amax(dim=1) - apart.amin(dim=1)
            labels, apart = (max(labels, key=lambda label: float(spread[label])),), apart.sign()
        moved = weights.clone()
        for label in labels:
            free = present[label]
            if free.any():
                total = weights[label, free].sum()
                moved[label, free] = on_simplex(weights[label, free] + step * apart[label, free], total)
        return moved


class _ByGroup:
    """One weight per group, where every label has a group of its own; λ has one entry per group."""

    def start(self, cells: CellTable) -> Tensor:
        return cells.sum(dim=0) / cells.sum()

    def rows(self, cells: CellTable, weights: Tensor) -> CellTable:
        return rate(weights, self.start(cells)).expand_as(cells)

    def moved(
        self, weights: Tensor, cells: CellTable, rows: CellTable, losses: CellTable, step: float, rule: str
    ) -> Tensor:
        group = _Odds().moved(
            weights.unsqueeze(0),
            cells.sum(dim=0, keepdim=True),
            rows.sum(dim=0, keepdim=True),
            losses.sum(dim=0, keepdim=True),
            step,
            "gradient",
        )
        return group[0]


def _form(target: Notion, cells: CellTable) -> _Parity | _Odds | _ByGroup:
    (notion,) = target.parts()
    if ((cells > 0).sum(dim=1) < 2).all():
        return _ByGroup()
    if isinstance(notion, DemographicParity):
        return _Parity()
    if isinstance(notion, Calibration):
        demand_two_labels(len(cells))
        return _Odds((1,))
    return _Odds()
