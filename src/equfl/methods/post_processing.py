"""Federated post-processing: thresholds per group (Hardt, Price & Srebro, 2016) out of summed histograms."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from equfl.core.arrays import Logits, Predictions, Vector
from equfl.core.disclosure import Disclosure
from equfl.core.errors import ConfigError
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.core.samples import Samples
from equfl.core.vector import Buffers, Network
from equfl.fairness.base import Notion
from equfl.fairness.counts import demand_two_labels
from equfl.fairness.score import logits_of
from equfl.fairness.thresholds import BOUNDED, best_thresholds
from equfl.methods.base import Method, Tensors, demand_known


@dataclass(frozen=True)
class PostProcessing(Method, name="post_processing"):
    """FedAvg; in the last round the model stands still, and the server sets a threshold per group from the scores.

    The clients count, by label and group, the scores of the model they have received (the probability of label 1, in
    ``bins`` equal bins). The server takes the thresholds with the highest accuracy among those that keep the gaps of
    the target within ``allowed``; where no single threshold does, two are mixed, and rows near them are decided by lot.

    Since it sees the group of everyone it judges, it can do what a model alone cannot: it is the frontier for methods
    that do not. The thresholds are fitted on training rows, of which a model that has learned them by heart is surer
    than of others. A group without training rows is judged by the threshold that is best for everybody.
    """

    uses_group_at_prediction: ClassVar[bool] = True

    allowed: float = 0.0
    """The largest gap between groups that is accepted on the training rows."""
    bins: int = 200
    """How finely scores are counted."""

    def __post_init__(self) -> None:
        if not 0 <= self.allowed <= 1 or self.bins < 2:
            raise ConfigError(
                f"method.allowed = {self.allowed}, method.bins = {self.bins}",
                wanted="a share between 0 and 1, and at least 2 bins",
                remedy="The defaults are 0 and 200",
            )

    def check(self, target: Notion) -> None:
        demand_known(
            self,
            target,
            BOUNDED,
            "Thresholds bound rates of groups: a precision is not linear in them, and consistency compares rows",
        )

    def leaves(self) -> tuple[Disclosure, ...]:
        scores = Disclosure("scores", "histogram of the scores", ("labels", "groups", "bins"), "when asked")
        return (*super().leaves(), scores)

    def shared_rounds(self, rounds: int) -> int:
        return rounds - 1

    def instruct(self, state: ServerState, context: RoundContext) -> Tensors:
        demand_two_labels(len(context.schema.classes))
        return {"count_scores": torch.ones(())} if context.round == context.rounds else {}

    def report(
        self, network: Network, vector: Vector, buffers: Buffers, samples: Samples, instructions: Tensors
    ) -> Tensors:
        if "count_scores" not in instructions:
            return {}
        bins = self._bin(logits_of(network, vector, buffers, samples.inputs))
        cells = (samples.labels * samples.group_count + samples.groups) * self.bins + bins
        counts = torch.bincount(cells, minlength=2 * samples.group_count * self.bins)
        return {"scores": counts.double().view(2, samples.group_count, self.bins)}

    def step(self, state: ServerState, cohort: Cohort, context: RoundContext) -> tuple[ServerState, Diagnostics]:
        if context.round < context.rounds:
            return super().step(state, cohort, context)
        counts = cohort.reports["scores"].sum(dim=0)
        chances = best_thresholds(counts, context.target.parts(), allowed=self.allowed).to(state.vector.device)
        lots = torch.randint(2**62, (), generator=context.generator("lots"))
        # The rule does its work as in every round, so that the record says whom it trusts; nothing of it is taken.
        still = 0 * context.aggregate(cohort.updates, cohort.shares)
        state = self.advance(state, cohort, still, **{"thresholds/chances": chances, "thresholds/lots": lots})
        return state, {
            "thresholds/groups_without_rows": float((counts.sum(dim=(0, 2)) == 0).sum()),
            "thresholds/by_lot": (counts.sum(dim=0) * ((chances > 0) & (chances < 1))).sum().item()
            / counts.sum().item(),
        }

    def predict(self, logits: Logits, samples: Samples, memory: Tensors) -> Predictions:
        if "thresholds/chances" not in memory:
            return super().predict(logits, samples, memory)
        chances = memory["thresholds/chances"][samples.groups, self._bin(logits)]
        lots = torch.Generator().manual_seed(int(memory["thresholds/lots"]))
        drawn = torch.rand(len(samples), generator=lots, dtype=chances.dtype)
        return (drawn.to(chances.device) < chances).long()

    def _bin(self, logits: Logits) -> Predictions:
        """The bin of each row's score; exactly one half falls into the lower of the two middle bins, as ties do."""
        scores = torch.softmax(logits.double(), dim=1)[:, 1]
        return (scores * self.bins).ceil().long().sub(1).clamp(0, self.bins - 1)
