from dataclasses import replace

import pytest
import torch
from scipy.stats import binom, chi2

from equfl.core.errors import ConfigError
from equfl.core.random import Seed
from equfl.privacy.noise import clipped
from equfl.training import dp_sgd
from equfl.training.dp_sgd import DPSGD, row_gradients
from equfl.training.sgd import SGD

from .conftest import mean_loss


def gradients_of(client):
    return row_gradients(client.vector, client.samples, client.network, mean_loss)


def test_with_every_row_in_every_batch_no_noise_and_nothing_to_clip_it_is_gradient_descent(client):
    private = DPSGD(batch_size=100, epochs=5, clip=1e6, noise=0.0)
    torch.testing.assert_close(client.train(private), client.train(SGD(batch_size=100, epochs=5)))


def test_a_rows_gradient_is_the_one_it_has_alone(client):
    found = gradients_of(client)
    for row in (0, 57):
        point = client.vector.clone().requires_grad_()
        alone = client.samples.rows(slice(row, row + 1))
        (gradient,) = torch.autograd.grad(mean_loss(client.network.forward(point, {}, alone.inputs), alone), point)
        torch.testing.assert_close(found[row], gradient)


def test_importance_scales_a_rows_gradient_before_it_is_clipped(client):
    def weighted(logits, samples):
        return (torch.nn.functional.cross_entropy(logits, samples.labels, reduction="none") * samples.importance).mean()

    weights = torch.linspace(0, 5, 100)
    rows = replace(client.samples, importance=weights)
    found = row_gradients(client.vector, rows, client.network, weighted)
    torch.testing.assert_close(found, gradients_of(client) * weights.unsqueeze(1))


def test_one_row_more_or_less_moves_the_sum_by_no_more_than_the_clip(client):
    gradients = 100 * gradients_of(client)
    whole = clipped(gradients, 0.05).sum(dim=0)
    for row in range(0, 100, 7):
        without = clipped(torch.cat([gradients[:row], gradients[row + 1 :]]), 0.05).sum(dim=0)
        assert (whole - without).norm() <= 0.05 * (1 + 1e-4)


def test_each_row_is_in_a_batch_with_the_probability_that_is_accounted_for():
    training = DPSGD(batch_size=25, epochs=500)
    batches = list(training.sampled(100, Seed(3).generator))
    assert len(batches) == training.steps(100) == 2000
    drawn = torch.cat(batches).bincount(minlength=100)
    low, high = binom.ppf([0.00001, 0.99999], 2000, training.share(100))
    assert ((drawn >= low) & (drawn <= high)).all()
    together = sum(1 for batch in batches if (batch < 2).sum() == 2)
    assert binom.ppf(0.0005, 2000, 1 / 16) < together < binom.ppf(0.9995, 2000, 1 / 16)


def test_a_client_with_few_rows_uses_all_of_them():
    training = DPSGD(batch_size=64)
    assert (training.share(40), training.expected(40)) == (1.0, 40.0)
    assert all(len(batch) == 40 for batch in training.sampled(40, Seed(0).generator))


def test_the_noise_is_on_the_sum_and_divided_by_the_expected_length(client):
    quiet, loud = (client.train(DPSGD(noise=noise, batches=1, batch_size=20)) for noise in (0.0, 2.0))
    low, high = chi2.ppf([0.0005, 0.9995], len(quiet))
    assert low < ((loud - quiet).double() / (0.1 * 2.0 / 20)).square().sum() < high


def test_an_empty_batch_is_a_step_of_noise_alone(client, monkeypatch):
    monkeypatch.setattr(DPSGD, "sampled", lambda self, rows, generator: iter([torch.empty(0, dtype=torch.int64)]))
    moved = client.train(DPSGD(noise=2.0, batch_size=20)) - client.vector
    assert moved.std() == pytest.approx(0.1 * 2.0 / 20, rel=0.1)


def test_rows_that_do_not_fit_into_memory_together_give_the_same_sum(client, monkeypatch):
    whole = client.train(DPSGD())
    monkeypatch.setattr(dp_sgd, "AT_ONCE", 3 * len(client.vector))
    torch.testing.assert_close(client.train(DPSGD()), whole)


def test_batch_norm_is_refused(client):
    with pytest.raises(ConfigError, match="without batch norm"):
        DPSGD().train(
            client.vector,
            {"1.running_mean": torch.zeros(3)},
            client.samples,
            network=client.network,
            objective=mean_loss,
            generator=Seed(0).generator,
        )


def test_every_step_of_every_round_is_accounted_for_at_the_clients_own_share():
    (release,) = DPSGD(noise=1.0).protection(rows=1000, rounds=100).releases
    assert (release.noise, release.times, release.share) == (1.0, 1600, 0.064)
