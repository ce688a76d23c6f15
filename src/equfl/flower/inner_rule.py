"""A Flower strategy as an aggregation rule: updates in, one update out, by way of its ``aggregate_train``."""

from collections.abc import Sequence
from itertools import chain

from flwr.app import Message, MetricRecord
from flwr.serverapp.strategy import Strategy

from equfl.core.arrays import Shares, Updates, Vector
from equfl.core.errors import CohortError
from equfl.core.protocol import Cohort
from equfl.core.vector import Buffers
from equfl.flower.records import Form
from equfl.flower.screening import Answer


class NothingAggregated(Exception):
    """The strategy returned no model, or none that is finite."""


class InnerRule:
    """One round's ``context.aggregate``: ``GAR = (w^t - aggregated) / η``.

    A method that hands on the cohort as it came gets what the strategy makes of the clients' own replies. One that
    changes updates or shares first has them written into the replies. The strategy is asked only once, because it may
    remember what it did.
    """

    def __init__(
        self, strategy: Strategy, form: Form, *, round: int, vector: Vector, learning_rate: float, weight_key: str
    ) -> None:
        self._strategy = strategy
        self._form = form
        self._round = round
        self._vector = vector
        self._learning_rate = learning_rate
        self._weight_key = weight_key
        self._asked = False
        self.metrics: MetricRecord | None = None
        """What the strategy made of the clients' metrics."""
        self.buffers: Buffers = {}
        """What it made of the buffers, but for step counters."""
        self.result: Vector | None = None

    def of(
        self, answers: Sequence[Answer], failed: Sequence[Message], cohort: Cohort, telling: Sequence[Answer]
    ) -> None:
        """The replies of the round, and the cohort that is made of those which tell all that the method asks for."""
        self._answers, self._failed, self._cohort, self._telling = answers, failed, cohort, telling

    def __call__(self, updates: Updates, shares: Shares) -> Vector:
        if self._asked:
            raise CohortError(
                "a method that aggregates twice in a round",
                wanted="once, because Flower's strategies remember what they did",
                remedy="Use it in the simulator, or let it aggregate once",
            )
        self._asked = True
        untouched = updates is self._cohort.updates and shares is self._cohort.shares
        if not untouched:
            self._rewrite(updates, shares)
        answers = self._answers if untouched else self._telling
        vector = self.ask(answers, self._failed)
        self.result = (self._vector - vector) / self._learning_rate
        return self.result

    def ask(self, answers: Sequence[Answer], failed: Sequence[Message]) -> Vector:
        """The model that the strategy makes of the replies."""
        if self._form.counters:
            for answer in answers:
                name, content = answer.names[0], answer.reply.content
                content[name] = self._form.without_counters(content.array_records[name])
        replies = [answer.reply for answer in answers]
        arrays, self.metrics = self._strategy.aggregate_train(self._round, [*replies, *failed])
        if arrays is None:
            raise NothingAggregated("returned no model")
        vector, buffers = self._form.read(arrays)
        if not all(values.isfinite().all() for values in chain([vector], buffers.values())):
            raise NothingAggregated("returned a model that is not finite")
        self.buffers = buffers
        return vector

    def _rewrite(self, updates: Updates, shares: Shares) -> None:
        for answer, update, share in zip(self._telling, updates, shares, strict=True):
            vector = self._vector - self._learning_rate * update
            answer.reply.content[answer.names[0]] = self._form.write(vector, answer.buffers)
            answer.metrics[self._weight_key] = share.item()
