"""The nearest point whose entries are not negative and add up to a given total (Duchi et al., 2008)."""

import torch
from jaxtyping import Float
from torch import Tensor


def on_simplex(point: Float[Tensor, " n"], total: Tensor | float = 1.0) -> Float[Tensor, " n"]:
    """``argmin ||x - point||`` over ``x >= 0, sum x = total``: all lose the same amount, but for a floor at 0."""
    falling = point.sort(descending=True).values
    taken = (falling.cumsum(dim=0) - total) / torch.arange(1, len(point) + 1).to(point)
    # The last place at which an entry is still above what would be taken from it.
    support = int((falling > taken).nonzero().max()) if len(point) else 0
    return (point - taken[support]).clamp(min=0)
