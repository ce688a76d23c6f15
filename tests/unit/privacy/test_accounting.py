import sys
from math import inf

import pytest

from equfl.core.errors import ConfigError
from equfl.privacy.accounting import epsilon
from equfl.privacy.gaussian import gaussian_epsilon
from equfl.privacy.release import Release

DELTA = 1e-5


@pytest.mark.parametrize(
    ("share", "noise", "times", "known", "tight"),
    [
        (0.01, 1.1, 10_000, 5.654, 5.196),
        (0.01, 4.0, 10_000, 1.035, 0.947),
        (0.064, 1.0, 1600, 21.35, 19.47),
        (0.064, 0.1, 100, 9460, 915.5),
        (0.064, 0.2, 100, 1960, 204.0),
        (0.064, 0.3, 100, 572, 77.89),
    ],
)
def test_the_known_bounds_by_divergences_of_whole_order_are_kept_and_tightened(share, noise, times, known, tight):
    """The last three are far apart because whole orders begin at 2, and a huge epsilon is decided near 1."""
    found = epsilon([Release(noise, times, share)], DELTA)
    assert found < known
    assert found == pytest.approx(tight, rel=2e-3)


def test_releases_of_all_rows_are_added_up_exactly():
    assert epsilon([Release(5.0, 100)], DELTA) == gaussian_epsilon(5.0, DELTA, releases=100)
    # Noise 5 a hundred times is as precise as noise 10 four hundred times.
    halves = [Release(10.0, 200), Release(10.0, 200)]
    assert epsilon(halves, DELTA) == pytest.approx(gaussian_epsilon(5.0, DELTA, releases=100), rel=1e-9)


@pytest.mark.parametrize("noise", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("share", [0.001, 0.5, 0.999])
def test_using_a_part_of_the_rows_never_costs_more_than_using_all(noise, share):
    assert epsilon([Release(noise, 100, share)], DELTA) <= epsilon([Release(noise, 100)], DELTA)


def test_a_part_that_is_nearly_all_costs_nearly_as_much():
    nearly, all_ = (epsilon([Release(2.0, 100, share)], DELTA) for share in (0.9999, 1.0))
    assert nearly == pytest.approx(all_, rel=1e-2)


def test_epsilon_grows_with_rounds_and_share_and_falls_with_noise():
    def of(noise=1.0, times=100, share=0.1):
        return epsilon([Release(noise, times, share)], DELTA)

    assert of(times=110) > of()
    assert of(share=0.11) > of()
    assert of(noise=1.1) < of()


def test_another_release_beside_costs_more():
    alone = epsilon([Release(1.0, 100, 0.1)], DELTA)
    assert epsilon([Release(1.0, 100, 0.1), Release(5.0, 4)], DELTA) > alone


def test_one_bare_release_makes_all_noise_worthless():
    assert epsilon([Release(4.0, 100), Release(0.0, 1)], DELTA) == inf


def test_what_never_happens_costs_nothing():
    assert epsilon([], DELTA) == 0.0
    assert epsilon([Release(0.0, 0)], DELTA) == 0.0


def test_without_the_accountant_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    assert epsilon([Release(1.0, 100)], DELTA) > 0
    with pytest.raises(ConfigError, match=r"Install equfl\[privacy\]"):
        epsilon([Release(1.0, 100, 0.1)], DELTA)
