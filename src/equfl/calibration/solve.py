"""The calibration problem, solved rather than linearised: gradient descent with backtracking inside a scope."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from equfl.calibration.base import Coordinates

FIRST_STEP = 4.0
SUFFICIENT = 0.3
"""A step is taken if the objective falls by at least this share of what the gradient promises."""
SHORTEST = 1e-8


@dataclass(frozen=True)
class Solution:
    """Where the descent ended."""

    coordinates: Coordinates
    value: float
    steps: int


def solve(
    objective: Callable[[Coordinates], Tensor], start: Coordinates, *, steps: int, tolerance: float = 1e-9
) -> Solution:
    """Descend from ``start``; stop after so many steps, or when a step no longer lowers the objective by ``tolerance``.

    Each step is halved until the objective falls enough, and the next one begins at twice the length of the last. A
    direction that is not finite ends the descent where it is.
    """
    point, length = start.detach(), FIRST_STEP
    value, gradient = _value_and_gradient(objective, point)
    for done in range(steps):
        slope = gradient.square().sum().item()
        length *= 2
        while length > SHORTEST:
            nearer, fresh = _value_and_gradient(objective, point - length * gradient)
            if nearer <= value - SUFFICIENT * length * slope:
                break
            length /= 2
        else:
            return Solution(point, value, done)
        gained = value - nearer
        point, value, gradient = point - length * gradient, nearer, fresh
        if gained < tolerance:
            return Solution(point, value, done + 1)
    return Solution(point, value, steps)


def _value_and_gradient(objective: Callable[[Coordinates], Tensor], point: Coordinates) -> tuple[float, Coordinates]:
    point = point.detach().requires_grad_()
    with torch.enable_grad():
        value = objective(point)
        (gradient,) = torch.autograd.grad(value, point)
    return value.item(), gradient
