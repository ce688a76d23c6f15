"""MGDA's direction: shorter than every gradient, and down all losses."""

import pytest
import torch
from scipy.optimize import minimize

from equfl.calibration.min_norm import common_descent, min_norm_weights


def gradients(seed: int, count: int = 3, size: int = 6) -> torch.Tensor:
    return torch.randn(count, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("count", [1, 2, 3, 4])
class TestMinNormWeights:
    def test_the_combination_is_no_longer_than_any_vector_and_points_along_all(self, seed, count):
        vectors = gradients(seed, count)
        direction = min_norm_weights(vectors) @ vectors
        square = direction @ direction
        assert square <= vectors.square().sum(dim=1).min() + 1e-9
        assert (vectors @ direction >= square - 1e-9).all()

    def test_no_other_convex_combination_is_shorter_as_scipy_finds_it(self, seed, count):
        vectors = gradients(seed, count)
        gram = (vectors @ vectors.T).numpy()
        found = minimize(
            lambda weights: weights @ gram @ weights,
            [1 / count] * count,
            bounds=[(0, 1)] * count,
            constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
        )
        direction = min_norm_weights(vectors) @ vectors
        assert (direction @ direction).item() == pytest.approx(found.fun, rel=1e-4, abs=1e-6)

    def test_the_order_of_the_vectors_does_not_matter(self, seed, count):
        vectors, order = gradients(seed, count), torch.randperm(count, generator=torch.Generator().manual_seed(seed))
        assert torch.allclose(min_norm_weights(vectors[order]), min_norm_weights(vectors)[order], atol=1e-9)


class TestMinNormWeightsByHand:
    def test_opposite_vectors_cancel(self):
        assert min_norm_weights(torch.tensor([[2.0, 0.0], [-2.0, 0.0]])).tolist() == pytest.approx([0.5, 0.5])

    def test_equal_vectors_give_themselves(self):
        vectors = torch.tensor([[1.0, 2.0], [1.0, 2.0]])
        assert torch.allclose(min_norm_weights(vectors) @ vectors, vectors[0])

    def test_orthogonal_units_count_alike(self):
        assert min_norm_weights(torch.eye(3)).tolist() == pytest.approx([1 / 3] * 3)


class TestCommonDescent:
    def test_it_does_not_follow_the_shortest_gradient_alone(self):
        _, weights = common_descent(torch.tensor([[100.0, 0.0], [0.0, 0.01]]))
        assert weights.tolist() == pytest.approx([0.5, 0.5])

    def test_scaling_all_gradients_scales_it(self):
        vectors = gradients(0)
        assert torch.allclose(common_descent(3 * vectors)[0], 3 * common_descent(vectors)[0])

    @pytest.mark.parametrize("nothing", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]])
    def test_a_loss_that_has_arrived_or_is_no_number_has_no_weight(self, nothing):
        direction, weights = common_descent(torch.tensor([[3.0, 4.0], nothing]))
        assert weights.tolist() == [1.0, 0.0]
        assert direction.tolist() == pytest.approx([3.0, 4.0])

    def test_without_any_gradient_it_is_zero(self):
        direction, weights = common_descent(torch.zeros(2, 3))
        assert direction.tolist() == [0, 0, 0]
        assert weights.tolist() == [0, 0]
