"""Which replies of a round can be used: an outsider's tensors are looked at before anything is added up.

What is refused is turned into a failed reply, which every strategy knows how to treat: FedAvg and the robust rules go
on without it, and differential privacy skips the round, because its noise is made for a fixed number of clients.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from flwr.app import Error, Message, MetricRecord
from torch import Tensor

from equfl.core.arrays import Vector
from equfl.flower.records import PREFIX, Form, unpack

PARTITION = f"{PREFIX}partition"
"""Where a client says which partition of the data it has."""


@dataclass(frozen=True)
class Answer:
    """A reply that can be used, read before a strategy empties it."""

    reply: Message
    node: int
    client: int
    """The partition where the client says it, its node otherwise."""
    weight: float
    names: tuple[str, str]
    """What its two records are called."""
    metrics: MetricRecord
    vector: Vector
    buffers: dict[str, Tensor]
    reports: dict[str, Tensor]


class Refused(Exception):
    """A reply that cannot be used; the text says why."""


def screened(
    replies: Iterable[Message], form: Form, *, weight_key: str, needed: Sequence[str]
) -> tuple[list[Answer], list[Message]]:
    """The answers in the order of their clients, and the failed replies, those that are refused here among them.

    Clients answer in any order and floating-point sums depend on it, so the order is fixed before anything is summed.
    """
    answers: list[Answer] = []
    failed: list[Message] = []
    for reply in replies:
        if reply.has_error():
            failed.append(reply)
            continue
        try:
            answers.append(read(reply, form, weight_key=weight_key, needed=needed))
        except Refused as reason:
            failed.append(as_failed(reply, str(reason)))
    answers.sort(key=lambda answer: (answer.client, answer.node))
    once: dict[int, Answer] = {}
    for answer in answers:
        first = once.setdefault(answer.client, answer)
        if first is not answer:
            failed.append(as_failed(answer.reply, f"partition {answer.client} was sent by node {first.node} already"))
    kept, others = _same_names(list(once.values()))
    failed += [as_failed(answer.reply, f"records called {answer.names}, unlike most") for answer in others]
    _same_metrics([answer.metrics for answer in kept])
    return kept, failed


def read(reply: Message, form: Form, *, weight_key: str, needed: Sequence[str]) -> Answer:
    """The reply as tensors; our own entries are taken out of it, so that no strategy averages them."""
    node, models, told = reply.metadata.src_node_id, reply.content.array_records, reply.content.metric_records
    if len(models) != 1 or len(told) != 1:
        raise Refused(f"{len(models)} ArrayRecords and {len(told)} MetricRecords; wanted one of each")
    ((name, arrays),), ((metrics_name, metrics),) = models.items(), told.items()
    problem = form.mismatch(arrays)
    if problem:
        raise Refused(problem)
    partition = metrics.pop(PARTITION, None)
    reports = unpack(metrics)
    for key in (weight_key, *needed):
        if not _number(metrics.get(key)):
            raise Refused(f"{key} = {metrics.get(key)}; wanted a finite number")
    weight: Any = metrics[weight_key]
    if weight <= 0:
        raise Refused(f"{weight_key} = {weight}; wanted more than 0")
    try:
        vector, buffers = form.read(arrays)
    except (ValueError, TypeError, EOFError) as error:
        raise Refused(f"arrays that cannot be read ({error})") from error
    if not all(value.isfinite().all() for value in (vector, *buffers.values()) if value.is_floating_point()):
        raise Refused("values that are not finite in the model")
    client = partition if isinstance(partition, int) else node
    names = (name, metrics_name)
    return Answer(reply, node, client, float(weight), names, metrics, vector, buffers, reports)


def as_failed(reply: Message, reason: str) -> Message:
    """A failed reply of the same node."""
    # A reply goes back to the sender; the reply to that comes from the node again.
    return Message(Error(0, reason), reply_to=Message(Error(0, reason), reply_to=reply))


def _same_names(answers: Sequence[Answer]) -> tuple[list[Answer], list[Answer]]:
    """Those whose records are called as most are, and the others: strategies demand one name."""
    most = Counter(answer.names for answer in answers).most_common(1)
    kept = [answer for answer in answers if answer.names == most[0][0]]
    return kept, [answer for answer in answers if answer.names != most[0][0]]


def _same_metrics(records: Sequence[MetricRecord]) -> None:
    """Leave only the metrics that all replies have: strategies demand the same from all."""
    shared = set.intersection(*map(set, records)) if records else set()
    for record in records:
        for key in record.keys() - shared:
            del record[key]


def _number(value: object) -> bool:
    return isinstance(value, int | float) and isfinite(value)


def complete(reports: dict[str, Tensor], expected: dict[str, Tensor]) -> bool:
    """Whether a client's report has the names and shapes of what the method asks for.

    Its numbers are finite, but where the expected ones are not: some methods say NaN for nothing to report.
    """
    return reports.keys() == expected.keys() and all(
        value.shape == expected[name].shape and bool((value.isfinite() | ~expected[name].isfinite()).all())
        for name, value in reports.items()
    )
