"""A round at the server: from the clients' replies to the next state, by way of the inner strategy and the method."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from flwr.app import Message, MetricRecord
from flwr.serverapp.strategy import Strategy
from torch import Tensor

from equfl.core.arrays import Shares, Updates, Vector
from equfl.core.errors import CalibrationError
from equfl.core.gathering import gather
from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.core.random import Seed
from equfl.core.samples import Samples
from equfl.core.schema import Schema
from equfl.core.vector import Network
from equfl.fairness.base import Notion
from equfl.flower.inner_memory import setting
from equfl.flower.inner_rule import InnerRule, NothingAggregated
from equfl.flower.records import PREFIX, Form
from equfl.flower.screening import Answer, complete, screened
from equfl.methods.base import Method, Tensors, changes

LOG = logging.getLogger("flwr")


@dataclass(frozen=True)
class Taken:
    """What became of a round."""

    state: ServerState
    """Its vector is the very one from before where the round changes nothing."""
    metrics: MetricRecord
    """The clients', as the inner strategy sums them up, and what the method tells."""


@dataclass(frozen=True)
class Rounds:
    """All that the rounds of one run have in common."""

    inner: Strategy
    method: Method
    network: Network
    schema: Schema
    target: Notion
    learning_rate: float
    local_steps: float
    seed: Seed
    form: Form
    count: int

    def instructions(self, state: ServerState, number: int) -> Tensors:
        """What goes to the clients along with the model."""
        return self.method.instruct(state, self._context(state, number))

    def taken(self, state: ServerState, number: int, replies: Sequence[Message]) -> Taken:
        """The state after the round; where the inner strategy has no model, the last one stays."""
        weight_key = str(setting(self.inner, "weighted_by_key") or "num-examples")
        loss_key = setting(self.inner, "train_loss_key")  # QFedAvg's
        needed = (str(loss_key),) if loss_key else ()
        answers, failed = screened(replies, self.form, weight_key=weight_key, needed=needed)
        for message in failed:
            LOG.warning("equfl: left out node %d: %s", message.metadata.src_node_id, message.error.reason)
        rule = InnerRule(
            self.inner,
            self.form,
            round=number,
            vector=state.vector,
            learning_rate=self.learning_rate,
            weight_key=weight_key,
        )
        diagnostics: Diagnostics = {}
        try:
            after, diagnostics = self._step(state, self._context(state, number), answers, failed, rule)
        except NothingAggregated as reason:
            LOG.warning("equfl: round %d changes nothing: %s %s", number, type(self.inner).__name__, reason)
            after = replace(state, round=number)
        metrics = rule.metrics or MetricRecord()
        metrics.update({f"{PREFIX}{name}": float(value) for name, value in diagnostics.items()})
        metrics[f"{PREFIX}left_out"] = len(failed)
        return Taken(after, metrics)

    def _step(
        self,
        state: ServerState,
        context: RoundContext,
        answers: Sequence[Answer],
        failed: Sequence[Message],
        rule: InnerRule,
    ) -> tuple[ServerState, Diagnostics]:
        if not answers:
            rule.ask([], failed)
            raise NothingAggregated("had no replies")
        expected = self._expected_reports(state, context)
        telling = [answer for answer in answers if complete(answer.reports, expected)]
        for client in {answer.client for answer in answers} - {answer.client for answer in telling}:
            LOG.warning("equfl: client %d did not report %s", client, ", ".join(expected))
        cohort = self._cohort(state, telling or answers, expected if telling else ())
        rule.of(answers, failed, cohort, telling)
        context = replace(context, aggregate=rule)
        try:
            if not telling:
                raise CalibrationError(
                    "no client reports",
                    wanted=", ".join(expected),
                    remedy="Give the ClientApp the mod equfl.flower.feedback_mod",
                )
            after, diagnostics = self.method.step(state, cohort, context)
        except CalibrationError as error:
            # The federation goes on as the inner strategy alone would have it.
            LOG.warning("equfl: round %d is not calibrated: %s", context.round, error)
            update = context.aggregate(cohort.updates, cohort.shares) if rule.result is None else rule.result
            after, diagnostics = self.method.advance(state, cohort, self.learning_rate * update), {}
        if not after.vector.isfinite().all():
            raise NothingAggregated(f"and {self.method.name} make a model that is not finite")
        return replace(after, buffers={**after.buffers, **rule.buffers}), diagnostics

    def _cohort(self, state: ServerState, answers: Sequence[Answer], reports: Iterable[str]) -> Cohort:
        return gather(
            state,
            [answer.client for answer in answers],
            torch.stack([answer.vector for answer in answers]),
            [answer.weight for answer in answers],
            learning_rate=self.learning_rate,
            buffers={name: torch.stack([answer.buffers[name] for answer in answers]) for name in state.buffers},
            reports={name: torch.stack([answer.reports[name] for answer in answers]) for name in reports},
        )

    def _context(self, state: ServerState, number: int) -> RoundContext:
        def progress(task: str, done: int, total: int) -> None:
            if done * 10 // total != (done - 1) * 10 // total:
                LOG.info("equfl: %s, %d of %d", task, done, total)

        return RoundContext(
            round=number,
            rounds=self.count,
            learning_rate=self.learning_rate,
            network=self.network,
            schema=self.schema,
            aggregate=_not_yet,
            vector=state.vector,
            buffers=state.buffers,
            generator=partial(self.seed.generator, round=number),
            target=self.target,
            local_steps=self.local_steps,
            progress=progress,
        )

    def _expected_reports(self, state: ServerState, context: RoundContext) -> dict[str, Tensor]:
        """What a client reports in this round, as the method would report of a single row of zeros."""
        if not changes(self.method, "report"):
            return {}
        row = Samples(
            inputs=torch.zeros(1, *self.schema.shape),
            labels=torch.zeros(1, dtype=torch.int64),
            groups=torch.zeros(1, dtype=torch.int64),
            classes=len(self.schema.classes),
            group_count=len(self.schema.groups),
        )
        instructions = self.method.instruct(state, context)
        return dict(self.method.report(self.network, state.vector, state.buffers, row, instructions))


def _not_yet(updates: Updates, shares: Shares) -> Vector:
    raise AssertionError("nothing is aggregated before the clients have answered")
