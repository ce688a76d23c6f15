"""Federated evaluation of bias: each client sends a table of counts, and the server adds the tables up.

An average of the clients' biases would say little, since each has its own; the bias over everybody's rows follows from
the sums exactly, and nothing but counts leaves a client.
"""

import logging
from collections import Counter
from collections.abc import Callable
from typing import TypeGuard

import torch
from flwr.app import MetricRecord, RecordDict
from torch import Tensor

from equfl.core.arrays import Predictions
from equfl.core.samples import Samples
from equfl.fairness.base import GroupNotion
from equfl.fairness.counts import correct, count
from equfl.flower.records import PREFIX, pack, unpack

LOG = logging.getLogger("flwr")


def counted(predictions: Predictions, samples: Samples) -> MetricRecord:
    """What a client's ``evaluate`` returns: the number of its rows, and how many of them fall into each cell."""
    return MetricRecord({"num-examples": len(samples), **pack({"counts": count(predictions, samples)})})


def pooled(*notions: GroupNotion) -> Callable[[list[RecordDict], str], MetricRecord]:
    """For a strategy's ``evaluate_metrics_aggr_fn``: accuracy and bias of the model on all rows of all clients.

    Differs from Flower's own aggregation in that other metrics of the clients are not averaged, and in that a client
    whose counts cannot be used is left out instead of ending the run.
    """

    def aggregate(replies: list[RecordDict], weighted_by_key: str) -> MetricRecord:
        records = [record for reply in replies for record in reply.metric_records.values()]
        sent = [unpack(dict(record)).get("counts") for record in records]
        tables = [table for table in sent if _usable(table)]
        shapes = Counter(table.shape for table in tables)
        tables = [table for table in tables if table.shape == shapes.most_common(1)[0][0]]
        if len(tables) < len(records):
            LOG.warning("equfl: %d of %d clients sent no usable counts", len(records) - len(tables), len(records))
        if not tables:
            return MetricRecord()
        counts = torch.stack(tables).sum(dim=0)
        biases = {f"{PREFIX}{notion.name}": notion.bias(counts).item() for notion in notions}
        return MetricRecord({"accuracy": (correct(counts).sum() / counts.sum()).item(), **biases})

    return aggregate


def _usable(counts: Tensor | None) -> TypeGuard[Tensor]:
    return counts is not None and counts.ndim == 3 and bool((counts.isfinite() & (counts >= 0)).all())
