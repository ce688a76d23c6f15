"""Aggregation rules where scipy and numpy know the same definition."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform
from scipy.stats import trim_mean

from equfl.aggregation._distances import squared_distances_one_by_one
from equfl.aggregation.geometric_median import GeometricMedian
from equfl.aggregation.median import Median
from equfl.aggregation.trimmed_mean import TrimmedMean
from equfl.core.random import Seed


def rows(clients: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(clients, 130, generator=Seed(clients).generator("rows"), dtype=dtype)


def shares(clients: int) -> torch.Tensor:
    return torch.full((clients,), 1 / clients)


@pytest.mark.parametrize("clients", [3, 10, 51, 200])
def test_the_median_is_numpys(clients, context):
    found = Median()(rows(clients), shares(clients), context).vector
    np.testing.assert_allclose(found, np.median(rows(clients).numpy(), axis=0), rtol=1e-12)


@pytest.mark.parametrize(("clients", "share"), [(10, 0.1), (51, 0.1), (51, 0.25), (200, 0.49), (51, 0.0)])
def test_the_trimmed_mean_is_scipys(clients, share, context):
    found = TrimmedMean(share)(rows(clients), shares(clients), context).vector
    np.testing.assert_allclose(found, trim_mean(rows(clients).numpy(), share, axis=0), rtol=1e-9, atol=1e-12)


def test_the_distances_behind_krum_are_scipys():
    expected = squareform(pdist(rows(30).numpy(), "sqeuclidean"))
    np.testing.assert_allclose(squared_distances_one_by_one(rows(30)), expected, rtol=1e-12)


def test_the_geometric_median_is_what_a_general_minimiser_finds(context):
    few = rows(9)[:, :4]
    found = GeometricMedian(iterations=1000, tolerance=1e-10)(few, shares(9), context).vector
    cost = lambda point: np.linalg.norm(few.numpy() - point, axis=1).sum()  # noqa: E731
    expected = minimize(cost, few.numpy().mean(axis=0), method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(found, expected, atol=1e-5)
