"""Rates of positive predictions with a gradient: count tables in which a prediction may be a probability.

Equal losses do not mean equal rates, and rates are what the metrics compare. With the margin ``m(z)``, the logit of the
class minus that of the rest, a row counts as ``sigmoid(T m)`` of a positive prediction; as T grows this becomes the
hard prediction.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Counts, Logits
from equfl.core.samples import Samples


def margins(logits: Logits) -> Float[Tensor, "samples margins"]:
    """Per row the logit of each class against all others; for two classes one margin, that of class 1."""
    if logits.shape[1] == 2:
        return logits[:, 1:] - logits[:, :1]
    others = torch.eye(logits.shape[1], dtype=torch.bool, device=logits.device)
    rest = logits.unsqueeze(1).masked_fill(others, -torch.inf).logsumexp(dim=2)
    return logits - rest


def soft_tables(margins: Float[Tensor, "samples margins"], samples: Samples, *, sharpness: float) -> Counts:
    """One table (predicted, label, group) per margin, each of the margin's class against the rest."""
    positive = torch.sigmoid(sharpness * margins)
    own = samples.label_weights()[:, -margins.shape[1] :]
    groups = samples.group_weights()
    predicted, labels = torch.stack([1 - positive, positive], dim=2), torch.stack([1 - own, own], dim=2)
    return torch.einsum("ncp,ncl,ng->cplg", predicted, labels, groups)
