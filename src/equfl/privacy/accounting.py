"""How much privacy several noisy releases cost together.

Releases of all rows are added up exactly. Where a release uses a random part of the rows, nobody can say whether a row
was in it, which is worth much. How much is computed from the distribution of the privacy loss (Koskela, Jälkö and
Honkela, 2020; Doroshenko et al., 2022) by Google's accountant, the extra ``privacy``: an upper bound, and a tight one,
a tenth below the older bound by Rényi divergences where ε is near ten.
"""

from collections.abc import Sequence
from math import inf, sqrt
from typing import Any

from equfl.core.errors import ConfigError
from equfl.privacy.gaussian import check_delta, gaussian_epsilon
from equfl.privacy.release import Release

FINEST = 1e-4
"""The accountant rounds losses up to multiples of a number; smaller ones than this change nothing that is shown."""
FINENESS = 1e-4, 1e-5
"""That number over ε, and over what is first known of ε."""


def epsilon(releases: Sequence[Release], delta: float) -> float:
    """The ε of all releases together, for adding or removing the unit that they are about; infinite if one is bare."""
    check_delta(delta)
    releases = [release for release in releases if release.times]
    if any(release.noise <= 0 for release in releases):
        return inf
    if not releases:
        return 0.0
    # Precisions add up: so many releases are one with the noise 1/sqrt(sum of times/noise²).
    of_all_rows = gaussian_epsilon(
        1.0, delta, sensitivity=sqrt(sum(release.times / release.noise**2 for release in releases))
    )
    if all(release.share >= 1 for release in releases):
        return of_all_rows
    # Which grid is fine enough depends on the answer, which a coarse one tells nearly.
    nearly = min(of_all_rows, _of_samples(releases, delta, grid=max(FINEST, FINENESS[1] * of_all_rows)))
    grid = max(FINEST, FINENESS[0] * nearly)
    return min(nearly, _of_samples(releases, delta, grid=grid))


def _of_samples(releases: Sequence[Release], delta: float, *, grid: float) -> float:
    accounting = _dp_accounting()
    accountant = accounting.pld.PLDAccountant(value_discretization_interval=grid)
    for release in releases:
        event = accounting.GaussianDpEvent(release.noise)
        if release.share < 1:
            event = accounting.PoissonSampledDpEvent(release.share, event)
        accountant.compose(event, release.times)
    return float(accountant.get_epsilon(delta))


def _dp_accounting() -> Any:
    # Loaded when it is asked: it takes a second, and most runs have nothing to ask.
    try:
        import dp_accounting
        import dp_accounting.pld
    except ImportError:
        raise ConfigError(
            "training on random batches with noise, without the package dp-accounting",
            wanted="an accountant that says how private the run is",
            remedy="Install equfl[privacy]",
        ) from None
    return dp_accounting
