"""The loss that clients train on, row by row."""

import torch
from torch.nn import functional

from equfl.core.arrays import Logits, Losses
from equfl.core.samples import Samples


def cross_entropy(logits: Logits, samples: Samples) -> Losses:
    """Cross-entropy of each row, ``-sum_c y_c log softmax(z)_c``, for hard labels and for memberships alike."""
    if samples.labels.is_floating_point():
        return -(samples.labels * torch.log_softmax(logits, dim=-1)).sum(dim=-1)
    return functional.cross_entropy(logits, samples.labels, reduction="none")
