"""EquFL in a closed loop: what is asked, what is believed, and what it comes to."""

from dataclasses import replace
from math import inf, nan

import pytest
import torch

from equfl.aggregation.mean import Mean
from equfl.core.errors import ConfigError
from equfl.core.protocol import Cohort
from equfl.data.toy import Toy
from equfl.fairness.consistency import Consistency
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.fairness.several import Several
from equfl.methods.equfl_feedback import EquFLFeedback
from equfl.methods.fedavg import FedAvg
from equfl.models.mlp import MLP
from equfl.privacy.gaussian import gaussian_epsilon, gaussian_sigma
from equfl.simulation.engines.batched import Batched
from equfl.simulation.loop import simulate
from equfl.synthesis.faithful_matching import FaithfulMatching
from equfl.training.sgd import SGD

ROUNDS = 12
QUICK = EquFLFeedback(synthesis=FaithfulMatching(samples=200, iterations=20, gaps=(2,)), smooth=4, accuracy_budget=inf)
EO, DP = EqualizedOdds(), DemographicParity()


class Altered(EquFLFeedback):
    """Counts that are not what the clients sent."""

    alter = staticmethod(lambda counts: counts)

    def step(self, state, cohort, context):
        reports = {name: self.alter(value.clone()) for name, value in cohort.reports.items()}
        return super().step(state, replace(cohort, reports=reports), context)


def run(method, target=DP, rounds=ROUNDS, **settings):
    return list(
        simulate(
            Toy(clients=6, rows=300).load(),
            method=method,
            target=target,
            notions=[EO, DP],
            model=MLP((8,)),
            training=SGD(),
            aggregation=Mean(),
            engine=Batched(),
            rounds=rounds,
            **settings,
        )
    )


def altered(alter) -> EquFLFeedback:
    method = Altered(synthesis=QUICK.synthesis, smooth=4, accuracy_budget=inf)
    object.__setattr__(method, "alter", alter)
    return method


def diagnostics(records):
    return [record.diagnostics for record, _ in records]


def of(records, name):
    return [record.diagnostics.get(name) for record, _ in records]


class TestTheLoop:
    def test_bias_falls_to_a_quarter_and_accuracy_little(self):
        before, after = run(FedAvg())[-1][0].evaluation, run(QUICK)[-1][0].evaluation
        assert before["demographic_parity/pooled"] > 0.3
        assert after["demographic_parity/pooled"] < 0.1
        assert after["accuracy"] > before["accuracy"] - 0.06

    def test_clients_are_asked_to_count_in_the_last_rounds_only_and_send_sums_of_rows(self):
        seen = []

        class Watching(EquFLFeedback):
            def step(self, state, cohort, context):
                seen.append(cohort)
                return super().step(state, cohort, context)

        run(Watching(synthesis=QUICK.synthesis, smooth=4))
        assert [bool(cohort.reports) for cohort in seen] == [False] * 8 + [True] * 4
        assert seen[-1].reports["counts"].flatten(1).sum(dim=1).tolist() == list(seen[-1].rows)

    def test_a_target_bias_that_is_met_already_changes_next_to_nothing(self):
        idle, before = run(replace(QUICK, target_bias=0.9))[-1][1], run(FedAvg(), rounds=8)[-1][1]
        assert torch.allclose(idle.vector, before.vector, atol=1e-5)

    def test_a_higher_target_bias_leaves_more_bias(self):
        bias = [
            run(replace(QUICK, target_bias=target))[-1][0].evaluation["demographic_parity/pooled"]
            for target in (0.0, 0.1, 0.2)
        ]
        assert bias == sorted(bias)
        assert bias[2] - bias[0] > 0.05

    def test_a_small_budget_is_kept_and_the_record_says_what_bias_is_left_for_it(self):
        free, bound = run(replace(QUICK, accuracy_budget=inf)), run(replace(QUICK, accuracy_budget=1.0))
        assert of(free, "feedback/bias_left_for_accuracy")[-1] == 0
        assert of(bound, "feedback/bias_left_for_accuracy")[-1] > 0
        assert bound[-1][0].evaluation["accuracy"] > free[-1][0].evaluation["accuracy"]
        assert (
            bound[-1][0].evaluation["demographic_parity/pooled"] > free[-1][0].evaluation["demographic_parity/pooled"]
        )

    def test_no_budget_at_all_changes_no_accuracy_by_the_counts(self):
        frozen = run(replace(QUICK, accuracy_budget=0.0))
        assert of(frozen, "feedback/expected_accuracy")[-1] >= frozen[-1][0].evaluation["accuracy"] - 0.05

    def test_consistency_is_smoothed_less_when_it_costs_more_than_may_be(self):
        lengths = [
            of(run(replace(QUICK, accuracy_budget=budget), Consistency()), "calibration/smoothing")[-1]
            for budget in (inf, 0.0)
        ]
        assert lengths[0] == pytest.approx(9.0)
        assert lengths[1] < lengths[0]


