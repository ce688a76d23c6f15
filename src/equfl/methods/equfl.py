"""EquFL, the paper's Algorithm 2: after each aggregation the server adds one calibrated update of its own.

Symbols: s ``collect``, γ ``gamma``, g_0 the calibrated update, D_syn the synthetic samples, F the target's loss.
"""

from dataclasses import dataclass

import torch

from equfl.core.arrays import Vector
from equfl.core.errors import ConfigError
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.core.samples import Samples
from equfl.methods._server_data import Strategy, check_collecting, collecting_rounds, model_to_keep, with_synthetic
from equfl.methods.base import Method
from equfl.synthesis.base import Synthesis
from equfl.synthesis.trajectory_matching import TrajectoryMatching


@dataclass(frozen=True)
class EquFL(Method, name="equfl"):
    """The paper to the letter. For t > s: ``w <- w - η (γ g_0 + GAR(g_1, ..., g_n))`` with ``g_0 = ∇F(w; D_syn)``.

    In the first s rounds the server only keeps the global models it sends out; in round s + 1 it synthesises D_syn from
    them, once. The clients do what they do in FedAvg: only the server's step differs, and g_0 is never an input of the
    aggregation rule. What the synthesis has to change to be runnable stands on its own page (``TrajectoryMatching``).
    """

    gamma: float = 1.0
    """Weight of the calibrated update."""
    collect_share: float = 0.5
    """Models are kept in the first floor(collect_share * rounds) rounds, and the calibration begins after them."""
    collect: Strategy = "continuous"
    """Which of these rounds: ``continuous`` the first, ``discrete`` as many drawn at random (a study of the paper)."""
    collect_models: int = 0
    """How many models are kept; 0 means one for each of these rounds."""
    synthesis: Synthesis = TrajectoryMatching()
    """How the server gets its data."""

    def __post_init__(self) -> None:
        check_collecting(self.collect_share, self.collect_models)
        if self.gamma < 0:
            raise ConfigError(f"method.gamma = {self.gamma}", wanted="0 or more", remedy="The paper uses 1")

    def shared_rounds(self, rounds: int) -> int:
        return collecting_rounds(self.collect_share, rounds)

    def step(self, state: ServerState, cohort: Cohort, context: RoundContext) -> tuple[ServerState, Diagnostics]:
        aggregate = context.aggregate(cohort.updates, cohort.shares)
        if context.round <= self.shared_rounds(context.rounds):
            step = context.learning_rate * aggregate
            kept = model_to_keep(
                state, context, share=self.collect_share, models=self.collect_models, strategy=self.collect
            )
            return self.advance(state, cohort, step, **kept), {}

        state, synthetic, diagnostics = with_synthetic(state, context, self.synthesis)
        calibrated, loss = _calibrated_update(state, synthetic, context)
        step = context.learning_rate * (self.gamma * calibrated + aggregate)
        return self.advance(state, cohort, step), {**diagnostics, **self._compared(calibrated, aggregate), **loss}

    def _compared(self, calibrated: Vector, aggregate: Vector) -> Diagnostics:
        # A calibrated update far longer than the clients', or against them, is the first thing to look at.
        ratio = self.gamma * calibrated.norm() / aggregate.norm()
        cosine = torch.nn.functional.cosine_similarity(calibrated, aggregate, dim=0)
        return {"calibration/ratio": ratio.item(), "calibration/cosine": cosine.item()}


def _calibrated_update(state: ServerState, synthetic: Samples, context: RoundContext) -> tuple[Vector, Diagnostics]:
    point = state.vector.detach().requires_grad_()
    loss = context.target.loss(context.network.forward(point, state.buffers, synthetic.inputs), synthetic)
    (gradient,) = torch.autograd.grad(loss, point)
    return gradient, {"calibration/loss": loss.item()}
