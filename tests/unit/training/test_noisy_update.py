import pytest
import torch
from scipy.stats import chi2

from equfl.core.errors import ConfigError
from equfl.privacy.accounting import epsilon
from equfl.training.dp_sgd import DPSGD
from equfl.training.noisy_sgd import NoisySGD
from equfl.training.noisy_update import NoisyUpdate
from equfl.training.sgd import SGD


def test_without_noise_and_with_nothing_to_clip_it_is_the_training_inside(client):
    torch.testing.assert_close(client.train(NoisyUpdate(clip=1e6, noise=0.0)), client.train(SGD()))


def test_the_model_moves_no_further_than_the_clip(client):
    assert (client.train(SGD()) - client.vector).norm() > 0.05
    moved = client.train(NoisyUpdate(noise=0.0)) - client.vector
    assert moved.norm() == pytest.approx(0.05, rel=1e-4)


def test_clipping_the_gradient_is_tighter_by_the_learning_rate(client):
    moved = client.train(NoisyUpdate(noise=0.0, clip_target="gradient")) - client.vector
    assert moved.norm() == pytest.approx(0.1 * 0.05, rel=1e-3)


@pytest.mark.parametrize(("target", "size"), [("change", 0.3 * 0.05), ("gradient", 0.3 * 0.05 * 0.1)])
def test_the_noise_has_the_papers_size(client, target, size):
    quiet, loud = (client.train(NoisyUpdate(noise=noise, clip_target=target)) for noise in (0.0, 0.3))
    low, high = chi2.ppf([0.0005, 0.9995], len(quiet))
    assert low < ((loud - quiet).double() / size).square().sum() < high


def test_the_noise_says_nothing_about_the_batches(client):
    """With all of the change clipped away, only noise is left: the same whatever was trained."""
    first = client.train(NoisyUpdate(SGD(), clip=1e-9, noise=1e7))
    second = client.train(NoisyUpdate(SGD(epochs=3, batch_size=10), clip=1e-9, noise=1e7))
    torch.testing.assert_close(first, second)


def test_the_guarantee_is_for_all_rows_of_a_client_and_the_papers_is_worth_little():
    protection = NoisyUpdate(noise=0.3).protection(rows=1000, rounds=100)
    assert protection.unit == "client"
    assert epsilon(protection.releases, protection.delta) == pytest.approx(713, rel=0.03)


@pytest.mark.parametrize("inner", [DPSGD(), NoisySGD(), NoisyUpdate()], ids=str)
def test_noise_on_top_of_noise_is_refused(inner):
    with pytest.raises(ConfigError, match="adds noise itself"):
        NoisyUpdate(inner)


def test_it_steps_as_the_training_inside_does():
    training = NoisyUpdate(SGD(learning_rate=0.3, epochs=2))
    assert (training.learning_rate, training.steps(100)) == (0.3, 4)
