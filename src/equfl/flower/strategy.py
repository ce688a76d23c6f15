"""Any Flower strategy with one of our methods around it.

The strategy is the aggregation rule, the paper's GAR: it sees the clients' replies as if it were alone. What it makes
of them comes back as ``GAR = (w^t - aggregated) / η``, and the method's ``step`` does the rest, the same code as in the
simulator. For rules that do not care where the origin lies (FedAvg, the robust ones) that is the paper's formula to the
letter; strategies that take a step of their own (FedAdam, FedAvgM, QFedAvg) take it first and are then corrected.
"""

import logging
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy
from torch import nn

from equfl.core.errors import ConfigError
from equfl.core.protocol import ServerState
from equfl.core.random import Seed
from equfl.core.schema import Schema
from equfl.core.vector import Network
from equfl.fairness.base import Notion
from equfl.flower.inner_memory import InnerMemory, hand_over
from equfl.flower.records import RECORD, Form, pack
from equfl.flower.rounds import Rounds
from equfl.flower.saved_rounds import SavedRounds
from equfl.methods.base import Method, changes

LOG = logging.getLogger("flwr")
Evaluation = Callable[[int, ArrayRecord], MetricRecord | None]


class EquFLStrategy(Strategy):
    """``inner`` with ``method`` around it, started as any strategy: ``start(grid, initial_arrays, num_rounds)``.

    Differential privacy goes inside: ``EquFLStrategy(DifferentialPrivacyServerSideFixedClipping(...), ...)``.
    """

    def __init__(
        self,
        inner: Strategy,
        *,
        method: Method,
        model: nn.Module | Network,
        schema: Schema,
        target: Notion,
        learning_rate: float,
        local_steps: float = 1.0,
        seed: int = 0,
        state: Path | str | None = None,
    ) -> None:
        """Wrap a strategy.

        Args:
            inner: The strategy as it is used today; it may wrap others.
            method: What the server does beyond aggregating, the same object as in the simulator.
            model: The architecture that the clients train; its weights are not used.
            schema: What the model's inputs mean, which the server's own rows must obey.
            target: The notion of fairness whose bias should fall.
            learning_rate: The clients' learning rate, the paper's η.
            local_steps: How many gradient steps a client takes in a round, on average.
            seed: Whatever the server draws follows from it.
            state: A folder in which every round is saved, and from which a run that was killed goes on.
        """
        if learning_rate <= 0 or local_steps <= 0:
            raise ConfigError(
                f"learning_rate = {learning_rate}, local_steps = {local_steps}",
                wanted="numbers above 0",
                remedy="Give the clients' own learning rate, and epochs * rows / batch size",
            )
        method.check(target)
        asked = [one.name for one in method.leaves() if one.when == "once"]
        if asked:
            raise ConfigError(
                f"method = {method.name}, which asks the clients for {', '.join(asked)} before the first round",
                wanted="a method whose clients answer in the rounds only: a Flower strategy has no round before them",
                remedy="Run it in the simulator",
            )
        self.inner = inner
        self.method = method
        self.network = model if isinstance(model, Network) else Network(model)
        self.schema = schema
        self.target = target
        self.learning_rate = learning_rate
        self.local_steps = local_steps
        self.seed = Seed(seed)
        self._saved = None if state is None else SavedRounds(Path(state).expanduser())
        self._memory = InnerMemory(inner)
        self._offset = 0
        self._form: Form
        self._rounds: Rounds
        self._state: ServerState

    # --- The run -----------------------------------------------------------------------------------------------------

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float | int = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Evaluation | None = None,
    ) -> Result:
        """As ``Strategy.start``; from a ``state`` folder that holds some of these rounds, only the rest is run."""
        self._begin(initial_arrays, num_rounds)
        done = self._state.round
        if done >= num_rounds:
            LOG.info("equfl: all %d rounds are done already", num_rounds)
            return Result(arrays=self._arrays())
        result = super().start(
            grid,
            self._arrays(),
            num_rounds - done,
            timeout,
            train_config,
            evaluate_config,
            None if evaluate_fn is None else lambda number, arrays: evaluate_fn(number + done, arrays),
        )
        return Result(
            arrays=result.arrays or self._arrays(),
            train_metrics_clientapp=_later(result.train_metrics_clientapp, done),
            evaluate_metrics_clientapp=_later(result.evaluate_metrics_clientapp, done),
            evaluate_metrics_serverapp=_later(result.evaluate_metrics_serverapp, done),
        )

    def _begin(self, initial: ArrayRecord, rounds: int) -> None:
        self._form = Form.of(initial, self.network)
        vector, buffers = self._form.read(initial)
        self._state = ServerState(0, vector, buffers)
        self._rounds = Rounds(
            inner=self.inner,
            method=self.method,
            network=self.network,
            schema=self.schema,
            target=self.target,
            learning_rate=self.learning_rate,
            local_steps=self.local_steps,
            seed=self.seed,
            form=self._form,
            count=rounds,
        )
        if self._saved:
            self._saved.run_is(self._about(rounds), self._form)
            found = self._saved.newest()
            if found:
                self._state = found.state
                self._memory.restore(found.arrays, found.rest)
                LOG.info("equfl: going on after round %d of %d", self._state.round, rounds)
        self._offset = self._state.round

    def _arrays(self) -> ArrayRecord:
        return self._form.write(self._state.vector, self._state.buffers)

    def _about(self, rounds: int) -> dict[str, str | int | float]:
        """What must be the same for a saved run to be gone on with."""
        return {
            "method": repr(self.method),
            "target": repr(self.target),
            "inner": " of ".join(type(link).__name__ for link in self._memory.links),
            "rounds": rounds,
            "seed": self.seed.value,
            "learning_rate": self.learning_rate,
        }

    # --- A round -----------------------------------------------------------------------------------------------------

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The inner strategy's messages, with the method's instructions beside the model."""
        number = server_round + self._offset
        shown = self._form.without_counters(arrays)
        hand_over(self.inner, shown)
        with sampling(self.seed, number):
            messages = list(self.inner.configure_train(number, shown, config, grid))
        instructions = ConfigRecord(pack(self._rounds.instructions(self._state, number)))
        # All messages hold one content, so it is completed once.
        for content in {id(message.content): message.content for message in messages}.values():
            for name in [name for name, record in content.array_records.items() if record is shown]:
                content[name] = arrays
            content[RECORD] = instructions
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The inner strategy's model, taken further by the method; ``None`` where the inner strategy has none."""
        taken = self._rounds.taken(self._state, server_round + self._offset, list(replies))
        moved = taken.state.vector is not self._state.vector
        self._state = taken.state
        if self._saved:
            self._saved.save(taken.state, *self._memory.save())
        return (self._arrays() if moved else None), taken.metrics

    # --- The rest is the inner strategy's ----------------------------------------------------------------------------

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The inner strategy's."""
        return self.inner.configure_evaluate(server_round + self._offset, arrays, config, grid)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """The inner strategy's."""
        return self.inner.aggregate_evaluate(server_round + self._offset, replies)

    def summary(self) -> None:
        """The method and its target, then the inner strategy's summary."""
        LOG.info("\t├──> EquFL: %s for %s, around %s", self.method, self.target, type(self.inner).__name__)
        for hook in ("prepare", "weigh", "objective"):
            if changes(self.method, hook):
                LOG.info("\t│\t└── the clients' code must call %s.%s", type(self.method).__name__, hook)
        self.inner.summary()


@contextmanager
def sampling(seed: Seed, number: int) -> Iterator[None]:
    """Let Flower's choice of clients, which draws from the global ``random``, follow from seed and round alone."""
    before = random.getstate()
    random.seed(seed.generator("participants", round=number).initial_seed())
    try:
        yield
    finally:
        random.setstate(before)


def _later(metrics: dict[int, MetricRecord], rounds: int) -> dict[int, MetricRecord]:
    return {number + rounds: record for number, record in metrics.items()}