class TestCountsThatCannotBeBelieved:
    @pytest.mark.parametrize("value", [-5.0, nan, inf, 1e6])
    def test_a_client_with_impossible_counts_is_left_out_and_counted(self, value):
        def spoil(counts):
            counts[2, 0, 0, 0] = value
            return counts

        records = run(altered(spoil))
        assert of(records, "feedback/not_credible")[-4:] == [1.0] * 4
        assert of(records, "feedback/clients")[-4:] == [5.0] * 4
        assert records[-1][0].evaluation["demographic_parity/pooled"] < 0.12

    def test_with_too_few_counts_the_loop_goes_on_with_what_it_knew(self):
        rounds = []

        def late(counts):
            rounds.append(1)
            return counts if len(rounds) == 1 else counts * nan

        records = run(altered(late))
        assert of(records, "feedback/held")[-4:] == [None, 1.0, 1.0, 1.0]
        assert records[-1][0].evaluation["demographic_parity/pooled"] < 0.2

    def test_without_any_counts_the_model_stays_as_the_clients_made_it(self):
        records, fedavg = run(altered(lambda counts: counts * nan)), run(FedAvg())
        assert of(records, "feedback/held")[-4:] == [1.0] * 4
        assert torch.equal(records[-1][1].vector, fedavg[-1][1].vector)

    def test_clients_that_send_no_counts_are_no_error(self):
        class Silent(EquFLFeedback):
            def step(self, state: object, cohort: Cohort, context: object):
                return super().step(state, replace(cohort, reports={}), context)

        records = run(Silent(synthesis=QUICK.synthesis, smooth=4))
        assert of(records, "feedback/clients")[-1] == 0
        assert of(records, "feedback/held")[-1] == 1


class TestNoiseOnTheCounts:
    def test_the_noise_is_what_the_budget_needs_for_all_releases_together(self):
        noisy = run(replace(QUICK, epsilon=1.0))
        assert of(noisy, "feedback/noise")[-1] == pytest.approx(gaussian_sigma(1.0, 1e-5, releases=4))
        assert gaussian_epsilon(replace(QUICK, epsilon=1.0).noised()["counts"].noise, 1e-5) == pytest.approx(1.0)

    def test_much_noise_makes_another_model_and_the_same_seed_the_same(self):
        exact, noisy, again = run(QUICK), run(replace(QUICK, epsilon=0.1)), run(replace(QUICK, epsilon=0.1))
        assert not torch.equal(exact[-1][1].vector, noisy[-1][1].vector)
        assert torch.equal(noisy[-1][1].vector, again[-1][1].vector)

    def test_the_result_says_what_the_counts_cost_in_privacy(self):
        words = [method.remarks(diagnostics(run(method)))[-1] for method in (QUICK, replace(QUICK, epsilon=2.0))]
        assert "exact counts 4 times: no epsilon" in words[0]
        assert "epsilon 2, delta 1e-05" in words[1]

    @pytest.mark.parametrize("budget", [{"epsilon": 0.0}, {"epsilon": -1.0}, {"epsilon": 1.0, "delta": 0.0}], ids=str)
    def test_what_is_no_privacy_budget_is_refused(self, budget):
        with pytest.raises(ConfigError):
            EquFLFeedback(**budget)


class TestRemarks:
    def test_a_budget_that_binds_is_told_with_the_bias_it_leaves(self):
        method = replace(QUICK, accuracy_budget=1.0)
        assert "The accuracy budget of 1 points binds" in method.remarks(diagnostics(run(method)))[0]

    def test_reports_that_were_left_out_are_told(self):
        words = QUICK.remarks(diagnostics(run(altered(lambda counts: counts * nan))))
        assert "In 4 of 4 rounds too few clients" in words[0]

    def test_several_targets_end_with_their_trade_off(self):
        both = Several((EO, DP))
        words = QUICK.remarks(diagnostics(run(QUICK, both)))
        assert [line.split(":")[0] for line in words[:3]] == [
            "Expected of all targets together",
            "Expected of equalized odds alone",
            "Expected of demographic parity alone",
        ]


@pytest.mark.parametrize(
    "setting",
    [
        {"target_bias": -0.1},
        {"target_bias": nan},
        {"accuracy_budget": -1.0},
        {"gain": 1.5},
        {"leak": -0.1},
        {"caution": -1.0},
        {"least_clients": 0},
        {"step_limit": 0.0},
        {"settle": 0},
        {"smoothing": -1.0},
    ],
    ids=str,
)
def test_a_setting_without_a_meaning_is_refused(setting):
    with pytest.raises(ConfigError, match=next(iter(setting))):
        EquFLFeedback(**setting)
