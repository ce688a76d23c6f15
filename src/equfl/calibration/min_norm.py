"""One direction down several losses at once: the min-norm point of their gradients (MGDA; Désidéri, 2012).

Among all convex combinations ``d = sum_j c_j q_j`` the shortest one has ``d . q_j >= |d|²`` for every j, so a step
along -d lowers every loss. Where it is zero no direction does: the point is Pareto-stationary.
"""

from collections.abc import Iterator
from itertools import combinations

import torch
from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Vector

Gradients = Float[Tensor, "losses parameters"]

NOTHING = 1e-12
"""Norm of a gradient that has arrived."""


def common_descent(gradients: Gradients) -> tuple[Vector, Float[Tensor, " losses"]]:
    """The shortest combination of the gradients, each first brought to length 1, and the weights it has.

    Without the normalisation the loss with the shortest gradient gets nearly all weight. The result is brought back to
    the mean length of the gradients. Losses that are not finite or have arrived have weight 0.
    """
    lengths = gradients.norm(dim=1)
    alive = lengths.isfinite() & (lengths > NOTHING)
    weights = torch.zeros_like(lengths)
    if not alive.any():
        return gradients.new_zeros(gradients.shape[1]), weights
    units = gradients[alive] / lengths[alive].unsqueeze(1)
    weights[alive] = min_norm_weights(units)
    return lengths[alive].mean() * (weights[alive] @ units), weights


def min_norm_weights(vectors: Gradients) -> Float[Tensor, " losses"]:
    """The convex weights of the shortest combination, exactly: the best of the solutions on every subset.

    On the right subset the combination is as long along each of its vectors, so its weights are proportional to the
    solution of ``G c = 1`` with the Gram matrix G. Notions are few, and so are their subsets.
    """
    gram = (vectors.double() @ vectors.double().T).cpu()
    best = min(_candidates(gram), key=lambda weights: (weights @ gram @ weights).item())
    return best.to(vectors)


def _candidates(gram: Float[Tensor, "n n"]) -> Iterator[Float[Tensor, " n"]]:
    for size in range(1, len(gram) + 1):
        for subset in combinations(range(len(gram)), size):
            chosen = torch.tensor(subset)
            # The constrained minimum: gram c = multiplier, sum c = 1; least squares, as vectors may be dependent.
            system = torch.zeros(size + 1, size + 1, dtype=gram.dtype)
            system[:size, :size] = gram[chosen][:, chosen]
            system[:size, size] = system[size, :size] = 1
            wanted = torch.zeros(size + 1, 1, dtype=gram.dtype)
            wanted[size] = 1
            part = torch.linalg.lstsq(system, wanted, driver="gelsd").solution[:size, 0]
            if (part >= -1e-12).all() and abs(part.sum().item() - 1) < 1e-6:
                weights = torch.zeros(len(gram), dtype=gram.dtype)
                weights[chosen] = part.clamp(min=0)
                yield weights / weights.sum()
