"""The median and the trimmed mean, by one way of looking at the middle."""

import pytest
import torch

from equfl.aggregation._trimming import BLOCK, trimmed, trimmed_by_torch
from equfl.aggregation.median import Median
from equfl.aggregation.trimmed_mean import TrimmedMean
from equfl.core.errors import ConfigError
from equfl.core.random import Seed

SHARES = torch.full((5,), 0.2)


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)[:, None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("clients", "drop"), [(1, 0), (2, 0), (7, 3), (8, 3), (51, 5), (51, 25), (300, 149)])
def test_sorting_in_blocks_agrees_with_sorting_at_once(clients, drop, dtype):
    rows = torch.randn(clients, 2 * BLOCK + 3, generator=Seed(0).generator("rows"), dtype=dtype).round(decimals=1)
    torch.testing.assert_close(trimmed(rows, drop), trimmed_by_torch(rows, drop), rtol=1e-6, atol=1e-7)


def test_the_median_of_an_even_number_is_the_mean_of_the_two_in_the_middle(context):
    assert Median()(column(1, 9, 2, 4), SHARES[:4], context).vector.tolist() == [3.0]
    assert Median()(column(1, 9, 2, 4, 5), SHARES, context).vector.tolist() == [4.0]


def test_the_trimmed_mean_drops_the_extremes(context):
    found = TrimmedMean(0.2)(column(3, -1e30, 4, 1e30, 8), SHARES, context)
    assert found.vector.tolist() == [5.0]
    assert found.diagnostics == {"trimmed": 2.0}


def test_trimming_nothing_gives_the_unweighted_mean(context):
    assert TrimmedMean(0.0)(column(1, 2, 6), torch.tensor([0.8, 0.1, 0.1]), context).vector.tolist() == [3.0]


@pytest.mark.parametrize(("clients", "share", "dropped"), [(51, 0.1, 5), (100, 0.29, 29), (5, 0.1, 1), (9, 0.0, 0)])
def test_how_many_are_trimmed_at_each_end(clients, share, dropped):
    assert TrimmedMean(share).trimmed_of(clients) == dropped
    assert TrimmedMean(share).needs(clients) == 2 * dropped + 1


def test_fewer_clients_than_it_needs_are_averaged(context):
    assert TrimmedMean()(column(1, 3), SHARES[:2], context).vector.tolist() == [2.0]
    assert TrimmedMean(0.1).needs(2) == 3


@pytest.mark.parametrize("share", [-0.1, 0.5, 1.0])
def test_shares_that_leave_nothing_are_refused(share):
    with pytest.raises(ConfigError, match=r"aggregation\.trim_share"):
        TrimmedMean(share)
