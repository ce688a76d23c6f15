"""Means, spreads, paired changes and who dominates whom, by hand."""

from dataclasses import replace
from math import isnan, sqrt
from pathlib import Path

import pytest

from equfl.methods.equfl import EquFL
from equfl.methods.equfl_feedback import EquFLFeedback
from equfl.methods.fedavg import FedAvg
from equfl.runs.grid import Advanced, Finished
from equfl.runs.remaining import Remaining
from equfl.runs.standings import Spread, Standing, on_the_frontier, standings

EO = "equalized_odds"


def standing(method, accuracies, biases) -> Standing:
    results = {
        seed: {"accuracy": accuracy, "bias": {EO: {"pooled": bias, "client_mean": None}}}
        for seed, (accuracy, bias) in enumerate(zip(accuracies, biases, strict=True))
    }
    return Standing(method, results)


FAIR = standing(EquFLFeedback(), (0.80, 0.82, 0.81), (0.01, 0.03, 0.02))
PLAIN = standing(FedAvg(), (0.79, 0.80, 0.80), (0.20, 0.22, 0.22))
EXACT = standing(EquFL(), (0.90, 0.70, 0.86), (0.02, 0.30, 0.10))


def test_a_spread_is_the_mean_and_the_deviation_of_a_sample():
    spread = Spread((1.0, 2.0, 6.0))
    assert spread.mean == 3
    assert spread.deviation == pytest.approx(sqrt(7))
    assert spread.standard_error == pytest.approx(sqrt(7 / 3))
    assert not spread.beyond_chance


def test_one_seed_says_nothing_about_chance():
    assert isnan(Spread((5.0,)).deviation)
    assert not Spread((5.0,)).beyond_chance
    assert isnan(Spread(()).mean)


def test_changes_are_taken_seed_by_seed():
    change = FAIR.accuracy_change(PLAIN)
    assert change.values == pytest.approx((0.01, 0.02, 0.01))
    assert change.beyond_chance
    shorter = replace(PLAIN, results={2: PLAIN.results[2], 7: PLAIN.results[0]})
    assert FAIR.bias_change(shorter, EO).values == pytest.approx((-0.20,))


def test_to_dominate_is_to_be_more_accurate_and_less_biased_both_beyond_chance():
    assert FAIR.dominates(PLAIN, EO)
    assert not PLAIN.dominates(FAIR, EO)
    assert not FAIR.dominates(FAIR, EO)
    assert EXACT.accuracy.mean > PLAIN.accuracy.mean
    assert not EXACT.dominates(PLAIN, EO), "its seeds disagree too much"


def test_the_frontier_holds_whom_nobody_beats_by_the_means():
    assert on_the_frontier([PLAIN, EXACT, FAIR], EO) == [FAIR, EXACT]


def test_a_notion_that_rows_cannot_show_has_no_values():
    assert FAIR.bias(EO, "client_mean").values == ()
    assert on_the_frontier([FAIR], "consistency") == []


def finished(config, **result) -> Finished:
    return Finished(config, Path("nowhere"), {"seconds": {"clients": 3.0, "server": 1.0}, **result})


def test_runs_become_one_row_per_method_with_its_seeds_in_order(config):
    runs = [finished(replace(config, seed=seed, method=method)) for method in (FedAvg(), EquFL()) for seed in (3, 1)]
    rows = standings(runs)
    assert [(row.label, list(row.results)) for row in rows] == [("fedavg", [1, 3]), ("equfl", [1, 3])]


def test_one_method_with_two_settings_is_two_rows_with_labels_that_tell(config):
    rows = standings([finished(replace(config, method=EquFL(gamma=gamma))) for gamma in (0.25, 0.75)])
    assert [row.label for row in rows] == ["equfl(gamma=0.25)", "equfl(gamma=0.75)"]


def test_the_time_left_follows_from_what_rounds_of_the_method_have_cost(config):
    configs = [replace(config, rounds=8, seed=seed) for seed in (0, 1, 2)]
    remaining = Remaining(configs, processes=2)
    assert remaining.seconds is None
    remaining.see(finished(configs[0]))
    assert (remaining.done, remaining.rounds) == (8, 24)
    assert remaining.seconds == pytest.approx(16 * 0.5 / 2)
    remaining.see(Advanced(configs[1], 6))
    assert remaining.seconds == pytest.approx(10 * 0.5 / 2)
    remaining.see(finished(configs[1]))
    assert remaining.seconds == pytest.approx(8 * 0.5), "one run is left, and the second core is of no use"
    remaining.see(finished(configs[2]))
    assert remaining.seconds == 0
