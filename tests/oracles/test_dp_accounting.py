"""Google's accounting of differential privacy: where it is exact too, and by another of its ways, which bounds ours."""

import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from dp_accounting.rdp import RdpAccountant

from equfl.privacy.accounting import epsilon as epsilon_of
from equfl.privacy.gaussian import gaussian_delta, gaussian_sigma
from equfl.privacy.release import Release


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("releases", [1, 100])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_delta_of_the_gaussian_mechanism(sigma, releases, epsilon):
    theirs = GaussianPrivacyLoss(sigma, sensitivity=releases**0.5).get_delta_for_epsilon(epsilon)
    assert gaussian_delta(sigma, epsilon, releases=releases) == pytest.approx(theirs, rel=1e-6, abs=1e-14)


@pytest.mark.parametrize("delta", [1e-9, 1e-5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_noise_for_a_guarantee(epsilon, delta):
    sigma = gaussian_sigma(epsilon, delta, sensitivity=2.0, releases=8)
    loss = GaussianPrivacyLoss(sigma, sensitivity=2.0 * 8**0.5)
    assert loss.get_delta_for_epsilon(epsilon) == pytest.approx(delta, rel=1e-6)
    assert GaussianPrivacyLoss(0.999 * sigma, sensitivity=2.0 * 8**0.5).get_delta_for_epsilon(epsilon) > delta


@pytest.mark.parametrize(
    ("share", "noise", "times", "expected"),
    [
        (0.01, 1.1, 10_000, 5.654),
        (0.01, 4.0, 10_000, 1.035),
        (1.0, 5.0, 100, 10.80),
        (1.0, 10.0, 100, 4.753),
        (0.064, 1.0, 1600, 21.35),
    ],
)
def test_the_bound_by_renyi_divergences_is_above_ours_and_not_far(share, noise, times, expected):
    accountant = RdpAccountant([float(order) for order in range(2, 257)])
    gaussian = GaussianDpEvent(noise)
    accountant.compose(PoissonSampledDpEvent(share, gaussian) if share < 1 else gaussian, times)
    theirs = accountant.get_epsilon(1e-5)
    assert theirs == pytest.approx(expected, rel=1e-3)
    assert 0.88 * theirs < epsilon_of([Release(noise, times, share)], 1e-5) < theirs
