"""What the open and the closed loop of EquFL share: when they act, on which rows, and in which directions."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from equfl.calibration.base import Directions, Place, Scope
from equfl.calibration.full import Full
from equfl.calibration.group_shift import GroupShift
from equfl.calibration.problem import Margins, synthetic_margins
from equfl.calibration.tradeoff import tradeoff_lines
from equfl.core.arrays import Vector
from equfl.core.errors import ConfigError
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.core.samples import Samples
from equfl.fairness.base import GroupNotion, Notion
from equfl.methods._server_data import (
    Strategy,
    check_collecting,
    collected,
    collecting_rounds,
    model_to_keep,
    with_synthetic,
)
from equfl.methods.base import Method
from equfl.synthesis.base import Synthesis
from equfl.synthesis.faithful_matching import FaithfulMatching


@dataclass(frozen=True)
class Calibrating(Method):
    """FedAvg until shortly before the end; then the server settles the bias.

    The clients' training pulls a calibrated model back to where it came from, and the longer both go on, the more the
    other weights adapt to the tug. So the last ``settle`` rounds belong to the calibration: their calibrated update is
    ``g_0 = (v - w) / (η γ)`` with ``v = w^t - settle_rate * η GAR(...)`` and w the solution of the calibration problem.
    In the words of the paper's theory: η_t falls to ``settle_rate * η`` when the calibration starts.
    """

    settle: int = 4
    """How many of the last rounds are calibrated for notions that compare groups."""
    settle_rate: float = 0.0
    """How much of the clients' updates is taken in these rounds; 0 holds the model still but for the calibration."""
    smooth: int = 20
    """How many of the last rounds are calibrated for consistency, with the clients' updates taken in full."""
    smoothing: float = 90.0
    """For consistency: length of a round's descent on the variation between near rows, in learning rates."""
    collect_share: float = 0.5
    """Models are kept for the synthesis in the first floor(collect_share * rounds) rounds."""
    collect: Strategy = "continuous"
    """Which of these rounds: ``continuous`` the first, ``discrete`` as many drawn at random (a study of the paper)."""
    collect_models: int = 0
    """How many models are kept; 0 means one for each of these rounds."""
    synthesis: Synthesis = FaithfulMatching()
    """How the server gets its data."""
    scope: Scope = GroupShift()
    """In which directions the model may be moved; where a model has no such place, ``full`` takes over."""
    sharpness: float = 3.0
    """How nearly a synthetic prediction counts as hard: ``sigmoid(sharpness * margin)``."""
    harm: float = 0.02
    """Weight of the training loss against squared bias."""
    solve_steps: int = 60
    """Descent steps on the calibration problem, per round."""
    step_limit: float = 1.0
    """Mean change of the margins that one round may make at most."""

    def __post_init__(self) -> None:
        check_collecting(self.collect_share, self.collect_models)
        for name in ("settle", "smooth", "solve_steps"):
            _demand(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        for name in ("sharpness", "step_limit"):
            _demand(getattr(self, name) > 0, name, getattr(self, name), "a number above 0")
        for name in ("harm", "smoothing"):
            _demand(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")
        _demand(0 <= self.settle_rate <= 1, "settle_rate", self.settle_rate, "a share between 0 and 1")

    def shared_rounds(self, rounds: int) -> int:
        return max(collecting_rounds(self.collect_share, rounds), rounds - max(self.settle, self.smooth))

    def step(self, state: ServerState, cohort: Cohort, context: RoundContext) -> tuple[ServerState, Diagnostics]:
        change = context.learning_rate * context.aggregate(cohort.updates, cohort.shares)
        groups, others = parted(context.target)
        settling = bool(groups) and self.begins(context.rounds, self.settle) <= context.round
        smoothing = bool(others) and self.begins(context.rounds, self.smooth) <= context.round
        if not settling and not smoothing:
            kept = model_to_keep(
                state, context, share=self.collect_share, models=self.collect_models, strategy=self.collect
            )
            return self.advance(state, cohort, change, **kept), {}

        state, synthetic, diagnostics = with_synthetic(state, context, self.synthesis)
        aggregated = state.vector - (self.settle_rate if settling else 1.0) * change
        place = Place(aggregated, state.buffers, context.network, context.schema, synthetic, collected(state))
        memory: dict[str, Tensor] = {}
        told: dict[str, float] = dict(diagnostics)
        if smoothing:
            vector, more = self.smooth_out(place, state, cohort, context, memory)
            place, told = replace(place, vector=vector), {**told, **more}
        if settling:
            settled, more = self.settle_down(place, groups, state, cohort, context, memory)
            if settled is None:
                aggregated = place.vector - (1 - self.settle_rate) * change
                settled = aggregated
            place, told = replace(place, vector=settled), {**told, **more}
        told["calibration/ratio"] = ((place.vector - aggregated).norm() / change.norm().clamp(min=1e-30)).item()
        return self.advance(state, cohort, state.vector - place.vector, **memory), told

    @abstractmethod
    def settle_down(
        self,
        place: Place,
        notions: Sequence[GroupNotion],
        state: ServerState,
        cohort: Cohort,
        context: RoundContext,
        memory: dict[str, Tensor],
    ) -> tuple[Vector | None, Diagnostics]:
        """The calibrated model for notions that compare groups; what is to be remembered goes into ``memory``.

        ``None`` where there is nothing to go by: the clients' updates are then taken in full.
        """

    @abstractmethod
    def smooth_out(
        self, place: Place, state: ServerState, cohort: Cohort, context: RoundContext, memory: dict[str, Tensor]
    ) -> tuple[Vector, Diagnostics]:
        """The calibrated model for consistency."""

    def remarks(self, rounds: Sequence[Diagnostics]) -> list[str]:
        last = rounds[-1] if rounds else {}
        fallback = [
            f"The model has no {self.scope.name.replace('_', ' ')}: the whole model was calibrated instead."
            for name in last
            if name.startswith("calibration/no_")
        ]
        return [*fallback, *tradeoff_lines(last)]

    def begins(self, rounds: int, last: int) -> int:
        """The first of the last so many rounds; never one in which models are still collected."""
        return max(collecting_rounds(self.collect_share, rounds), rounds - last) + 1

    def directions(self, place: Place) -> tuple[Directions, Diagnostics]:
        """The scope's directions; those of the whole model where it has none, which the record then says."""
        found = self.scope.directions(place)
        if found is None:
            return Full().directions(place), {f"calibration/no_{self.scope.name}_so_full": 1.0}
        return found, {}

    def reference(self, place: Place, state: ServerState, memory: dict[str, Tensor]) -> Margins:
        """The synthetic rows' margins under the last model before the calibration; remembered from then on."""
        known = state.memory.get("calibration/reference")
        if known is None:
            with torch.no_grad():
                known = synthetic_margins(place.network, state.vector, state.buffers, place.synthetic)
            memory["calibration/reference"] = known
        return known


def parted(target: Notion) -> tuple[list[GroupNotion], list[Notion]]:
    """The parts of the target that compare groups, and the others."""
    parts = target.parts()
    groups = [part for part in parts if isinstance(part, GroupNotion)]
    return groups, [part for part in parts if not isinstance(part, GroupNotion)]


def importance(synthetic: Samples, shares: Tensor) -> Tensor:
    """A weight per synthetic row such that each group weighs as much as its share says.

    They sum to one, less the shares of groups that have no synthetic rows.
    """
    groups = synthetic.group_weights()
    rows = groups.sum(dim=0)
    return groups @ (shares.to(groups) / rows.where(rows > 0, 1.0))


def _demand(holds: bool, name: str, value: object, wanted: str) -> None:
    if not holds:
        raise ConfigError(f"method.{name} = {value}", wanted=wanted, remedy="See 'equfl describe'")
