import torch

from equfl.core.random import Seed
from equfl.methods._simplex import on_simplex


def test_a_point_on_the_simplex_stays_where_it_is():
    point = torch.tensor([0.2, 0.5, 0.3])
    torch.testing.assert_close(on_simplex(point), point)


def test_all_entries_lose_the_same_but_for_the_floor():
    torch.testing.assert_close(on_simplex(torch.tensor([0.9, 0.5])), torch.tensor([0.7, 0.3]))
    torch.testing.assert_close(on_simplex(torch.tensor([2.0, 0.5, -3.0])), torch.tensor([1.0, 0.0, 0.0]))
    torch.testing.assert_close(on_simplex(torch.tensor([1.0, 1.0]), 0.5), torch.tensor([0.25, 0.25]))


def test_no_point_of_the_simplex_is_nearer():
    draws = Seed(0).generator("points")
    others = torch.distributions.Dirichlet(torch.ones(4)).sample((2000,))
    for _ in range(20):
        point = 2 * torch.randn(4, generator=draws)
        found = on_simplex(point)
        assert abs(found.sum().item() - 1) < 1e-6
        assert (found >= 0).all()
        assert (found - point).norm() <= (others - point).norm(dim=1).min() + 1e-6
