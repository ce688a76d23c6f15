"""Adam (Kingma and Ba, 2015) without what torch loads for it."""

from collections.abc import Mapping

import torch
from torch import Tensor

MEAN, SQUARE, EPSILON = 0.9, 0.999, 1e-8
"""The decays of the two running means, and what is added to the root: the paper's values."""

fused = torch.ops.aten._fused_adam_.default
"""One step of one tensor, in one pass and in place, which torch offers under this name only."""


class Adam:
    """Moves each tensor against its gradient, at its own rate.

    Its reference is ``torch.optim.Adam(..., fused=True)``, with which it agrees to the last bit. That one loads torch's
    compiler when it is made; this takes a second, and the whole synthesis but four.
    """

    def __init__(self, rates: Mapping[Tensor, float]) -> None:
        self.rates = rates
        self.means = {leaf: torch.zeros_like(leaf) for leaf in rates}
        self.squares = {leaf: torch.zeros_like(leaf) for leaf in rates}
        self.steps = {leaf: torch.zeros((), device=leaf.device) for leaf in rates}

    def forget_gradients(self) -> None:
        """The next gradients are not added to the last ones."""
        for leaf in self.rates:
            leaf.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move the tensors by the gradients that they have."""
        for leaf, rate in self.rates.items():
            self.steps[leaf] += 1
            fused(
                [leaf],
                [leaf.grad],
                [self.means[leaf]],
                [self.squares[leaf]],
                [],
                [self.steps[leaf]],
                lr=rate,
                beta1=MEAN,
                beta2=SQUARE,
                weight_decay=0.0,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )
