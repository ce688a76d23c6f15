"""Numbers with intervals."""

import math

import pytest
import torch

from equfl.core.random import Seed
from equfl.fairness.estimate import Estimate, resample, resampled_means


def generator() -> torch.Generator:
    return Seed(0).generator("resamples")


def test_wilsons_interval_by_hand() -> None:
    # Newcombe (1998), table I: 81 of 263 and 15 of 148, method 3.
    estimate = Estimate.of_proportion(81.0, 263.0)
    assert (estimate.low, estimate.high) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    estimate = Estimate.of_proportion(15.0, 148.0)
    assert (estimate.low, estimate.high) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert estimate.standard_error == pytest.approx(math.sqrt(15 * 133 / 148**3))


@pytest.mark.parametrize(("part", "low", "high"), [(0.0, 0.0, 0.5615), (3.0, 0.4385, 1.0)])
def test_none_and_all_out_of_three_are_not_certain(part: float, low: float, high: float) -> None:
    estimate = Estimate.of_proportion(part, 3.0)
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=1e-4)
    assert estimate.low <= estimate.value <= estimate.high


def test_a_proportion_of_nothing_is_unknown() -> None:
    assert math.isnan(Estimate.of_proportion(0.0, 0.0).value)


def test_the_interval_reaches_to_the_farther_end_of_the_draws() -> None:
    draws = torch.arange(0.0, 1.0001, 0.01).double()
    estimate = Estimate.from_draws(0.4, draws)
    assert (estimate.low, estimate.high) == pytest.approx((0.4 - 0.575, 0.975))
    assert estimate.standard_error == pytest.approx(draws.std().item())
    bounded = Estimate.from_draws(0.4, draws, within=(0.0, 0.9))
    assert (bounded.low, bounded.high) == (0.0, 0.9)


def test_draws_without_a_value_do_not_count() -> None:
    draws = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    nothing = torch.full((5,), float("nan"), dtype=torch.float64)
    assert Estimate.from_draws(0.2, torch.cat([draws, nothing])) == Estimate.from_draws(0.2, draws)


@pytest.mark.parametrize("draws", [0, 1])
def test_without_draws_there_is_no_interval(draws: int) -> None:
    estimate = Estimate.from_draws(0.2, torch.zeros(draws).double())
    assert estimate.value == 0.2
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.standard_error)


def test_the_mean_of_independent_values_by_hand() -> None:
    estimate = Estimate.of_mean(torch.tensor([1.0, 2.0, float("nan"), 6.0]))
    # The variance of 1, 2 and 6 is 7.
    assert estimate.value == pytest.approx(3)
    assert estimate.standard_error == pytest.approx(math.sqrt(7 / 3))
    assert estimate.high - estimate.value == pytest.approx(1.959964 * math.sqrt(7 / 3))


@pytest.mark.parametrize("known", [0, 1])
def test_the_mean_of_one_value_has_no_interval(known: int) -> None:
    estimate = Estimate.of_mean(torch.tensor([0.5] * known + [float("nan")]))
    assert math.isnan(estimate.value) == (known == 0)
    assert math.isnan(estimate.standard_error)


def test_resampled_tables_have_as_many_rows_and_no_row_where_there_was_none() -> None:
    counts = torch.tensor([[3.0, 0.0], [5.0, 12.0]])
    tables = resample(counts, 50, generator())
    assert tables.shape == (50, 2, 2)
    assert (tables.sum(dim=(1, 2)) == 20).all()
    assert (tables[:, 0, 1] == 0).all()
    assert not torch.equal(tables[0], tables[1])


def test_resampled_counts_vary_as_those_of_rows_drawn_with_replacement() -> None:
    tables = resample(torch.tensor([30.0, 70.0]), 4000, generator())
    assert tables[:, 0].mean().item() == pytest.approx(30, abs=0.3)
    assert tables[:, 0].std().item() == pytest.approx(math.sqrt(100 * 0.3 * 0.7), rel=0.05)


def test_the_same_generator_draws_the_same_tables() -> None:
    counts = torch.tensor([3.0, 4.0])
    assert torch.equal(resample(counts, 9, generator()), resample(counts, 9, generator()))


def test_means_are_resampled_as_rows_are() -> None:
    values = torch.tensor([0.0, 0.2, 0.2, 0.6] * 25)
    means = resampled_means(values, 4000, generator())
    assert means.mean().item() == pytest.approx(0.25, abs=0.002)
    assert means.std().item() == pytest.approx(values.std(correction=0).item() / 10, rel=0.05)
