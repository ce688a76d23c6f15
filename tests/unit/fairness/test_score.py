"""The look at a model in every round."""

import math

import pytest
import torch

from equfl.core.samples import Samples, Shards
from equfl.fairness.consistency import Consistency
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.fairness.neighbours import nearest
from equfl.fairness.score import predict, score
from equfl.models.mlp import MLP


def test_the_lower_class_wins_a_tie() -> None:
    network = MLP((2,)).network((3,), 2)
    vector = torch.zeros(network.layout.size)
    assert predict(network, vector, {}, torch.randn(7, 3)).tolist() == [0] * 7


def test_predicting_in_chunks_changes_nothing() -> None:
    network = MLP((4,)).network((3,), 2)
    vector = torch.randn(network.layout.size, generator=torch.Generator().manual_seed(0))
    inputs = torch.randn(50, 3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(predict(network, vector, {}, inputs), predict(network, vector, {}, inputs, chunk=9))


def test_accuracy_is_of_all_rows_and_bias_pooled_and_by_client(three_groups) -> None:
    predictions, samples = three_groups
    scores = score(predictions, Shards(samples, (40, 30)), [EqualizedOdds()])
    assert scores["accuracy"] == pytest.approx((8 + 9 + 5 + 7 + 9 + 16) / 70)
    assert scores["equalized_odds/pooled"] == pytest.approx(0.4)
    # The first client has the first two groups, the second one the third group only.
    assert scores["equalized_odds/client_mean"] == pytest.approx(0.3)


def test_consistency_is_searched_for_among_all_rows_and_among_each_clients() -> None:
    inputs = torch.tensor([[0.0], [3.0], [1.0], [2.0]])
    zeros = torch.zeros(4, dtype=torch.long)
    own = torch.cat([nearest(inputs[:2], k=2), nearest(inputs[2:], k=2)])
    shards = Shards(Samples(inputs, zeros, zeros, neighbours=nearest(inputs, k=2)), (2, 2), own)
    scores = score(torch.tensor([0, 1, 0, 1]), shards, [Consistency()])
    assert scores["consistency/pooled"] == pytest.approx(0)
    assert scores["consistency/client_mean"] == pytest.approx(0.5)


def test_small_groups_are_not_judged_at_the_clients_only(people) -> None:
    predictions, samples = people({(0, 1): (50, 100), (1, 1): (60, 99), (2, 1): (0, 1)})
    scores = score(predictions, Shards(samples, (200,)), [DemographicParity()])
    assert scores["demographic_parity/pooled"] == pytest.approx(60 / 99)
    assert scores["demographic_parity/client_mean"] == pytest.approx(60 / 99 - 0.5)


def test_where_no_client_shows_a_bias_the_mean_is_unknown(people) -> None:
    predictions, samples = people({(0, 1): (5, 10), (1, 1): (6, 10)})
    assert math.isnan(
        score(predictions, Shards(samples, (10, 10)), [DemographicParity()])["demographic_parity/client_mean"]
    )
