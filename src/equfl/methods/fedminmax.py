"""FedMinMax (Papadaki et al., 2022): the group that is worst off gets the weight."""

from dataclasses import dataclass, replace

import torch

from equfl.core.arrays import Losses, Vector
from equfl.core.disclosure import Disclosure
from equfl.core.errors import ConfigError
from equfl.core.losses import cross_entropy
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.core.samples import Samples
from equfl.core.vector import Buffers, Network
from equfl.fairness.counts import rate
from equfl.fairness.score import logits_of
from equfl.methods._cells import cell_rows, cell_sums, of_row, times_importance
from equfl.methods._simplex import on_simplex
from equfl.methods.base import Method, Tensors


@dataclass(frozen=True)
class FedMinMax(Method, name="fedminmax"):
    """Minimise the mean loss under the worst weighting of the groups, ``min_w max_μ sum_a μ_a L_a(w)``.

    Symbols: p_a the group's share of all rows, L_a its mean loss, μ the server's weights, which start at p. A row of
    group a weighs ``μ_a / p_a``; after each round ``μ <- projection onto the simplex of (μ + rate L)``, with L the
    losses of the model that the clients had received. The target does not matter: it equalises losses from above,
    which none of the notions asks for.

    A group without any row keeps the weight 0. With some clients only, L is theirs, and a group that none of them has
    keeps its weight for the round but for the projection.
    """

    rate: float = 0.1
    """Step size of the weights."""

    def __post_init__(self) -> None:
        if self.rate < 0:
            raise ConfigError(f"method.rate = {self.rate}", wanted="0 or more", remedy="The default is 0.1")

    def leaves(self) -> tuple[Disclosure, ...]:
        return (
            *super().leaves(),
            Disclosure("group_rows", "training rows by group", ("groups",), "once"),
            Disclosure("present_rows", "training rows by group", ("groups",)),
            Disclosure("losses", "losses of the received model, added up by group", ("groups",)),
        )

    def survey(self, samples: Samples) -> Tensors:
        return {"group_rows": cell_rows(samples).sum(dim=0)}

    def instruct(self, state: ServerState, context: RoundContext) -> Tensors:
        shares = _shares(state)
        return {"weights": rate(state.memory.get("fedminmax/weights", shares), shares)}

    def weigh(self, samples: Samples, instructions: Tensors) -> Losses:
        weights = instructions["weights"].expand(samples.classes, -1)
        return times_importance(of_row(weights, samples), samples)

    def report(
        self, network: Network, vector: Vector, buffers: Buffers, samples: Samples, instructions: Tensors
    ) -> Tensors:
        losses = cross_entropy(logits_of(network, vector, buffers, samples.inputs), samples)
        return {
            "present_rows": cell_rows(samples).sum(dim=0),
            "losses": cell_sums(losses, samples).sum(dim=0),
        }

    def step(self, state: ServerState, cohort: Cohort, context: RoundContext) -> tuple[ServerState, Diagnostics]:
        state, diagnostics = super().step(state, cohort, context)
        shares = _shares(state)
        rows, losses = cohort.reports["present_rows"].sum(dim=0), cohort.reports["losses"].sum(dim=0)
        weights = state.memory.get("fedminmax/weights", shares) + self.rate * rate(losses, rows)
        there = shares > 0
        weights = weights.masked_scatter(there, on_simplex(weights[there])).where(there, 0.0)
        told = {"fedminmax/largest_loss": rate(losses, rows).max().item(), "fedminmax/groups_absent": (rows == 0).sum()}
        memory = {**state.memory, "fedminmax/weights": weights}
        return replace(state, memory=memory), {**diagnostics, **{name: float(value) for name, value in told.items()}}


def _shares(state: ServerState) -> torch.Tensor:
    rows = state.memory["survey/group_rows"]
    return rows / rows.sum()
