"""The calibration problem, solved rather than linearised: descent with backtracking inside a scope.

Plain gradient steps need hundreds of evaluations where two gaps pull against each other. The direction therefore comes
from L-BFGS (Nocedal, 1980), which learns the curvature from the steps already made.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from equfl.calibration.base import Coordinates

FIRST_STEP = 4.0
"""Length of the first step, in gradients; from then on directions have their own length."""
SUFFICIENT = 1e-4
"""A step is taken if the objective falls by at least this share of what the slope promises."""
SHORTEST = 1e-8
REMEMBERED = 10
"""Steps that the curvature is read off."""


@dataclass(frozen=True)
class Solution:
    """Where the descent ended."""

    coordinates: Coordinates
    value: float
    steps: int


def solve(
    objective: Callable[[Coordinates], Tensor], start: Coordinates, *, steps: int, tolerance: float = 1e-7
) -> Solution:
    """Descend from ``start``; stop after so many steps, or when a step no longer lowers the objective by ``tolerance``.

    Each step is halved until the objective falls enough. A direction along which it never does ends the descent.
    """
    point = start.detach()
    value, gradient = _value_and_gradient(objective, point)
    moves: deque[tuple[Tensor, Tensor]] = deque(maxlen=REMEMBERED)
    for done in range(steps):
        direction = _direction(gradient, moves)
        slope = (gradient @ direction).item()
        if slope >= 0:  # what was learned is wrong here: begin anew, down the gradient
            moves.clear()
            direction, slope = -gradient, -gradient.square().sum().item()
        length = 1.0 if moves else FIRST_STEP
        while length > SHORTEST:
            fresh, fresh_gradient = _value_and_gradient(objective, point + length * direction)
            if fresh <= value + SUFFICIENT * length * slope:
                break
            length /= 2
        else:
            return Solution(point, value, done)
        step, turn = length * direction, fresh_gradient - gradient
        if step @ turn > 0:
            moves.append((step, turn))
        gained = value - fresh
        point, value, gradient = point + step, fresh, fresh_gradient
        if gained < tolerance:
            return Solution(point, value, done + 1)
    return Solution(point, value, steps)


def _direction(gradient: Coordinates, moves: deque[tuple[Tensor, Tensor]]) -> Coordinates:
    """Minus the gradient, divided by the curvature that the moves have shown: the two-loop recursion."""
    direction = -gradient
    weights = []
    for step, turn in reversed(moves):
        weight = (step @ direction) / (step @ turn)
        direction = direction - weight * turn
        weights.append(weight)
    if moves:
        step, turn = moves[-1]
        direction = direction * (step @ turn) / (turn @ turn)
    for (step, turn), weight in zip(moves, reversed(weights), strict=True):
        direction = direction + (weight - (turn @ direction) / (step @ turn)) * step
    return direction


def _value_and_gradient(objective: Callable[[Coordinates], Tensor], point: Coordinates) -> tuple[float, Coordinates]:
    point = point.detach().requires_grad_()
    with torch.enable_grad():
        value = objective(point)
        (gradient,) = torch.autograd.grad(value, point)
    return value.item(), gradient
