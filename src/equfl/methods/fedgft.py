"""FedGFT (Wang et al., 2023): a penalty on the bias of all clients together, out of sums that they send."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Logits, Vector
from equfl.core.disclosure import Disclosure
from equfl.core.errors import ConfigError
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.core.samples import Samples
from equfl.core.vector import Buffers, Network
from equfl.fairness.base import Notion
from equfl.fairness.counts import demand_two_labels, rate
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.fairness.score import logits_of
from equfl.methods._cells import CellTable, cell_rows, cell_sums, of_row
from equfl.methods.base import Method, Tensors, demand_known


@dataclass(frozen=True)
class FedGFT(Method, name="fedgft"):
    """Descend ``mean loss + weight * sum F²`` with F the gap between two groups' mean probabilities, over all clients.

    Symbols: p(z) the probability of label 1, ``F = sum_z s_z p(z)`` with ``s_z = 1 / n_h`` in one group and
    ``-1 / n_k`` in the other, n the rows of all clients together; for equalized odds one F per label, for more than two
    groups one per pair. The gradient of F² is ``2 F sum_z s_z ∇p(z)``: linear in the rows, once F is known. So the
    server sends ``push(y, a) = 2 weight sum_F F s n``, and a client adds the mean of ``push p`` to its batch's loss.

    It is ``regular`` with the bias of all instead of each client's own. Differs from the source, where F is asked for
    before each round: here it is that of the model received one round earlier, so the first round is FedAvg's. And the
    push follows F gradually, ``push <- (1 - follow) push + follow * 2 weight sum_F F s n``: it stands still while
    clients train, so with an epoch of steps per round a push that jumps overshoots, further each time. Where they come
    to rest, both are the same.
    """

    weight: float = 1.0
    """Weight of the squared gaps, the paper's λ; rows of small groups are pushed n / n_a as hard, so with many groups
    a weight of 5 makes training diverge."""
    follow: float = 0.02
    """How much of what the last reports ask for is taken over in a round; 1 is the source's jump."""

    def __post_init__(self) -> None:
        if self.weight < 0 or not 0 < self.follow <= 1:
            raise ConfigError(
                f"method.weight = {self.weight}, method.follow = {self.follow}",
                wanted="0 or more, and a share above 0",
                remedy="The defaults are 1 and 0.02",
            )

    def check(self, target: Notion) -> None:
        demand_known(
            self,
            target,
            (DemographicParity, EqualizedOdds),
            "FedGFT needs a gap that is a sum over rows; a precision is a ratio of sums, consistency a sum over pairs",
        )

    def leaves(self) -> tuple[Disclosure, ...]:
        return (
            *super().leaves(),
            Disclosure("present_cells", "training rows by label and group", ("labels", "groups")),
            Disclosure("positive", "probabilities of label 1, added up by label and group", ("labels", "groups")),
        )

    def instruct(self, state: ServerState, context: RoundContext) -> Tensors:
        demand_two_labels(len(context.schema.classes))
        return {"push": _push(state, len(context.schema.groups))}

    def objective(self, logits: Logits, samples: Samples, instructions: Tensors, target: Notion) -> Tensor:
        loss = super().objective(logits, samples, instructions, target)
        positive = torch.softmax(logits, dim=1)[:, 1]
        return loss + (of_row(instructions["push"], samples) * positive).mean()

    def report(
        self, network: Network, vector: Vector, buffers: Buffers, samples: Samples, instructions: Tensors
    ) -> Tensors:
        positive = torch.softmax(logits_of(network, vector, buffers, samples.inputs), dim=1)[:, 1]
        return {"present_cells": cell_rows(samples), "positive": cell_sums(positive, samples)}

    def step(self, state: ServerState, cohort: Cohort, context: RoundContext) -> tuple[ServerState, Diagnostics]:
        state, diagnostics = super().step(state, cohort, context)
        rows, positive = cohort.reports["present_cells"].sum(dim=0), cohort.reports["positive"].sum(dim=0)
        contrasts = torch.cat([_contrasts(part, rows) for part in context.target.parts()])
        gaps = torch.einsum("fya,ya->f", contrasts, rate(positive, rows))
        wanted = 2 * self.weight * torch.einsum("f,fya->ya", gaps, rate(contrasts, rows.expand_as(contrasts)))
        push = torch.lerp(_push(state, rows.shape[1]), wanted * rows.sum(), self.follow)
        told = {
            "fedgft/largest_gap": gaps.abs().max().item() if len(gaps) else float("nan"),
            "fedgft/empty_cells": float((rows == 0).sum()),
        }
        memory = {**state.memory, "fedgft/push": push}
        return replace(state, memory=memory), {**diagnostics, **told}


def _push(state: ServerState, groups: int) -> CellTable:
    return state.memory.get("fedgft/push", state.vector.new_zeros(2, groups, dtype=torch.float64))


def _contrasts(notion: Notion, rows: CellTable) -> Float[Tensor, "gaps labels groups"]:
    """Per gap, the share with which each cell's mean enters; a group with an empty cell has no gap there."""
    if isinstance(notion, EqualizedOdds):
        labels, groups = rows.shape
        shares = torch.eye(labels).to(rows).unsqueeze(2).expand(labels, labels, groups)
        present = rows > 0
    else:
        shares = rate(rows, rows.sum(dim=0).expand_as(rows)).unsqueeze(0)
        present = rows.sum(dim=0, keepdim=True) > 0
    pairs = torch.combinations(torch.arange(rows.shape[1]), 2).tolist()
    found = []
    for share, there in zip(shares, present, strict=True):
        for first, second in pairs:
            if there[first] and there[second]:
                contrast = torch.zeros_like(rows)
                contrast[:, first], contrast[:, second] = share[:, first], -share[:, second]
                found.append(contrast)
    return torch.stack(found) if found else rows.new_zeros(0, *rows.shape)
