import pytest
import torch

from equfl.aggregation.geometric_median import GeometricMedian
from equfl.core.errors import ConfigError
from equfl.core.random import Seed


def median_of(rows, context, **settings):
    rows = torch.as_tensor(rows, dtype=torch.float64)
    return GeometricMedian(**settings)(rows, torch.full((len(rows),), 1 / len(rows)), context)


def test_of_a_triangle_it_is_the_point_that_sees_all_corners_under_equal_angles(context):
    corners = torch.tensor([[0.0, 0.0], [4.0, 0.0], [1.0, 3.0]], dtype=torch.float64)
    point = median_of(corners, context, tolerance=1e-10, iterations=1000).vector
    arms = torch.nn.functional.normalize(corners - point)
    assert torch.allclose(arms @ arms.T, 1.5 * torch.eye(3, dtype=torch.float64) - 0.5, atol=1e-6)


def test_no_point_nearby_has_a_smaller_sum_of_distances(context):
    rows = torch.randn(15, 6, generator=Seed(0).generator("rows"), dtype=torch.float64)
    point = median_of(rows, context, tolerance=1e-9, iterations=1000).vector
    aside = 1e-3 * torch.randn(200, 6, generator=Seed(0).generator("aside"), dtype=torch.float64)
    costs = (rows - (point + aside)[:, None]).norm(dim=2).sum(dim=1)
    assert (costs >= (rows - point).norm(dim=1).sum()).all()


def test_where_most_updates_are_the_same_it_is_that_one(context):
    found = median_of([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [50.0, -7.0]], context)
    torch.testing.assert_close(found.vector, torch.tensor([1.0, 2.0], dtype=torch.float64))


def test_it_stops_early_and_tells_after_how_many_steps(context):
    rows = torch.randn(15, 6, generator=Seed(0).generator("rows"))
    done = median_of(rows, context).diagnostics["iterations"]
    assert 1 < done < 100
    assert median_of(rows, context, iterations=2).diagnostics == {"iterations": 2.0}


@pytest.mark.parametrize("settings", [{"iterations": 0}, {"tolerance": -1.0}])
def test_settings_outside_their_range_are_refused(settings):
    with pytest.raises(ConfigError, match=f"aggregation.{next(iter(settings))}"):
        GeometricMedian(**settings)
