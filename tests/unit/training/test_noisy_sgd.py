import pytest
import torch
from scipy.stats import chi2

from equfl.privacy.accounting import epsilon
from equfl.training.noisy_sgd import NoisySGD
from equfl.training.sgd import SGD


def test_without_noise_and_with_nothing_to_clip_it_is_sgd(client):
    assert torch.equal(client.train(NoisySGD(clip=1e6, noise=0.0)), client.train(SGD()))


def test_no_batch_moves_the_model_further_than_the_clip_lets_it(client):
    moved = client.train(NoisySGD(clip=0.01, noise=0.0, batches=1)) - client.vector
    assert moved.norm() == pytest.approx(0.1 * 0.01, rel=1e-3)


def test_the_noise_of_a_step_has_the_papers_size_whatever_the_batch(client):
    for size in (4, 64):
        quiet = client.train(NoisySGD(noise=0.0, batches=1, batch_size=size))
        drawn = client.train(NoisySGD(noise=0.3, batches=1, batch_size=size)) - quiet
        low, high = chi2.ppf([0.0005, 0.9995], len(drawn))
        assert low < (drawn.double() / (0.1 * 0.3 * 0.05)).square().sum() < high


def test_each_step_draws_anew(client):
    one, two = (client.train(NoisySGD(clip=1e-9, noise=1e9, batches=batches)) - client.vector for batches in (1, 2))
    assert torch.cosine_similarity(one, two - one, dim=0).abs() < 0.1


def test_a_row_can_turn_a_gradient_around_once_per_pass():
    (release,) = NoisySGD(noise=0.3, epochs=3).protection(rows=1000, rounds=100).releases
    assert (release.noise, release.times, release.share) == (0.15, 300, 1.0)
    (release,) = NoisySGD(noise=0.3, batches=1).protection(rows=1000, rounds=100).releases
    assert release.times == 100


def test_the_papers_noise_guarantees_nothing_worth_the_name():
    protection = NoisySGD(noise=0.3).protection(rows=1000, rounds=100)
    assert protection.unit == "row"
    assert epsilon(protection.releases, protection.delta) > 1000
