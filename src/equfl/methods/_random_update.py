"""What the two controls share: where EquFL adds a calibrated update, they add a random one."""

from abc import abstractmethod
from dataclasses import dataclass

import torch

from equfl.core.arrays import Vector
from equfl.core.errors import ConfigError
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.methods._server_data import check_share, collecting_rounds
from equfl.methods.base import Method


@dataclass(frozen=True)
class RandomUpdate(Method):
    """For t > s: ``w <- w - η (γ g_0 + GAR(g_1, ..., g_n))`` with a g_0 that is drawn anew each round."""

    gamma: float = 1.0
    """Weight of the random update."""
    collect_share: float = 0.5
    """Share of the rounds before the first random update, in which EquFL would collect models."""

    def __post_init__(self) -> None:
        check_share(self.collect_share)
        if self.gamma < 0:
            raise ConfigError(f"method.gamma = {self.gamma}", wanted="0 or more", remedy="The paper uses 1")

    def shared_rounds(self, rounds: int) -> int:
        return collecting_rounds(self.collect_share, rounds)

    def step(self, state: ServerState, cohort: Cohort, context: RoundContext) -> tuple[ServerState, Diagnostics]:
        aggregate = context.aggregate(cohort.updates, cohort.shares)
        if context.round <= self.shared_rounds(context.rounds):
            return self.advance(state, cohort, context.learning_rate * aggregate), {}
        noise = self.gamma * self.draw(len(aggregate), context.generator("random update")).to(aggregate)
        step = context.learning_rate * (noise + aggregate)
        return self.advance(state, cohort, step), {"noise/ratio": (noise.norm() / aggregate.norm()).item()}

    @abstractmethod
    def draw(self, parameters: int, generator: torch.Generator) -> Vector:
        """One random update."""
