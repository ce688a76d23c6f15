"""EquFL, closed loop: the clients count, for the model they have just received, how often each group is predicted what.

In federated learning the clients are asked to evaluate anyway. The counts are added up, by the server or by a secure
sum, and tell how the real rates differ from those on the synthetic rows; the loop therefore closes the real gap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from equfl.calibration.base import Place
from equfl.calibration.feedback import certain_loss, credible, integrated, measured_rates
from equfl.calibration.problem import Problem, accuracy_of, caution_of, synthetic_margins, synthetic_rates, tables_of
from equfl.calibration.smoothing import Smoothing
from equfl.calibration.tradeoff import tradeoff
from equfl.core.arrays import Counts, Vector
from equfl.core.disclosure import Disclosure
from equfl.core.errors import ConfigError
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.core.samples import Samples
from equfl.core.vector import Buffers, Network
from equfl.fairness.base import GroupNotion
from equfl.fairness.counts import count
from equfl.fairness.gaps import split_by_class
from equfl.methods._calibrating import Calibrating, importance, parted
from equfl.methods.base import Tensors
from equfl.privacy.gaussian import gaussian_sigma
from equfl.privacy.release import Release

COUNTED_EVERY = 3
"""For consistency the counts only say what it costs, which every third round is soon enough."""


@dataclass(frozen=True)
class EquFLFeedback(Calibrating, name="equfl_feedback"):
    """FedAvg, and in the last ``settle`` rounds the solution of the calibration problem with what the counts correct.

    With synthetic rates S(w) and counted rates R(w^t), the rates of a model w are expected to be ``S(w) + offset``,
    where the offset is learned from ``R(w^t) - S(w^t)`` round by round. The problem is solved for these rates, so that
    an error of the synthetic rows is an error of one round only. Bias is lowered to ``target_bias`` and what chance
    alone could have made of it, or as far as ``accuracy_budget`` permits.
    """

    target_bias: float = 0.0
    """The bias to arrive at; less than that is not paid for."""
    accuracy_budget: float = 1.7
    """Percentage points of accuracy that may be lost at most, by the clients' own counts; ``inf`` for no limit."""
    gain: float = 1.0
    """How much of a newly seen difference between real and synthetic rates is taken over."""
    leak: float = 0.0
    """How much of what was learned of that difference is forgotten per round."""
    caution: float = 0.1
    """Share of the largest gap that chance makes, left open where there are several gaps."""
    epsilon: float | None = None
    """Privacy budget ε of a row for all counts of the run together: normal noise is added to their sums; ``none`` for
    exact counts."""
    delta: float = 1e-5
    """The δ that goes with it."""
    least_clients: int = 1
    """With fewer counts than this in a round, the loop goes on with what it knew before."""

    def __post_init__(self) -> None:
        super().__post_init__()
        limits = {"target_bias": (0, 1), "accuracy_budget": (0, inf), "gain": (0, 1), "leak": (0, 1)}
        limits |= {"caution": (0, inf), "least_clients": (1, inf)}
        for name, (least, most) in limits.items():
            if not least <= (value := getattr(self, name)) <= most:
                raise ConfigError(
                    f"method.{name} = {value}",
                    wanted=f"a number from {least} to {most}" if most < inf else f"{least} or more",
                    remedy="See 'equfl describe equfl_feedback'",
                )

        if self.epsilon is not None:
            gaussian_sigma(self.epsilon, self.delta)  # refuses what is no privacy budget

    def leaves(self) -> tuple[Disclosure, ...]:
        shape = ("labels", "labels", "groups")
        counts = Disclosure("counts", "training rows by prediction, label and group", shape, "when asked")
        return (*super().leaves(), counts)

    def noised(self) -> Mapping[str, Release]:
        # However many releases there are, their noise is such that together they say as much as one with this noise.
        return {} if self.epsilon is None else {"counts": Release(gaussian_sigma(self.epsilon, self.delta), times=1)}

    def instruct(self, state: ServerState, context: RoundContext) -> Tensors:
        return {"count": torch.ones(())} if self._counts(context.round, context) else {}

    def report(
        self, network: Network, vector: Vector, buffers: Buffers, samples: Samples, instructions: Tensors
    ) -> Tensors:
        if "count" not in instructions:
            return {}
        with torch.no_grad():
            return {"counts": count(network.forward(vector, buffers, samples.inputs).argmax(dim=1), samples)}

    def settle_down(
        self,
        place: Place,
        notions: Sequence[GroupNotion],
        state: ServerState,
        cohort: Cohort,
        context: RoundContext,
        memory: dict[str, Tensor],
    ) -> tuple[Vector | None, Diagnostics]:
        fresh, told = self._counted(state, cohort, context)
        tables = state.memory.get("feedback/counted") if fresh is None else fresh
        if tables is None:
            return None, told
        offset = state.memory.get("feedback/offset")
        if fresh is not None:
            with torch.no_grad():
                margins = synthetic_margins(place.network, state.vector, state.buffers, place.synthetic)
                synthetic = synthetic_rates(margins, place.synthetic, self.sharpness)
            offset = integrated(offset, measured_rates(fresh), synthetic, gain=self.gain, leak=self.leak)
        assert offset is not None, "whoever has counted has an offset"
        before = state.memory.get("feedback/before", tables)
        memory |= {"feedback/counted": tables, "feedback/offset": offset, "feedback/before": before}
        directions, scope = self.directions(place)
        rows = tables.sum(dim=1)
        problem = Problem(
            place=place,
            directions=directions,
            notions=notions,
            sharpness=self.sharpness,
            expect=lambda rates: tables_of((rates + offset).clamp(0, 1), rows),
            reference=self.reference(place, state, memory),
            importance=importance(place.synthetic, rows[0].sum(dim=0) / rows[0].sum()),
            harm=self.harm,
            steps=self.solve_steps,
            longest=self.step_limit,
        )
        gaps = problem.gaps(tables)
        allowed = self.target_bias + caution_of(gaps, self.caution)
        answer = problem.answer(
            allowed,
            acceptable=lambda expected: 100 * certain_loss(before, expected) <= self.accuracy_budget,
        )
        return answer.vector, {
            **told,
            **scope,
            **(tradeoff(problem, allowed, answer.expected) if context.round == context.rounds else {}),
            "feedback/bias": gaps.largest(),
            "feedback/expected_bias": problem.gaps(answer.expected).largest(),
            "feedback/expected_accuracy": accuracy_of(answer.expected).item(),
            "feedback/bias_left_for_accuracy": answer.loosened,
            "feedback/cells_without_rows": float((rows <= 0).sum()),
            "calibration/solve_steps": float(answer.steps),
        }

    def smooth_out(
        self, place: Place, state: ServerState, cohort: Cohort, context: RoundContext, memory: dict[str, Tensor]
    ) -> tuple[Vector, Diagnostics]:
        """Down the variation between near rows, less steeply while more accuracy is lost than may be."""
        strength = state.memory.get("feedback/strength", torch.ones(()))
        told: Diagnostics = {}
        if self._counts(context.round, context):
            tables, told = self._counted(state, cohort, context)
            if tables is not None:
                before = state.memory.get("feedback/before", tables)
                lost = 100 * (accuracy_of(before) - accuracy_of(tables)).item()
                factor = min(2.0, max(0.2, self.accuracy_budget / lost)) if lost > 0 else 2.0
                strength = (strength * factor).clamp(max=1.0)
                memory |= {"feedback/before": before, "feedback/strength": strength}
        length = context.learning_rate * self.smoothing * strength.item()
        smoothed = Smoothing().smoothed(place, length, context.generator("smoothing"))
        return smoothed, {**told, "calibration/smoothing": length}

    def _counts(self, round: int, context: RoundContext) -> bool:
        """Whether the clients are asked to count in that round."""
        groups, others = parted(context.target)
        settling = bool(groups) and round >= self.begins(context.rounds, self.settle)
        smoothed = round - self.begins(context.rounds, self.smooth)
        costs = bool(others) and smoothed >= 0 and smoothed % COUNTED_EVERY == 0 and self.accuracy_budget < inf
        return settling or costs

    def _counted(self, state: ServerState, cohort: Cohort, context: RoundContext) -> tuple[Counts | None, Diagnostics]:
        """The tables of this round's counts, one per margin; none if too few clients have counted credibly."""
        counts = cohort.reports.get("counts")
        if counts is None:
            return None, {"feedback/clients": 0.0, "feedback/held": 1.0}
        good = credible(counts, cohort.rows)
        told = {"feedback/clients": float(good.sum()), "feedback/not_credible": float((~good).sum())}
        # One row from several clients is their sum, which is all that the server sees of them.
        voices = len(cohort.ids) * len(good.nonzero()) / max(1, len(good))
        if voices < self.least_clients:
            return None, {**told, "feedback/held": 1.0}
        total = counts[good].sum(dim=0)
        if (sigma := self.count_noise(context)) > 0:
            # The sum of what the clients add, each its share, so that nobody ever sees the exact sum.
            noise = torch.randn(total.shape, generator=context.generator("noise on the counts"), dtype=total.dtype)
            total = total + sigma * noise.to(total)
        return split_by_class(total.clamp(min=0)).to(state.vector), {**told, "feedback/noise": sigma}

    def count_noise(self, context: RoundContext) -> float:
        """Standard deviation of the noise on every summed count: one row changes one count of each release by one."""
        if self.epsilon is None:
            return 0.0
        releases = sum(self._counts(number, context) for number in range(1, context.rounds + 1))
        return gaussian_sigma(self.epsilon, self.delta, releases=releases)

    def remarks(self, rounds: Sequence[Diagnostics]) -> list[str]:
        counting = [told for told in rounds if "feedback/clients" in told]
        last = counting[-1] if counting else {}
        words = super().remarks(rounds)
        if last.get("feedback/bias_left_for_accuracy", 0.0) > 0:
            words.append(
                f"The accuracy budget of {self.accuracy_budget:g} points binds: by the clients' counts it lets the bias"
                f" fall to {last['feedback/expected_bias']:.3f}. Raise method.accuracy_budget for less."
            )
        if held := sum("feedback/held" in told for told in counting):
            words.append(f"In {held} of {len(counting)} rounds too few clients sent counts that can be true.")
        elif wrong := sum(told.get("feedback/not_credible", 0.0) for told in counting):
            words.append(f"{wrong:.0f} reports were left out because their counts cannot be true.")
        if counting:
            words.append(self._privacy(len(counting), last.get("feedback/noise", 0.0)))
        return words

    def _privacy(self, releases: int, noise: float) -> str:
        if self.epsilon is None:
            return (
                f"The clients sent exact counts {releases} times: no epsilon. Set method.epsilon for noise on the sums."
            )
        return (
            f"The counts were summed {releases} times with noise of {noise:.1f} on every sum: "
            f"epsilon {self.epsilon:g}, delta {self.delta:g} for a row."
        )
