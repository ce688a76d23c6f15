from math import inf, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equfl.core.errors import ConfigError
from equfl.privacy.gaussian import gaussian_delta, gaussian_epsilon, gaussian_sigma

DELTA = 1e-5
MANY = st.integers(1, 500)
NOISE = st.floats(0.05, 50)


@pytest.mark.parametrize(("sigma", "epsilon"), [(0.1, 5480), (0.2, 1490), (0.3, 713)])
def test_the_papers_noise_costs_what_the_accounting_by_moments_says_or_a_little_less(sigma, epsilon):
    """The paper's levels over a hundred rounds; the figures are upper bounds, by fractional orders."""
    exact = gaussian_epsilon(sigma, DELTA, releases=100)
    assert 0.97 * epsilon < exact < 1.001 * epsilon


@pytest.mark.parametrize(("sigma", "bound"), [(5.0, 10.80), (10.0, 4.753)])
def test_the_exact_epsilon_is_below_the_bound_by_moments_and_near_it(sigma, bound):
    assert 0.9 * bound < gaussian_epsilon(sigma, DELTA, releases=100) < bound


def test_a_value_by_hand():
    # μ = 1, ε = 1: Φ(-1/2) - e Φ(-3/2) = 0.308538 - 2.718282 * 0.066807.
    assert gaussian_delta(1.0, 1.0) == pytest.approx(0.126936737507, rel=1e-10)


def test_at_epsilon_zero_delta_is_the_distance_between_two_normals():
    assert gaussian_delta(1.0, 0.0) == pytest.approx(0.382924922548, rel=1e-10)  # 2 Φ(1/2) - 1


@given(NOISE, st.floats(0.01, 10), MANY)
def test_so_many_releases_are_one_with_a_larger_sensitivity(sigma, sensitivity, releases):
    together = gaussian_epsilon(sigma, DELTA, sensitivity=sensitivity, releases=releases)
    assert together == pytest.approx(gaussian_epsilon(sigma, DELTA, sensitivity=sensitivity * sqrt(releases)), rel=1e-9)


@given(st.floats(0.01, 1000), st.sampled_from([1e-9, 1e-5, 0.01]), MANY)
def test_the_noise_for_an_epsilon_gives_that_epsilon_and_never_more(epsilon, delta, releases):
    sigma = gaussian_sigma(epsilon, delta, releases=releases)
    assert gaussian_epsilon(sigma, delta, releases=releases) == pytest.approx(epsilon, rel=1e-6)
    assert gaussian_delta(sigma, epsilon, releases=releases) <= delta * (1 + 1e-9)


@given(NOISE, MANY)
def test_more_noise_and_fewer_releases_are_more_private(sigma, releases):
    here = gaussian_epsilon(sigma, DELTA, releases=releases)
    assert gaussian_epsilon(1.1 * sigma, DELTA, releases=releases) < here
    assert gaussian_epsilon(sigma, DELTA, releases=releases + 1) > here
    assert gaussian_epsilon(sigma, DELTA / 10, releases=releases) > here


def test_no_noise_is_no_privacy():
    assert gaussian_epsilon(0.0, DELTA) == inf
    assert gaussian_delta(0.0, 3.0) == 1.0


def test_so_much_noise_that_nothing_is_seen_costs_nothing():
    assert gaussian_epsilon(1e6, DELTA) == 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: gaussian_epsilon(-1.0, DELTA),
        lambda: gaussian_epsilon(float("nan"), DELTA),
        lambda: gaussian_epsilon(1.0, 0.0),
        lambda: gaussian_epsilon(1.0, 1.0),
        lambda: gaussian_sigma(0.0, DELTA),
        lambda: gaussian_sigma(1.0, DELTA, sensitivity=0.0),
        lambda: gaussian_sigma(1.0, DELTA, releases=0),
        lambda: gaussian_delta(1.0, -1.0),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(ConfigError):
        wrong()
