"""What a method is: five hooks around a round. Their default bodies are FedAvg."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from torch import Tensor

from equfl.aggregation.base import Aggregation
from equfl.core.arrays import Logits, Vector
from equfl.core.component import Component
from equfl.core.errors import ConfigError
from equfl.core.losses import cross_entropy
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.core.samples import Samples
from equfl.core.vector import Buffers, Network

Tensors = Mapping[str, Tensor]


class Method(Component, kind="method"):
    """One way to run the federation.

    ======================  ===========================  =====================================
    hook                    runs on                      overridden by
    ======================  ===========================  =====================================
    ``prepare``             client, once                 pre-processing methods
    ``instruct``            server, before each round    methods that steer the clients
    ``objective``           client, each batch           methods that change the local loss
    ``report``              client, after the round      methods that need statistics
    ``step``                server, after the round      all; EquFL overrides only this one
    ======================  ===========================  =====================================
    """

    aggregates_itself: ClassVar[bool] = False
    """Whether ``step`` weighs the clients in a way of its own instead of asking the aggregation rule of the run."""

    def prepare(self, samples: Samples) -> Samples:
        """What the client makes of its training rows before the first round."""
        return samples

    def instruct(self, state: ServerState, context: RoundContext) -> Tensors:
        """What the server sends along with the model."""
        return {}

    def objective(self, logits: Logits, samples: Samples, instructions: Tensors) -> Tensor:
        """The scalar that a client descends on one batch: the mean of the weighted cross-entropies."""
        losses = cross_entropy(logits, samples)
        return (losses if samples.importance is None else losses * samples.importance).mean()

    def report(
        self, network: Network, vector: Vector, buffers: Buffers, samples: Samples, instructions: Tensors
    ) -> Tensors:
        """What a client sends along with its update: nothing.

        ``vector`` is the model that the client has just received.
        """
        return {}

    def step(self, state: ServerState, cohort: Cohort, context: RoundContext) -> tuple[ServerState, Diagnostics]:
        """The server's state after the round: ``w - learning_rate * GAR(g_1, ..., g_n)``."""
        aggregate = context.aggregate(cohort.updates, cohort.shares)
        return self.advance(state, cohort, context.learning_rate * aggregate), {}

    def shared_rounds(self, rounds: int) -> int:
        """How many of the first rounds are exactly FedAvg's; a FedAvg twin need not compute them again."""
        return 0

    @staticmethod
    def advance(state: ServerState, cohort: Cohort, step: Vector, **memory: Tensor) -> ServerState:
        """The next state: the vector moved by ``-step``, the cohort's buffers, and new entries of memory."""
        return replace(
            state,
            round=state.round + 1,
            vector=state.vector - step,
            buffers=cohort.buffers,
            memory={**state.memory, **memory},
        )


def changes(method: Method, hook: str) -> bool:
    """Whether the method overrides a hook; what it leaves alone need not be computed."""
    return getattr(type(method), hook) is not getattr(Method, hook)


def check_pair(method: Method, aggregation: Aggregation) -> None:
    """Refuse a method that is itself an aggregation rule beside another one: one of the two would do nothing."""
    if method.aggregates_itself and aggregation.name != "mean":
        raise ConfigError(
            f"method = {method.name} with aggregation = {aggregation.name}",
            wanted=f"no rule beside {method.name}, which is itself one: it chooses the clients' weights",
            remedy=f"Leave aggregation at 'mean', or choose another method on top of {aggregation.name}",
        )
