"""Demographic parity, by hand."""

import math

import pytest
import torch

from equfl.core.samples import Shards, concatenate
from equfl.fairness.counts import count
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.score import score

DP = DemographicParity()


def test_it_is_the_largest_gap_of_positive_rates(three_groups) -> None:
    # 9 of 20, 8 of 20 and 13 of 30 rows are predicted positive.
    assert DP.metric(*three_groups) == pytest.approx(9 / 20 - 8 / 20)


@pytest.mark.parametrize("constant", [0, 1])
def test_a_constant_predictor_is_fair(three_groups, constant: int) -> None:
    predictions, samples = three_groups
    assert DP.metric(torch.full_like(predictions, constant), samples) == 0


def test_a_perfect_predictor_shows_the_gap_of_the_base_rates(three_groups) -> None:
    # Half of the first two groups and a third of the last one is positive.
    assert DP.metric(three_groups[1].labels, three_groups[1]) == pytest.approx(1 / 2 - 1 / 3)


def test_a_declared_group_without_rows_is_left_out(people) -> None:
    assert DP.metric(*people({(0, 1): (8, 10), (1, 0): (5, 10)}, groups=4)) == pytest.approx(0.3)


def test_it_is_unknown_for_one_group(people) -> None:
    assert math.isnan(DP.metric(*people({(0, 1): (8, 10), (0, 0): (1, 10)}, groups=2)))


def test_a_group_below_the_smallest_share_is_not_judged(people) -> None:
    counts = count(*people({(0, 1): (50, 100), (1, 1): (60, 99), (2, 1): (0, 1)}))
    assert DP.bias(counts).item() == pytest.approx(60 / 99)
    assert DP.bias(counts, min_group_share=0.01).item() == pytest.approx(60 / 99 - 0.5)
    assert DP.bias(counts, min_group_share=0.005).item() == pytest.approx(60 / 99)


def test_clients_can_all_be_fair_where_their_union_is_not(people) -> None:
    # Simpson: each client treats its groups alike, but who is mostly here is mostly accepted here.
    here, there = people({(0, 1): (72, 90), (1, 1): (8, 10)}), people({(0, 1): (2, 10), (1, 1): (18, 90)})
    predictions, shards = torch.cat([here[0], there[0]]), concatenate([here[1], there[1]])
    scores = score(predictions, shards, [DP])
    assert scores["demographic_parity/client_mean"] == 0
    assert scores["demographic_parity/pooled"] == pytest.approx(0.74 - 0.26)


def test_the_clients_mean_skips_clients_of_one_group(people) -> None:
    predictions, samples = people({(0, 1): (9, 10), (1, 1): (5, 10), (0, 0): (10, 10)})
    scores = score(predictions, Shards(samples, (20, 10)), [DP])
    assert scores["demographic_parity/client_mean"] == pytest.approx(0.4)
    assert scores["demographic_parity/pooled"] == pytest.approx(19 / 20 - 0.5)


def test_the_loss_counts_each_pair_of_groups_twice(losing) -> None:
    # Mean losses in units of log 2: 2, 5 and 9; labels do not matter.
    logits, samples = losing([(1, 0, 1), (0, 0, 3), (1, 1, 5), (0, 2, 9)], groups=4)
    assert DP.loss(logits, samples).item() == pytest.approx(2 * (3 + 4 + 7) * math.log(2))


def test_a_perfect_model_has_no_loss_though_its_base_rates_differ(losing) -> None:
    logits, samples = losing([(1, 0, 1e-9), (1, 0, 1e-9), (0, 1, 1e-9)])
    assert DP.loss(logits, samples).item() == pytest.approx(0, abs=1e-8)
    assert DP.metric(logits.argmax(dim=1), samples) == 1
