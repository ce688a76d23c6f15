"""The calibration problem, solved rather than linearised: descent with backtracking inside a scope.

Plain gradient steps need hundreds of evaluations where two gaps pull against each other. The direction therefore comes
from L-BFGS (Nocedal, 1980), which learns the curvature from the steps already made.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from equfl.calibration.base import Coordinates

FIRST_STEP = 4.0
"""Length of the first step, in gradients; from then on directions have their own length."""
SUFFICIENT = 1e-4
"""A step is taken if the objective falls by at least this share of what the slope promises."""
FLATTER = 0.9
"""A step is too short if the slope at its end is still more than this share of the slope at its beginning."""
TRIALS = 40
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

    Each step is halved until the objective falls enough, and doubled while it goes on falling as steeply (Wolfe, 1969).
    A direction along which the objective never falls ends the descent.
    """
    here = _Point.of(objective, start.detach())
    moves: deque[tuple[Tensor, Tensor]] = deque(maxlen=REMEMBERED)
    for done in range(steps):
        direction = _direction(here.gradient, moves)
        if here.gradient @ direction >= 0:  # what was learned is wrong here: begin anew, down the gradient
            moves.clear()
            direction = -here.gradient
        there = _step(objective, here, direction, first=1.0 if moves else FIRST_STEP)
        if there is None:
            return Solution(here.coordinates, here.value, done)
        step, turn = there.coordinates - here.coordinates, there.gradient - here.gradient
        if step @ turn > 0:
            moves.append((step, turn))
        gained, here = here.value - there.value, there
        if gained < tolerance:
            return Solution(here.coordinates, here.value, done + 1)
    return Solution(here.coordinates, here.value, steps)


@dataclass(frozen=True)
class _Point:
    coordinates: Coordinates
    value: float
    gradient: Coordinates

    @classmethod
    def of(cls, objective: Callable[[Coordinates], Tensor], coordinates: Coordinates) -> "_Point":
        point = coordinates.detach().requires_grad_()
        with torch.enable_grad():
            value = objective(point)
            (gradient,) = torch.autograd.grad(value, point)
        return cls(point.detach(), value.item(), gradient)


def _step(
    objective: Callable[[Coordinates], Tensor], here: _Point, direction: Coordinates, *, first: float
) -> _Point | None:
    """The point where a step along the direction ends; ``None`` if the objective does not fall."""
    slope = (here.gradient @ direction).item()
    length, short, long, found = first, 0.0, inf, None
    for _ in range(TRIALS):
        there = _Point.of(objective, here.coordinates + length * direction)
        if not there.value <= here.value + SUFFICIENT * length * slope:
            long = length
        elif (there.gradient @ direction).item() < FLATTER * slope:
            found, short = there, length
        else:
            return there
        length = (short + long) / 2 if long < inf else 2 * length
    return found


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
