"""Equalized odds, by hand."""

import math

import pytest
import torch

from equfl.fairness.counts import count
from equfl.fairness.equalized_odds import EqualizedOdds

EO = EqualizedOdds()


def test_it_is_the_largest_gap_of_true_or_false_positive_rates(three_groups) -> None:
    assert EO.metric(*three_groups) == pytest.approx(0.4)


def test_the_worst_label_decides(people) -> None:
    assert EO.metric(*people({(0, 1): (5, 10), (1, 1): (6, 10), (0, 0): (0, 4), (1, 0): (1, 2)})) == pytest.approx(0.5)


@pytest.mark.parametrize("constant", [0, 1])
def test_a_constant_predictor_is_fair(three_groups, constant: int) -> None:
    predictions, samples = three_groups
    assert EO.metric(torch.full_like(predictions, constant), samples) == 0


def test_a_perfect_predictor_is_fair_whatever_the_base_rates(three_groups) -> None:
    assert EO.metric(three_groups[1].labels, three_groups[1]) == 0


def test_an_empty_cell_is_left_out_and_not_taken_for_a_rate_of_zero(people) -> None:
    cells = {(0, 1): (6, 10), (1, 1): (7, 10), (0, 0): (2, 10), (1, 0): (2, 10), (2, 0): (3, 10)}
    assert EO.metric(*people(cells)) == pytest.approx(0.1)


def test_a_label_that_only_one_group_has_is_skipped(people) -> None:
    assert EO.metric(*people({(0, 1): (9, 10), (0, 0): (2, 10), (1, 0): (3, 10)})) == pytest.approx(0.1)


def test_it_is_unknown_where_no_label_has_two_groups(people) -> None:
    assert math.isnan(EO.metric(*people({(0, 1): (9, 10), (1, 0): (2, 10)})))
    assert math.isnan(EO.metric(*people({(0, 1): (9, 10), (0, 0): (2, 10)}, groups=2)))


def test_a_group_below_the_smallest_share_is_not_judged(people) -> None:
    cells = {(0, 1): (50, 100), (0, 0): (10, 97), (1, 1): (60, 100), (1, 0): (10, 100), (2, 1): (3, 3)}
    counts = count(*people(cells))
    assert EO.bias(counts).item() == pytest.approx(0.5)
    assert EO.bias(counts, min_group_share=0.01).item() == pytest.approx(0.1)
    assert math.isnan(EO.bias(counts, min_group_share=0.6).item())


def test_the_loss_counts_each_pair_of_each_label_twice(losing) -> None:
    rows = [(1, 0, 1), (1, 0, 3), (1, 1, 5), (1, 2, 9), (0, 0, 1), (0, 1, 1), (0, 2, 2)]
    logits, samples = losing(rows, groups=3)
    # Mean losses in units of log 2: 2, 5, 9 for label 1, and 1, 1, 2 for label 0.
    pairs = (3 + 4 + 7) + (0 + 1 + 1)
    assert EO.loss(logits, samples).item() == pytest.approx(2 * pairs * math.log(2))


def test_the_loss_skips_pairs_with_an_empty_cell(losing) -> None:
    logits, samples = losing([(1, 0, 1), (1, 1, 4), (0, 0, 7)])
    assert EO.loss(logits, samples).item() == pytest.approx(2 * 3 * math.log(2))
