"""EquFL, the paper's Algorithm 2: after each aggregation the server adds one calibrated update of its own.

Symbols: s ``collect``, γ ``gamma``, g_0 the calibrated update, D_syn the synthetic samples, F the target's loss.
"""

from dataclasses import dataclass, replace
from math import floor

import torch

from equfl.core.arrays import Vector
from equfl.core.errors import ConfigError
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.core.samples import Samples
from equfl.fairness.neighbours import nearest
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
    """Share of the rounds whose models are kept: s = floor(collect_share * rounds)."""
    synthesis: Synthesis = TrajectoryMatching()
    """How the server gets its data."""

    def __post_init__(self) -> None:
        if self.gamma < 0 or not 0 <= self.collect_share <= 1:
            raise ConfigError(
                f"method.gamma = {self.gamma}, method.collect_share = {self.collect_share}",
                wanted="a gamma of 0 or more and a share between 0 and 1",
                remedy="The paper uses 1 and 0.5",
            )

    def shared_rounds(self, rounds: int) -> int:
        return floor(self.collect_share * rounds + 1e-9)  # 0.29 * 100 is 28.999...

    def step(self, state: ServerState, cohort: Cohort, context: RoundContext) -> tuple[ServerState, Diagnostics]:
        aggregate = context.aggregate(cohort.updates, cohort.shares)
        if context.round <= self.shared_rounds(context.rounds):
            step = context.learning_rate * aggregate
            return self.advance(state, cohort, step, **{f"collected/{context.round:05d}": state.vector}), {}

        diagnostics: Diagnostics = {}
        if "synthetic/inputs" not in state.memory:
            state, diagnostics = self._synthesise(state, context)
        calibrated, loss = self._calibrated_update(state, context)
        step = context.learning_rate * (self.gamma * calibrated + aggregate)
        return self.advance(state, cohort, step), {**diagnostics, **self._compared(calibrated, aggregate), **loss}

    def _synthesise(self, state: ServerState, context: RoundContext) -> tuple[ServerState, Diagnostics]:
        collected = [state.memory[name] for name in sorted(state.memory) if name.startswith("collected/")]
        samples, diagnostics = self.synthesis(torch.stack(collected), context)
        synthetic = {
            "synthetic/inputs": samples.inputs,
            "synthetic/labels": samples.labels,
            "synthetic/groups": samples.groups,
            "synthetic/neighbours": nearest(samples.inputs),
        }
        return replace(state, memory={**state.memory, **synthetic}), diagnostics

    def _calibrated_update(self, state: ServerState, context: RoundContext) -> tuple[Vector, Diagnostics]:
        samples = Samples(
            inputs=state.memory["synthetic/inputs"],
            labels=state.memory["synthetic/labels"],
            groups=state.memory["synthetic/groups"],
            classes=len(context.schema.classes),
            group_count=len(context.schema.groups),
            neighbours=state.memory["synthetic/neighbours"],
        )
        point = state.vector.detach().requires_grad_()
        loss = context.target.loss(context.network.forward(point, state.buffers, samples.inputs), samples)
        (gradient,) = torch.autograd.grad(loss, point)
        return gradient, {"calibration/loss": loss.item()}

    def _compared(self, calibrated: Vector, aggregate: Vector) -> Diagnostics:
        # A calibrated update far longer than the clients', or against them, is the first thing to look at.
        ratio = self.gamma * calibrated.norm() / aggregate.norm()
        cosine = torch.nn.functional.cosine_similarity(calibrated, aggregate, dim=0)
        return {"calibration/ratio": ratio.item(), "calibration/cosine": cosine.item()}
