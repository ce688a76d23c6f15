"""The Gaussian mechanism, exactly (Balle and Wang, 2018), for several releases.

A release adds normal noise of standard deviation σ to a number or vector that one change of the data moves by at most
the sensitivity Δ. Several releases, each chosen in the knowledge of those before, are together as private as a single
one with Δ sqrt(T) (Dong, Roth and Su, 2022), so nothing is lost in adding them up. With μ = Δ sqrt(T) / σ,

    δ(ε) = Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ)

is the smallest δ for a given ε. It holds for releases of everybody's data; where each release sees a random part of
them, ``equfl.privacy.accounting`` says how much that adds.
"""

from collections.abc import Callable
from math import erfc, exp, inf, isfinite, log, sqrt

import torch

from equfl.core.errors import ConfigError


def gaussian_delta(sigma: float, epsilon: float, *, sensitivity: float = 1.0, releases: int = 1) -> float:
    """The smallest δ that goes with the ε, after so many releases with noise ``sigma`` each."""
    _check(sigma=sigma, sensitivity=sensitivity, releases=releases)
    if epsilon < 0:
        raise ConfigError(f"epsilon = {epsilon}", wanted="0 or more", remedy="0 is perfect privacy")
    return 1.0 if sigma == 0 else _delta(sensitivity * sqrt(releases) / sigma, epsilon)


def gaussian_epsilon(sigma: float, delta: float, *, sensitivity: float = 1.0, releases: int = 1) -> float:
    """The smallest ε that goes with the δ, after so many releases with noise ``sigma`` each; infinite without noise."""
    _check(sigma=sigma, sensitivity=sensitivity, releases=releases)
    check_delta(delta)
    if sigma == 0:
        return inf
    mu = sensitivity * sqrt(releases) / sigma
    # δ(ε) <= Φ(μ/2 - ε/μ) <= exp(-(ε/μ - μ/2)² / 2), which is δ here.
    enough = mu**2 / 2 + mu * sqrt(2 * log(1 / delta))
    return _first(lambda epsilon: _delta(mu, epsilon) <= delta, enough)


def gaussian_sigma(epsilon: float, delta: float, *, sensitivity: float = 1.0, releases: int = 1) -> float:
    """The smallest noise with which so many releases together are (ε, δ)-private."""
    _check(sensitivity=sensitivity, releases=releases)
    check_delta(delta)
    if not 0 < epsilon < inf:
        raise ConfigError(f"epsilon = {epsilon}", wanted="a finite number above 0", remedy="1 is strong, 10 is weak")
    # The same bound, solved for 1/μ.
    length = sqrt(2 * log(1 / delta))
    enough = (length + sqrt(length**2 + 2 * epsilon)) / (2 * epsilon)
    return (
        sensitivity * sqrt(releases) * _first(lambda width: width > 0 and _delta(1 / width, epsilon) <= delta, enough)
    )


def check_delta(delta: float) -> None:
    """Refuse a δ that promises nothing, or that normal noise cannot keep."""
    if not 0 < delta < 1:
        raise ConfigError(
            f"delta = {delta}", wanted="a number between 0 and 1", remedy="Choose it below one over the number of rows"
        )


def _delta(mu: float, epsilon: float) -> float:
    # e^ε Φ(-b) written as e^(-a²/2) erfcx(b/sqrt(2)) / 2, because b² - a² = 2 ε: nothing overflows, however large ε.
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    scaled = torch.special.erfcx(torch.tensor(b / sqrt(2), dtype=torch.float64)).item()
    return (erfc(a / sqrt(2)) - exp(-(a**2) / 2) * scaled) / 2


def _first(holds: Callable[[float], bool], enough: float) -> float:
    """The smallest number from 0 on for which it holds, rounded up; it holds for ``enough``, and from then on."""
    low, high = 0.0, enough
    if holds(low):
        return low
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _check(*, sensitivity: float, releases: int, sigma: float = 0.0) -> None:
    if not 0 < sensitivity < inf or releases < 1:
        raise ConfigError(
            f"sensitivity = {sensitivity}, releases = {releases}",
            wanted="a finite sensitivity above 0, and at least one release",
            remedy="A count that each row enters once has sensitivity 1",
        )
    if not (sigma >= 0 and isfinite(sigma)):
        raise ConfigError(f"sigma = {sigma}", wanted="0 or more", remedy="0 means no noise, and no privacy")
