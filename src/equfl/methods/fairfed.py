"""FairFed (Ezzeldin et al., 2023): clients whose bias is unlike that of all together count less."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Counts, Shares, Vector
from equfl.core.disclosure import Disclosure
from equfl.core.errors import ConfigError
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.core.samples import Samples
from equfl.core.vector import Buffers, Network
from equfl.fairness.base import Notion
from equfl.fairness.counts import binary, correct, count, largest_gap, rate
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.fairness.score import predict
from equfl.methods.base import Method, Tensors, demand_single
from equfl.methods.reweight import Reweight


@dataclass(frozen=True)
class FairFed(Method, name="fairfed"):
    """An aggregation rule of its own: ``w <- w - η sum_k (u_k / sum u) g_k``; the clients reweight their rows.

    Symbols: F_k client k's gap on its training rows under the model it has received, F the gap on all rows together,
    ``Δ_k = |F - F_k|``, m participants. For two groups F is the signed difference of the rates among label 1
    (equalized odds; of all rates for demographic parity), for more it is the largest minus the smallest rate.
    A client that lacks a needed cell has no F_k; its Δ_k is the difference of the accuracies.

    ``u_k`` starts at ``m`` times the client's share of the rows, so 1 on average, and each round
    ``u_k <- max(0, u_k - beta (Δ_k - mean Δ))``. If all are 0, they start again. With some clients only, the others
    keep what they had.

    Differs from the paper: it lets the weights sum to 1, where with 50 clients beta = 1 makes weights negative in one
    round; ``scale = "paper"`` gives that form, cut at 0 like ours. ``form = "exp"`` is the first preprint's,
    ``u_k = n_k exp(-beta Δ_k)``. Batch-norm statistics stay averaged by rows.
    """

    aggregates_itself: ClassVar[bool] = True

    beta: float = 1.0
    """How strongly an unlike bias counts; 0 is FedAvg on reweighted rows."""
    scale: Literal["mean_one", "paper"] = "mean_one"
    """What the weights that beta acts on look like: 1 on average, or 1 in sum."""
    form: Literal["additive", "exp"] = "additive"
    """Whether weights move round by round, or follow from this round's unlikeness alone."""
    debiasing: Literal["reweight", "none"] = "reweight"
    """What the clients do to their rows: 'reweight' is the method of that name, with its defaults."""

    def __post_init__(self) -> None:
        if self.beta < 0:
            raise ConfigError(f"method.beta = {self.beta}", wanted="0 or more", remedy="The default is 1")

    def check(self, target: Notion) -> None:
        demand_single(
            self,
            target,
            (DemographicParity, EqualizedOdds),
            "FairFed compares one difference of rates, and has none for a precision or for near rows",
        )

    def leaves(self) -> tuple[Disclosure, ...]:
        shape = ("labels", "labels", "groups")
        return (
            Disclosure("update", "change of the model's parameters in local training", ("parameters",), only_sum=False),
            Disclosure("rows", "number of training rows", only_sum=False),
            Disclosure("counts", "training rows by prediction, label and group", shape, only_sum=False),
        )

    def prepare(self, samples: Samples, totals: Tensors) -> Samples:
        return Reweight().prepare(samples, totals) if self.debiasing == "reweight" else samples

    def report(
        self, network: Network, vector: Vector, buffers: Buffers, samples: Samples, instructions: Tensors
    ) -> Tensors:
        return {"counts": count(predict(network, vector, buffers, samples.inputs), samples)}

    def step(self, state: ServerState, cohort: Cohort, context: RoundContext) -> tuple[ServerState, Diagnostics]:
        counts = cohort.reports["counts"]
        unlike = unlikeness(counts, context.target)
        start = (len(cohort.ids) * cohort.shares).double()
        weights, memory = self._weights(start, unlike, cohort.ids, state)
        empty = not (weights > 0).any()
        weights = start if empty else weights
        shares = (weights / weights.sum()).to(cohort.updates.dtype)
        step = context.learning_rate * (shares @ cohort.updates)
        return self.advance(state, cohort, step, **memory), {
            "fairfed/clients_without_gap": float(gap(counts, context.target).isnan().sum()),
            "fairfed/clients_without_weight": float((weights == 0).sum()),
            "fairfed/started_again": float(empty),
            "fairfed/largest_unlikeness": unlike.max().item(),
        }

    def _weights(
        self, start: Shares, unlike: Shares, ids: tuple[int, ...], state: ServerState
    ) -> tuple[Shares, dict[str, Tensor]]:
        if self.form == "exp":
            return start * torch.exp(-self.beta * unlike), {}
        # What is remembered of a client is how far it is from its start, which depends on who else takes part.
        known = state.memory.get("fairfed/moved", start.new_zeros(0))
        moved = torch.nn.functional.pad(known, (0, max(0, max(ids) + 1 - len(known))))
        step = self.beta * (len(ids) if self.scale == "paper" else 1)
        here = torch.tensor(ids, device=moved.device)
        weights = (start + moved[here] - step * (unlike - unlike.mean())).clamp(min=0)
        if not (weights > 0).any():
            return weights, {"fairfed/moved": moved.index_fill(0, here, 0.0)}
        return weights, {"fairfed/moved": moved.index_copy(0, here, weights - start)}


def unlikeness(counts: Counts, target: Notion) -> Shares:
    """The paper's Δ_k, from one table per client."""
    together = counts.sum(dim=0)
    apart = (gap(counts, target) - gap(together, target)).abs()
    accuracy = rate(correct(counts).sum(dim=-1), counts.sum(dim=(-3, -2, -1)))
    accuracy_together = rate(correct(together).sum(dim=-1), together.sum())
    return apart.where(~apart.isnan(), (accuracy - accuracy_together).abs())


def gap(counts: Counts, target: Notion) -> Float[Tensor, "*batch"]:
    """The paper's F of each table; NaN where a cell that it needs is empty."""
    (notion,) = target.parts()
    among = binary(counts)[..., 1, :] if isinstance(notion, EqualizedOdds) else counts.sum(dim=-2)
    rows = among.sum(dim=-2)
    rates = rate(among[..., 1, :], rows)
    if counts.shape[-1] == 2:
        return (rates[..., 0] - rates[..., 1]).where((rows > 0).all(dim=-1), torch.nan)
    return largest_gap(rates, rows > 0)
