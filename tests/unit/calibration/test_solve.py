"""Descent with backtracking: down, never up, and to the bottom where there is one."""

import pytest
import torch

from equfl.calibration.solve import solve


def rosenbrock(point: torch.Tensor) -> torch.Tensor:
    return (1 - point[0]) ** 2 + 100 * (point[1] - point[0] ** 2) ** 2


def test_a_bowl_is_solved_exactly():
    scales = torch.tensor([1.0, 30.0, 0.1])
    found = solve(lambda point: (scales * (point - 2) ** 2).sum(), torch.zeros(3), steps=60, tolerance=1e-12)
    assert torch.allclose(found.coordinates, torch.full((3,), 2.0), atol=1e-3)


def test_a_bent_valley_is_followed_where_plain_gradient_steps_get_stuck():
    found = solve(rosenbrock, torch.tensor([-1.2, 1.0], dtype=torch.float64), steps=100, tolerance=1e-12)
    assert found.coordinates.tolist() == pytest.approx([1.0, 1.0], abs=1e-2)


def test_the_value_never_rises_with_more_steps():
    values = [solve(rosenbrock, torch.tensor([-1.2, 1.0]), steps=steps, tolerance=0.0).value for steps in range(20)]
    assert values == sorted(values, reverse=True)


def test_a_kink_ends_the_descent_instead_of_being_jumped_across():
    found = solve(lambda point: point.abs().sum(), torch.tensor([0.7]), steps=60)
    assert found.value < 0.7
    assert found.steps < 60


def test_at_the_bottom_nothing_moves():
    found = solve(lambda point: point.square().sum(), torch.zeros(2), steps=10)
    assert found.coordinates.tolist() == [0, 0]
    assert found.steps <= 1


def test_no_steps_leave_the_start():
    assert solve(rosenbrock, torch.tensor([3.0, 3.0]), steps=0).coordinates.tolist() == [3, 3]
