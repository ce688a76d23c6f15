"""Google's accounting of differential privacy, where it is exact too."""

import pytest
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

from equfl.privacy.gaussian import gaussian_delta, gaussian_sigma


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
