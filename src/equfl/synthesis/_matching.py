"""The search of every trajectory matching: rows on which training leads from one collected model to a later one.

The rows themselves, and what of them may change, are the draft's; this file draws pairs of models and descends.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from equfl.core.arrays import Inputs, SoftLabels, Updates, Vector
from equfl.core.errors import CalibrationError
from equfl.core.protocol import Diagnostics, RoundContext
from equfl.core.vector import Network
from equfl.synthesis._adam import Adam
from equfl.synthesis._training import Batch, Course, Way, all_rows, trained

NUDGE = 1e-12
"""A pair of models closer than this (squared) did not move; matching it would divide by nothing."""

PROGRESS = 0.99
"""A search goes on while the mean loss of the last iterations is below this share of the mean of those before."""


class Draft(ABC):
    """Rows that are being optimised."""

    log_rate: Tensor
    """Logarithm of the inner rate, which so stays positive: the rate of as many steps as the pair is models apart."""

    @abstractmethod
    def inputs(self) -> Inputs:
        """The rows as a network sees them."""

    @abstractmethod
    def labels(self) -> SoftLabels:
        """Their labels, as memberships."""

    @abstractmethod
    def leaves(self) -> Mapping[Tensor, float]:
        """What is optimised, each with its rate."""

    @abstractmethod
    def project(self) -> None:
        """Back to what is allowed."""


@dataclass(frozen=True)
class Pair:
    """Two models of the trajectory, and the ground between them."""

    start: Vector
    target: Vector

    @property
    def distance(self) -> Tensor:
        return (self.start - self.target).square().sum()

    @property
    def moved(self) -> bool:
        return bool(self.distance >= NUDGE)


def mismatch(pair: Pair, course: Course, inputs: Inputs, labels: SoftLabels, rate: Tensor, way: Way = "auto") -> Tensor:
    """``||w_N - target||² / ||start - target||²``, where ``w_N`` is ``start`` after N steps on the rows.

    Near 1 means no better than not moving. Differentiable in the inputs, the labels and the rate, through all steps.
    """
    return (trained(course, inputs, labels, rate, way) - pair.target).square().sum() / pair.distance


@dataclass(frozen=True)
class Trajectory:
    """The models to be retraced, oldest first, and how pairs are made of them."""

    network: Network
    models: Updates
    gaps: tuple[int, ...]
    """Models between the two of a pair."""
    average: int = 1
    """The target is the mean of so many models, the last of the gap."""

    def __post_init__(self) -> None:
        if len(self.models) <= max(self.gaps):
            raise CalibrationError(
                f"{len(self.models)} collected models",
                wanted=f"more than the {max(self.gaps)} that a pair is apart",
                remedy="Run more rounds, raise method.collect_share, or let method.synthesis match shorter gaps",
            )

    def pair(self, start: int, gap: int) -> Pair:
        """The model at that place, and what comes so many models later."""
        end = start + gap + 1
        return Pair(self.models[start], self.models[end - self.average : end].mean(dim=0))

    def drawn(self, generator: torch.Generator) -> tuple[Pair, int]:
        """A pair at random and its gap: first the gap, then the start."""
        gap = self.gaps[int(torch.randint(len(self.gaps), (), generator=generator))]
        return self.pair(int(torch.randint(len(self.models) - gap, (), generator=generator)), gap), gap

    def longest(self) -> list[Pair]:
        """Every pair with the longest gap."""
        return [self.pair(start, max(self.gaps)) for start in range(len(self.models) - max(self.gaps))]


@dataclass(frozen=True)
class Search:
    """Adam on the draft, one random pair per iteration.

    Pairs that did not move are passed over; where the training on the rows diverges, the inner rate is halved instead
    of a step. Both are counted.
    """

    trajectory: Trajectory
    iterations: int
    inner_steps: int
    batch: int = 0
    """Rows that an inner step sees, the next ones of a random order; 0 means all."""
    way: Way = "auto"
    patience: int = 0
    """Stop when the mean loss of so many iterations is not 1 % below that of as many before; 0 means never."""

    def __call__(self, draft: Draft, context: RoundContext, generator: torch.Generator) -> Diagnostics:
        """Change the draft's leaves in place, and say how it went."""
        before = self.mean_mismatch(draft)
        leaves = draft.leaves()
        optimiser = Adam(leaves)
        losses: list[float] = []
        still = halved = 0
        for iteration in range(self.iterations):
            pair, gap = self.trajectory.drawn(generator)
            batch = self._batches(len(draft.labels()), generator)
            if not pair.moved:
                still += 1
                continue
            optimiser.forget_gradients()
            loss = self._mismatch(draft, (draft.inputs(), draft.labels()), pair, gap, batch)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(list(leaves), 1.0)
            context.progress("synthesising", iteration + 1, self.iterations)
            if not torch.isfinite(loss + norm):
                draft.log_rate.data -= log(2)
                halved += 1
                continue
            optimiser.step()
            draft.project()
            losses.append(loss.item())
            if self._stalled(losses):
                break
        return {
            "synthesis/matching_loss_before": before,
            "synthesis/matching_loss": self.mean_mismatch(draft),
            "synthesis/inner_rate": draft.log_rate.exp().item(),
            "synthesis/iterations": float(len(losses) + still + halved),
            "synthesis/rate_halved": float(halved),
            "synthesis/pairs_that_did_not_move": float(still),
        }

    @torch.no_grad()
    def mean_mismatch(self, draft: Draft) -> float:
        """The mean over all pairs of the longest gap that moved, on all rows; 0 if none did."""
        pairs = [pair for pair in self.trajectory.longest() if pair.moved]
        rows, gap = (draft.inputs(), draft.labels()), max(self.trajectory.gaps)
        losses = [self._mismatch(draft, rows, pair, gap, all_rows) for pair in pairs]
        return torch.stack(losses).mean().item() if losses else 0.0

    def _mismatch(self, draft: Draft, rows: tuple[Inputs, SoftLabels], pair: Pair, gap: int, batch: Batch) -> Tensor:
        rate = draft.log_rate.exp() * gap / self.inner_steps
        course = Course(self.trajectory.network, pair.start, self.inner_steps, batch)
        return mismatch(pair, course, *rows, rate, self.way)

    def _batches(self, rows: int, generator: torch.Generator) -> Batch:
        if not 0 < self.batch < rows:
            return all_rows
        order = torch.randperm(rows, generator=generator)
        return lambda step: order[torch.arange(step * self.batch, (step + 1) * self.batch) % rows]

    def _stalled(self, losses: list[float]) -> bool:
        if not self.patience or len(losses) < 2 * self.patience or len(losses) % self.patience:
            return False
        last, before = losses[-self.patience :], losses[-2 * self.patience : -self.patience]
        return sum(last) > PROGRESS * sum(before)
