import pytest
import torch

from equfl.core.errors import ConfigError
from equfl.methods.reweight import Reweight, independence_weights


def weights(samples, method=None, totals=None):
    return (method or Reweight()).prepare(samples, totals or {}).importance


def test_a_row_weighs_what_independence_would_make_of_its_cell(rows):
    # 10 rows; label 0: 4 + 1, label 1: 1 + 4. W = 5 * 5 / (10 * n).
    samples = rows([[4, 1], [1, 4]])
    expected = torch.tensor([0.625] * 4 + [2.5, 2.5] + [0.625] * 4)
    torch.testing.assert_close(weights(samples), expected)


def test_weighted_label_and_group_are_independent_and_the_rows_as_many_as_before(rows):
    samples = rows([[7, 2, 5], [1, 6, 3]])
    weight = weights(samples)
    table = torch.zeros(2, 3).index_put_((samples.labels, samples.groups), weight, accumulate=True)
    torch.testing.assert_close(table, table.sum(1, keepdim=True) * table.sum(0) / table.sum())
    assert weight.sum().item() == pytest.approx(24)


@pytest.mark.parametrize("cells", [[[3, 0], [5, 0]], [[3, 4], [0, 0]]], ids=["one group", "one label"])
def test_with_one_group_or_one_label_every_row_weighs_one(rows, cells):
    torch.testing.assert_close(weights(rows(cells)), torch.ones(sum(map(sum, cells))))


def test_where_a_cell_is_empty_the_mean_weight_is_still_one(rows):
    assert weights(rows([[5, 0], [2, 4]])).mean().item() == pytest.approx(1)


def test_a_single_row_does_not_drown_the_others(rows):
    samples = rows([[400, 1], [100, 99]])
    assert independence_weights(torch.tensor([[400.0, 1.0], [100.0, 99.0]])).max() > 60
    assert weights(samples).max() < 12
    assert weights(samples).mean().item() == pytest.approx(1)


def test_where_the_group_follows_from_the_label_it_does_nothing_for_balanced_groups(rows):
    torch.testing.assert_close(weights(rows([[5, 0], [0, 5]])), torch.ones(10))


def test_with_global_scope_the_counts_are_everybodys(rows):
    method, here, there = Reweight(scope="global"), rows([[4, 1], [1, 4]]), rows([[1, 4], [4, 1]])
    totals = {"cells": method.survey(here)["cells"] + method.survey(there)["cells"]}
    # Together all cells have five rows, so nothing needs weighing, whatever each client's own cells look like.
    torch.testing.assert_close(weights(here, method, totals), torch.ones(10))
    assert Reweight().survey(here) == {}


def test_weights_below_one_at_most_are_refused():
    with pytest.raises(ConfigError, match=r"method\.max_weight"):
        Reweight(max_weight=0.5)
