"""What a model predicts, and a first look at it: quick enough for every round. The full view is ``audit``."""

from collections.abc import Sequence

import torch

from equfl.core.arrays import Inputs, Logits, Predictions, Vector
from equfl.core.samples import Shards
from equfl.core.vector import Buffers, Network
from equfl.fairness.base import GroupNotion, Notion
from equfl.fairness.counts import correct, count_by_client

SMALLEST_SHARE = 0.01
"""A group with a smaller share of a client's rows is not judged at that client."""


def logits_of(network: Network, vector: Vector, buffers: Buffers, inputs: Inputs, *, chunk: int = 2**19) -> Logits:
    """The model's logits, row by row.

    About ``chunk`` numbers of the inputs are worked on at a time, so that memory does not grow with the rows.
    """
    rows = max(1, chunk // max(1, inputs[:1].numel()))
    with torch.no_grad():
        return torch.cat([network.forward(vector, buffers, part) for part in inputs.split(rows)])


def predict(network: Network, vector: Vector, buffers: Buffers, inputs: Inputs, *, chunk: int = 2**19) -> Predictions:
    """The class with the largest logit, row by row; the lower class where two are equal."""
    return logits_of(network, vector, buffers, inputs, chunk=chunk).argmax(dim=1)


def score(predictions: Predictions, shards: Shards, notions: Sequence[Notion]) -> dict[str, float]:
    """Accuracy, and each notion on all rows and as the mean over clients.

    Keys: ``accuracy``, ``NOTION/pooled``, ``NOTION/client_mean``. The mean is unweighted and skips the clients whose
    rows cannot show the bias; taking them as 0 would make a federation of one-group clients look fair.
    """
    counts = count_by_client(predictions, shards)
    pooled = counts.sum(dim=0)
    scores = {"accuracy": (correct(pooled).sum() / pooled.sum()).item()}
    for notion in notions:
        if isinstance(notion, GroupNotion):
            whole, clients = notion.bias(pooled).item(), notion.bias(counts, min_group_share=SMALLEST_SHARE)
        else:
            whole, clients = notion.metric(predictions, shards.pooled), notion.by_client(predictions, shards)
        scores[f"{notion.name}/pooled"] = whole
        scores[f"{notion.name}/client_mean"] = clients.nanmean().item()
    return scores
