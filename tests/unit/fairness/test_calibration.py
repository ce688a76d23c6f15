"""Calibration in the paper's sense, parity of the precision, by hand."""

import math

import pytest
import torch

from equfl.core.random import Seed
from equfl.core.samples import Samples
from equfl.fairness.calibration import Calibration
from equfl.fairness.counts import count
from equfl.fairness.equalized_odds import EqualizedOdds

CAL = Calibration()


def test_it_is_the_largest_distance_from_the_overall_precision(three_groups) -> None:
    # Precisions are 8/9, 5/8 and 9/13; overall 22 of 30 positive predictions are right.
    assert CAL.metric(*three_groups) == pytest.approx(8 / 9 - 22 / 30)


def test_predicting_nobody_positive_shows_nothing(three_groups) -> None:
    predictions, samples = three_groups
    assert math.isnan(CAL.metric(torch.zeros_like(predictions), samples))


def test_predicting_everybody_positive_shows_the_largest_deviation_of_a_base_rate(three_groups) -> None:
    predictions, samples = three_groups
    # Base rates 1/2, 1/2 and 1/3; overall 30 of 70.
    assert CAL.metric(torch.ones_like(predictions), samples) == pytest.approx(30 / 70 - 1 / 3)


def test_a_perfect_predictor_is_calibrated(three_groups) -> None:
    assert CAL.metric(three_groups[1].labels, three_groups[1]) == 0


def test_a_group_without_positive_predictions_is_left_out(people) -> None:
    cells = {(0, 1): (6, 10), (0, 0): (2, 10), (1, 1): (2, 10), (1, 0): (2, 10), (2, 1): (0, 10), (2, 0): (0, 10)}
    # Precisions 6/8 and 2/4; overall 8/12.
    assert CAL.metric(*people(cells)) == pytest.approx(8 / 12 - 2 / 4)


def test_it_is_unknown_where_only_one_group_has_positive_predictions(people) -> None:
    # Its own precision is the overall one: a distance of 0 would say nothing.
    assert math.isnan(CAL.metric(*people({(0, 1): (6, 10), (0, 0): (2, 10), (1, 1): (0, 10)})))


def test_a_group_below_the_smallest_share_is_not_judged_but_stays_in_the_overall_value(people) -> None:
    cells = {(0, 1): (50, 100), (1, 1): (40, 80), (1, 0): (10, 18), (2, 0): (2, 2)}
    counts = count(*people(cells))
    assert CAL.bias(counts).item() == pytest.approx(90 / 102)
    assert CAL.bias(counts, min_group_share=0.02).item() == pytest.approx(1 - 90 / 102)


def test_the_loss_compares_positive_rows_with_all_positive_rows(losing) -> None:
    logits, samples = losing([(1, 0, 1), (1, 0, 3), (1, 1, 5), (1, 2, 9), (0, 0, 99)], groups=4)
    # Mean losses in units of log 2: 2, 5 and 9; overall 18 / 4.
    assert CAL.loss(logits, samples).item() == pytest.approx((2.5 + 0.5 + 4.5) * math.log(2))


@pytest.mark.parametrize("seed", range(5))
def test_for_two_groups_the_loss_is_the_positive_half_of_equalized_odds_with_each_pair_once(seed: int) -> None:
    draws = Seed(seed).generator("rows")
    positive = Samples(torch.zeros(30, 1), torch.ones(30).long(), (torch.rand(30, generator=draws) < 0.3).long())
    logits = torch.randn(30, 2, generator=draws)
    torch.testing.assert_close(2 * CAL.loss(logits, positive), EqualizedOdds().loss(logits, positive))
