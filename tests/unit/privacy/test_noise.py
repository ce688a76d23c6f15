import pytest
import torch
from scipy.stats import chi2

from equfl.core.errors import ConfigError
from equfl.core.random import Seed
from equfl.privacy.noise import check_noise, clipped, noisy


def generators(rows):
    return [Seed(0).generator("noise", client=client) for client in range(rows)]


def test_no_vector_is_longer_than_the_clip_and_none_changes_direction():
    vectors = 10 ** torch.linspace(-4, 4, 50).unsqueeze(1) * torch.randn(50, 7, generator=Seed(0).generator("rows"))
    short = clipped(vectors, 0.5)
    assert (short.norm(dim=1) <= 0.5 * (1 + 1e-6)).all()
    torch.testing.assert_close(torch.cosine_similarity(vectors, short, dim=1), torch.ones(50))


def test_what_is_short_enough_stays_as_it_is_and_zero_stays_zero():
    vectors = torch.tensor([[0.3, 0.4], [0.0, 0.0]])
    assert torch.equal(clipped(vectors, 0.6), vectors)


def test_the_noise_has_the_standard_deviation_it_says():
    drawn = noisy(torch.full((4, 25_000), 3.0), 0.2, generators(4)) - 3.0
    low, high = chi2.ppf([0.0005, 0.9995], drawn.numel())
    assert low < (drawn.double() / 0.2).square().sum() < high
    assert abs(drawn.mean()) < 4 * 0.2 / drawn.numel() ** 0.5


def test_every_row_draws_from_its_own_generator():
    together = noisy(torch.zeros(3, 5), 1.0, generators(3))
    alone = noisy(torch.zeros(1, 5), 1.0, generators(3)[2:])
    assert torch.equal(together[2:], alone)
    assert not torch.equal(together[0], together[1])


def test_no_noise_changes_nothing():
    vectors = torch.ones(2, 3)
    assert torch.equal(noisy(vectors, 0.0, generators(2)), vectors)


@pytest.mark.parametrize(
    ("clip", "noise", "delta"), [(0.0, 1.0, 1e-5), (-1.0, 1.0, 1e-5), (1.0, -0.1, 1e-5), (1.0, 1.0, 0.0)]
)
def test_settings_that_say_nothing_are_refused(clip, noise, delta):
    with pytest.raises(ConfigError):
        check_noise(clip, noise, delta)
