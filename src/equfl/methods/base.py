"""What a method is: hooks before, around and after a round. Their default bodies are FedAvg."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from torch import Tensor

from equfl.aggregation.base import Aggregation
from equfl.core.arrays import Inputs, Logits, Losses, Predictions, Vector
from equfl.core.component import Component, parts
from equfl.core.disclosure import ROWS, UPDATE, Disclosure
from equfl.core.errors import ConfigError
from equfl.core.losses import cross_entropy
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.core.samples import Samples
from equfl.core.vector import Buffers, Network
from equfl.fairness.base import Notion
from equfl.privacy.release import Release
from equfl.synthesis.base import Synthesis

Tensors = Mapping[str, Tensor]


class Method(Component, kind="method"):
    """One way to run the federation.

    ======================  ===========================  =====================================
    hook                    runs on                      overridden by
    ======================  ===========================  =====================================
    ``survey``              client, once                 methods that need the federation's counts
    ``prepare``             client, once                 pre-processing methods
    ``test_inputs``         client, once                 those that change the inputs
    ``instruct``            server, before each round    methods that steer the clients
    ``weigh``               client, each round           methods that weigh the rows' losses
    ``objective``           client, each batch           methods that change the local loss otherwise
    ``report``              client, each round           methods that need statistics
    ``step``                server, after the round      all; EquFL overrides only this one
    ``predict``             who uses the model           post-processing methods
    ======================  ===========================  =====================================

    What leaves the client is declared by ``leaves``, and that is all that ``survey`` and ``report`` return.
    """

    aggregates_itself: ClassVar[bool] = False
    """Whether ``step`` weighs the clients in a way of its own instead of asking the aggregation rule of the run."""
    uses_group_at_prediction: ClassVar[bool] = False
    """Whether a prediction needs to know the group of the person, which often is unknown or must not be used."""

    def leaves(self) -> tuple[Disclosure, ...]:
        """What a client sends, beginning with what it sends in FedAvg."""
        return UPDATE, ROWS

    def noised(self) -> Mapping[str, Release]:
        """Of what leaves the client beside the update, what has noise on it: its name, and all of the run's releases.

        The noise is measured by what one row can change.
        """
        return {}

    def check(self, target: Notion) -> None:
        """Raise a ``ConfigError`` if the method has no form for the target."""

    def survey(self, samples: Samples) -> Tensors:
        """What a client says about its training rows before the first round; only the sum over all clients is used.

        The sums are the ``totals`` of the other hooks; the server finds them in its memory as ``survey/NAME``.
        """
        return {}

    def prepare(self, samples: Samples, totals: Tensors) -> Samples:
        """What the client makes of its training rows before the first round."""
        return samples

    def test_inputs(self, samples: Samples, train: Samples, totals: Tensors) -> Inputs:
        """What the model sees of rows it is tested on; ``train`` are the client's training rows as they were."""
        return samples.inputs

    def instruct(self, state: ServerState, context: RoundContext) -> Tensors:
        """What the server sends along with the model."""
        return {}

    def weigh(self, samples: Samples, instructions: Tensors) -> Losses | None:
        """What each row weighs in this round's loss; ``None`` means one each.

        A row's weight follows from that row alone, so that the rows of all clients may be weighed at once. Engines are
        much faster with weights than with another objective.
        """
        return samples.importance

    def objective(self, logits: Logits, samples: Samples, instructions: Tensors, target: Notion) -> Tensor:
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

    def predict(self, logits: Logits, samples: Samples, memory: Tensors) -> Predictions:
        """What is predicted for each row: the class with the largest logit, the lower one where two are equal.

        ``memory`` is the server's; of ``samples`` only the groups may be used, and only if the method says so.
        """
        return logits.argmax(dim=1)

    def remarks(self, rounds: Sequence[Diagnostics]) -> list[str]:
        """What a reader of the result should be told, in sentences, out of what the steps have recorded."""
        return []

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


def weighed(method: Method, samples: Samples, instructions: Tensors) -> Samples:
    """The rows with their weights of this round."""
    return replace(samples, importance=method.weigh(samples, instructions)) if changes(method, "weigh") else samples


def takes_real_rows(method: Method) -> bool:
    """Whether the server is to be given the clients' rows: then it is a control that only a simulation can run."""
    return any(isinstance(part, Synthesis) and part.takes_real_rows for part in parts(method))


def check_pair(method: Method, aggregation: Aggregation) -> None:
    """Refuse a method that is itself an aggregation rule beside another one: one of the two would do nothing."""
    if method.aggregates_itself and aggregation.name != "mean":
        raise ConfigError(
            f"method = {method.name} with aggregation = {aggregation.name}",
            wanted=f"no rule beside {method.name}, which is itself one: it chooses the clients' weights",
            remedy=f"Leave aggregation at 'mean', or choose another method on top of {aggregation.name}",
        )


def check_sums(method: Method, aggregation: Aggregation) -> None:
    """Refuse what must see single clients where the server sees nothing but sums over them."""
    single = [one.what for one in method.leaves() if not one.only_sum]
    if single:
        raise ConfigError(
            f"secure_sum with method = {method.name}, which must see each client's {' and '.join(single)}",
            wanted="a method that needs only sums, such as 'equfl' or 'fedavg'",
            remedy="'equfl describe privacy' says which do; or leave secure_sum off",
        )
    if not aggregation.sums_only:
        raise ConfigError(
            f"secure_sum with aggregation = {aggregation.name}, which must see each client's update",
            wanted="a rule that needs only their sum, such as 'mean'",
            remedy="A rule cannot judge clients whom it does not see: leave secure_sum off, or choose 'mean'",
        )


def demand_known(method: Method, target: Notion, known: tuple[type[Notion], ...], why: str) -> None:
    """Refuse a target of which the method has no form for some part."""
    if not all(isinstance(part, known) for part in target.parts()):
        raise ConfigError(
            f"method = {method.name} with target = {target.name}",
            wanted=f"the target {' or '.join(notion.name for notion in known)}",
            remedy=why,
        )


def demand_single(method: Method, target: Notion, known: tuple[type[Notion], ...], why: str) -> None:
    """The same for a method that can aim at one notion at a time."""
    if len(target.parts()) > 1:
        raise ConfigError(
            f"method = {method.name} with target = {target.name}",
            wanted=f"one notion, {' or '.join(notion.name for notion in known)}",
            remedy=why,
        )
    demand_known(method, target, known, why)
