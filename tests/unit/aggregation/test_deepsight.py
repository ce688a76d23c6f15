"""DeepSight: what it reads off a model, whom it suspects, and whom it drops."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from equfl.aggregation._clustering import NOISE, apart, clusters
from equfl.aggregation._fingerprints import (
    bias_distances,
    division_differences,
    exceedings,
    normalised_energies,
    output_layer,
)
from equfl.aggregation.deepsight import DeepSight
from equfl.core.errors import ConfigError
from equfl.core.random import Seed
from equfl.core.vector import Layout, Network
from equfl.models.mlp import MLP

OUTPUTS = 10
DIGITS = MLP((4,)).network((3,), OUTPUTS)
LAST = Layout(("w", "b"), ((2, 3), (2,)))
"""A layer of three inputs and two outputs, and nothing before it."""


def draws(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=Seed(0).generator("deepsight tests"))


def equal(clients: int) -> torch.Tensor:
    return torch.full((clients,), 1 / clients)


@pytest.fixture
def digits(context):
    """A round of a model with ten outputs."""
    return replace(context, network=DIGITS, vector=MLP((4,)).initial(DIGITS, Seed(0).generator("start"))[0])


def broad_and_narrow(broad: int, narrow: int) -> torch.Tensor:
    """Updates that move all ten outputs, and updates that all move the same one."""
    weights, biases = output_layer(DIGITS.layout)
    updates = draws(broad + narrow, DIGITS.layout.size)
    for span in (weights, biases):
        values = updates[broad:, span].reshape(narrow, OUTPUTS, -1).clone()
        values[:, 1:] = 0
        values[:, :1] = 3.0 + 0.01 * values[:, :1]
        updates[broad:, span] = values.flatten(1)
    return updates


def test_the_normalised_energy_of_an_output_is_its_share_of_the_squared_changes():
    updates = torch.tensor([[1.0, -1.0, 1.0, 0.0, 0.0, 0.5, 1.0, -0.5], [0.0] * 8])
    # |db| + sum |dW|: 1 + 3 = 4 and .5 + .5 = 1
    found = normalised_energies(updates, LAST)
    torch.testing.assert_close(found, torch.tensor([[16 / 17, 1 / 17], [0.5, 0.5]], dtype=torch.float64))
    assert exceedings(found).tolist() == [1, 2]


def test_a_hundred_and_fifty_outputs_are_counted_from_a_hundredth_of_the_largest_on():
    energies = torch.full((1, 150), 0.02, dtype=torch.float64)
    energies[0, 0], energies[0, 1] = 1.0, 0.0099
    assert exceedings(energies).tolist() == [149]


def test_a_single_logit_counts_as_two_so_that_not_everybody_is_suspicious(context):
    network = Network(nn.Sequential(nn.Linear(3, 1)))
    energies = normalised_energies(draws(6, 4), network.layout)
    assert energies.shape == (6, 2)
    assert exceedings(energies).tolist() == [1] * 6
    found = DeepSight()(draws(6, 4), equal(6), replace(context, network=network, vector=draws(4)))
    assert found.accepted.all()


def test_predictions_are_compared_by_their_ratio_to_the_global_models():
    network = Network(nn.Sequential(nn.Linear(3, 2)))
    even, uneven = torch.zeros(8), torch.tensor([0.0] * 6 + [0.0, torch.tensor(3.0).log().item()])
    found = division_differences(torch.stack([even, uneven]), even, {}, network, draws(20, 3))
    torch.testing.assert_close(found, torch.tensor([[1.0, 1.0], [0.5, 1.5]], dtype=torch.float64))


def test_a_model_without_predictions_is_as_different_as_can_be():
    network = Network(nn.Sequential(nn.Linear(3, 2)))
    far = torch.full((1, 8), 3e38)
    assert network.forward(far[0], {}, draws(20, 3)).isnan().any(), "else this test sees nothing"
    assert division_differences(far, torch.zeros(8), {}, network, draws(20, 3)).tolist() == [[1e6, 1e6]]


def test_bias_changes_are_compared_by_their_direction():
    updates = torch.zeros(5, 8)
    updates[:4, 6:] = torch.tensor([[1.0, 0.0], [5.0, 0.0], [0.0, 1e30], [-1e-20, 0.0]])
    expected = [[0, 0, 1, 2, 1], [0, 0, 1, 2, 1], [1, 1, 0, 1, 1], [2, 2, 1, 0, 1], [1, 1, 1, 1, 0]]
    torch.testing.assert_close(bias_distances(updates, LAST), torch.tensor(expected, dtype=torch.float64))
    assert (bias_distances(torch.zeros(3, 8), LAST) == 0).all()


def test_clusters_are_found_and_strangers_belong_to_none():
    points = torch.cat([0.1 * draws(8, 2), 10 + 0.1 * draws(8, 2), torch.tensor([[50.0, -50.0]])])
    labels = clusters(points, neighbours=3)
    assert len(set(labels[:8].tolist())) == len(set(labels[8:16].tolist())) == 1
    assert labels[0] != labels[8]
    assert labels[16] == NOISE
    away = apart(labels)
    assert (away[:8, :8].sum(), away[:8, 8:].mean(), away[16, :16].mean(), away[16, 16]) == (0, 1, 1, 0)


@pytest.mark.parametrize("points", [draws(3, 2), torch.ones(9, 2)], ids=["few", "all alike"])
def test_what_cannot_be_told_apart_is_one_cluster(points):
    assert clusters(points, neighbours=3).tolist() == [0] * len(points)


def test_a_cluster_of_clients_with_one_label_among_clients_with_ten_is_dropped(digits):
    found = DeepSight(draws=200)(broad_and_narrow(12, 5), equal(17), digits)
    assert found.accepted.tolist() == [True] * 12 + [False] * 5
    assert found.diagnostics["suspicious"] == 5


def test_who_is_left_is_shortened_to_the_median_of_all_and_averaged(digits):
    updates = broad_and_narrow(12, 5)
    updates[0] *= 100
    norms = updates.double().norm(dim=1)
    limit = norms.sort().values[8]
    expected = (updates * (limit / norms).clamp(max=1)[:, None])[:12].mean(dim=0)
    found = DeepSight(draws=200)(updates, equal(17), digits)
    torch.testing.assert_close(found.vector.double(), expected, rtol=1e-5, atol=1e-6)
    assert found.diagnostics["limit"] == pytest.approx(limit.item())
    assert found.diagnostics["shortened"] == (norms > limit).sum()


def test_with_two_outputs_nobody_is_suspicious_and_it_only_shortens(context):
    updates = draws(20, len(context.vector))
    found = DeepSight(draws=100)(updates, equal(20), context)
    norms = updates.norm(dim=1, keepdim=True)
    assert found.accepted.all()
    assert found.diagnostics["suspicious"] == 0
    expected = (updates * (norms.quantile(0.5) / norms).clamp(max=1)).mean(dim=0)
    torch.testing.assert_close(found.vector, expected, rtol=1e-5, atol=1e-6)


def test_if_everybody_is_dropped_the_update_is_zero_or_the_shortened_mean_as_one_wishes(digits):
    three = broad_and_narrow(2, 1)  # too few to be told apart, and a third of them suspicious
    skipped = DeepSight()(three, equal(3), digits)
    assert not skipped.accepted.any()
    assert (skipped.vector == 0).all()
    anyhow = DeepSight(on_empty="clipped_mean")(three, equal(3), digits)
    assert anyhow.accepted.all()
    assert anyhow.diagnostics["empty"] == 1
    assert 0 < anyhow.vector.norm() <= anyhow.diagnostics["limit"]


def test_a_model_without_a_linear_layer_with_biases_at_its_end_is_refused_before_the_start():
    with pytest.raises(ConfigError, match="without weights and biases in its last layer"):
        DeepSight().check(10, Network(nn.Sequential(nn.Linear(3, 2, bias=False))))
    DeepSight().check(10, DIGITS)


@pytest.mark.parametrize("settings", [{"suspicious_share": 0.0}, {"draws": 0}, {"neighbours": 0}])
def test_settings_outside_their_range_are_refused(settings):
    with pytest.raises(ConfigError, match=f"aggregation.{next(iter(settings))} = 0"):
        DeepSight(**settings)
