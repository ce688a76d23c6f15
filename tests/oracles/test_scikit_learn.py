"""Nearest rows against scikit-learn's brute force."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors
from torch.nn.functional import one_hot

from equfl.core.random import Seed
from equfl.fairness.neighbours import nearest


def census(rows: int) -> torch.Tensor:
    """Numbers and one-hot codes, so many rows that they are put into buckets."""
    draws = Seed(0).generator("rows")
    numbers = torch.randn(rows, 3, generator=draws)
    codes = [one_hot((torch.rand(rows, generator=draws) ** 2 * size).long(), size) for size in (2, 5, 9, 6)]
    return torch.cat([numbers, *codes], dim=1)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize(
    "inputs",
    [census(6000), census(900), torch.randn(5000, 40, generator=Seed(1).generator("rows"))],
    ids=["buckets", "few rows", "many numbers"],
)
def test_the_same_rows_are_nearest_in_the_same_order(inputs: torch.Tensor, include_self: bool) -> None:
    rows = inputs.double().numpy()
    search = NearestNeighbors(n_neighbors=5, algorithm="brute").fit(rows)
    distances, theirs = search.kneighbors(rows if include_self else None)
    found = nearest(inputs, k=5, include_self=include_self).numpy()
    # Where two rows are equally far but for rounding, either may come first.
    differ = (found != theirs).any(axis=1)
    assert differ.mean() < 0.01
    ours = np.sqrt(np.square(rows[:, None] - rows[found]).sum(axis=2))
    np.testing.assert_allclose(ours, distances, atol=1e-6)
