"""EquFL, the paper's Algorithm 2: after each aggregation the server adds one calibrated update of its own.

Symbols: s ``collect``, γ ``gamma``, g_0 the calibrated update, D_syn the synthetic samples, F the target's loss.
"""

from dataclasses import dataclass
from math import inf
from typing import Literal

import torch
from torch import Tensor

from equfl.calibration.base import Directions, Place, Scope
from equfl.calibration.full import Full
from equfl.calibration.min_norm import common_descent
from equfl.core.arrays import Vector
from equfl.core.errors import ConfigError
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.core.samples import Samples
from equfl.fairness.base import GroupNotion, Notion
from equfl.fairness.rates import margins, soft_tables
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
from equfl.synthesis.trajectory_matching import TrajectoryMatching


@dataclass(frozen=True)
class EquFL(Method, name="equfl"):
    """The paper to the letter. For t > s: ``w <- w - η (γ g_0 + GAR(g_1, ..., g_n))`` with ``g_0 = ∇F(w; D_syn)``.

    In the first s rounds the server only keeps the global models it sends out; in round s + 1 it synthesises D_syn from
    them, once. The clients do what they do in FedAvg: only the server's step differs, and g_0 is never an input of the
    aggregation rule. What the synthesis has to change to be runnable stands on its own page (``TrajectoryMatching``).

    With several notions as the target g_0 is the direction that lowers all their losses (MGDA). The other settings
    leave the letter: they are there to see which part of it does what.
    """

    gamma: float = 1.0
    """Weight of the calibrated update."""
    collect_share: float = 0.5
    """Models are kept in the first floor(collect_share * rounds) rounds, and the calibration begins after them; the
    paper's round fraction of 60 % is ``collect_share = 0.4``."""
    collect: Strategy = "continuous"
    """Which of these rounds: ``continuous`` the first, ``discrete`` as many drawn at random (a study of the paper)."""
    collect_models: int = 0
    """How many models are kept; 0 means one for each of these rounds."""
    synthesis: Synthesis = TrajectoryMatching()
    """How the server gets its data."""
    schedule: Literal["constant", "theory"] = "constant"
    """``theory``: round t has ``γ_t = γ / (t + ς)``, and all steps are scaled by ``η_t / η = (1 + ς) / (t + ς)``."""
    delay: float = 10.0
    """The theory's ς."""
    largest_ratio: float = inf
    """A calibrated update that is longer than so many times the clients' aggregate is shortened to that."""
    surrogate: Literal["paper", "rate"] = "paper"
    """``rate`` replaces F by the sum of squared gaps between soft rates, for notions that compare groups."""
    sharpness: float = 3.0
    """How nearly a soft rate counts hard predictions: ``sigmoid(sharpness * margin)``."""
    scope: Scope = Full()
    """The directions that g_0 is confined to."""

    def __post_init__(self) -> None:
        check_collecting(self.collect_share, self.collect_models)
        for name, above in {"gamma": 0.0, "delay": -1.0, "largest_ratio": 0.0, "sharpness": 0.0}.items():
            value = getattr(self, name)
            if not (value >= above if name == "gamma" else value > above):
                wanted = f"{above:g} or more" if name == "gamma" else f"more than {above:g}"
                raise ConfigError(f"method.{name} = {value}", wanted=wanted, remedy="See 'equfl describe equfl'")

    def shared_rounds(self, rounds: int) -> int:
        return 0 if self.schedule == "theory" else collecting_rounds(self.collect_share, rounds)

    def step(self, state: ServerState, cohort: Cohort, context: RoundContext) -> tuple[ServerState, Diagnostics]:
        aggregate = context.aggregate(cohort.updates, cohort.shares)
        rate, gamma = context.learning_rate, self.gamma
        if self.schedule == "theory":
            rate *= (1 + self.delay) / (context.round + self.delay)
            gamma /= context.round + self.delay
        if context.round <= collecting_rounds(self.collect_share, context.rounds):
            kept = model_to_keep(
                state, context, share=self.collect_share, models=self.collect_models, strategy=self.collect
            )
            return self.advance(state, cohort, rate * aggregate, **kept), {}

        state, synthetic, diagnostics = with_synthetic(state, context, self.synthesis)
        calibrated, told = self._calibrated_update(state, synthetic, context)
        # A calibrated update far longer than the clients', or against them, is the first thing to look at.
        lengths = gamma * calibrated.norm(), aggregate.norm().clamp(min=1e-30)
        ratio = (lengths[0] / lengths[1]).item()
        shortened = min(1.0, self.largest_ratio / ratio) if ratio > 0 else 1.0
        compared = {
            "calibration/ratio": ratio * shortened,
            "calibration/cosine": torch.nn.functional.cosine_similarity(calibrated, aggregate, dim=0).item(),
            **({"calibration/shortened": shortened} if shortened < 1 else {}),
        }
        step = rate * (gamma * shortened * calibrated + aggregate)
        return self.advance(state, cohort, step), {**diagnostics, **told, **compared}

    def _calibrated_update(
        self, state: ServerState, synthetic: Samples, context: RoundContext
    ) -> tuple[Vector, Diagnostics]:
        place = Place(state.vector, state.buffers, context.network, context.schema, synthetic, collected(state))
        directions = self.scope.directions(place)
        told: dict[str, float] = {} if directions else {f"calibration/no_{self.scope.name}_so_full": 1.0}
        directions = directions or Full().directions(place)
        losses = [self._loss(part, place, directions) for part in context.target.parts()]
        told |= {"calibration/loss": sum(loss.item() for loss, _ in losses)}
        if len(losses) == 1:
            return directions.change(losses[0][1]), told
        descent, weights = common_descent(torch.stack([gradient for _, gradient in losses]))
        named = zip(context.target.parts(), weights.tolist(), strict=True)
        told |= {f"calibration/weight/{part.name}": weight for part, weight in named}
        return directions.change(descent), told

    def _loss(self, notion: Notion, place: Place, directions: Directions) -> tuple[Tensor, Vector]:
        """F on the synthetic rows, and its gradient in the coordinates of the scope."""
        point = place.vector.new_zeros(directions.size).requires_grad_()
        logits = place.network.forward(place.vector + directions.change(point), place.buffers, place.synthetic.inputs)
        if self.surrogate == "rate" and isinstance(notion, GroupNotion):
            tables = soft_tables(margins(logits), place.synthetic, sharpness=self.sharpness)
            loss = notion.gaps(tables).values.square().sum()
        else:
            loss = notion.loss(logits, place.synthetic)
        (gradient,) = torch.autograd.grad(loss, point)
        return loss.detach(), gradient
