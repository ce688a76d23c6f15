"""The calibration problem: what is asked of the answer, and what it costs."""

from math import log, sqrt

import pytest
import torch

from equfl.calibration.group_shift import GroupShift
from equfl.calibration.problem import (
    Problem,
    accuracy_of,
    caution_of,
    synthetic_margins,
    synthetic_rates,
    tables_of,
)
from equfl.calibration.tradeoff import tradeoff, tradeoff_lines
from equfl.fairness.calibration import Calibration
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.fairness.gaps import Gaps

EO, DP, CAL = EqualizedOdds(), DemographicParity(), Calibration()


def problem(place, *notions, harm=0.02, steps=60, longest=9.0) -> Problem:
    start = synthetic_margins(place.network, place.vector, place.buffers, place.synthetic).detach()
    rows = place.synthetic.label_weights().T @ place.synthetic.group_weights()
    return Problem(
        place=place,
        directions=GroupShift().directions(place),
        notions=notions,
        sharpness=3.0,
        expect=lambda rates: tables_of(rates, rows.unsqueeze(0)),
        reference=start,
        importance=torch.full((len(start),), 1 / len(start)),
        harm=harm,
        steps=steps,
        longest=longest,
    )


def none(problem) -> torch.Tensor:
    rates = synthetic_rates(problem.reference, problem.place.synthetic, problem.sharpness)
    return torch.zeros(len(problem.gaps(problem.expect(rates)).values))


def before(problem):
    return problem.expect(synthetic_rates(problem.reference, problem.place.synthetic, problem.sharpness))


@pytest.mark.parametrize("notion", [EO, DP, CAL], ids=str)
class TestAnswer:
    def test_the_gap_is_closed_to_a_tenth_and_the_model_does_what_is_expected(self, notion, place):
        asked = problem(place, notion, harm=1e-4)
        answer = asked.answer(none(asked))
        assert asked.gaps(answer.expected).largest() < 0.1 * asked.gaps(before(asked)).largest() + 0.01
        with torch.no_grad():
            margins = synthetic_margins(place.network, answer.vector, place.buffers, place.synthetic)
        rates = synthetic_rates(margins, place.synthetic, 3.0)
        assert torch.allclose(asked.expect(rates), answer.expected, atol=1e-3)

    def test_what_is_allowed_is_left_alone(self, notion, place):
        asked = problem(place, notion)
        answer = asked.answer(none(asked) + 1.0)
        assert torch.allclose(answer.vector, place.vector, atol=1e-6)

    def test_the_more_harm_weighs_the_less_predictions_change(self, notion, place):
        moved = []
        for harm in (1e-4, 0.02, 1.0):
            asked = problem(place, notion, harm=harm)
            moved.append((asked.answer(none(asked)).margins - asked.reference).abs().mean().item())
        assert moved == sorted(moved, reverse=True)

    def test_margins_move_by_about_the_limit_on_average_and_not_much_further(self, notion, place):
        asked = problem(place, notion, harm=0.0, longest=0.05)
        assert (asked.answer(none(asked)).margins - asked.reference).abs().mean() == pytest.approx(0.05, rel=0.1)


class TestAcceptable:
    def test_the_least_bias_is_found_that_the_accuracy_permits(self, place):
        asked = problem(place, DP)
        free, start = asked.answer(none(asked)), accuracy_of(before(asked)).item()
        assert accuracy_of(free.expected) < start - 0.02
        bound = asked.answer(none(asked), acceptable=lambda expected: accuracy_of(expected) >= start - 0.01)
        assert start - 0.01 <= accuracy_of(bound.expected).item() < start - 0.005
        assert asked.gaps(free.expected).largest() < asked.gaps(bound.expected).largest()
        assert bound.loosened == pytest.approx(asked.gaps(bound.expected).largest(), abs=0.02)

    def test_where_nothing_is_acceptable_nearly_nothing_is_changed(self, place):
        asked = problem(place, DP)
        answer = asked.answer(none(asked), acceptable=lambda expected: False)
        assert (answer.margins - asked.reference).abs().mean() < 1e-3


class TestTablesAndAccuracy:
    def test_tables_have_the_rates_among_the_rows(self):
        tables = tables_of(torch.tensor([[[0.25, 0.5], [0.75, 1.0]]]), torch.tensor([[[8.0, 2.0], [4.0, 1.0]]]))
        assert tables[0, 1].tolist() == [[2, 1], [3, 1]]
        assert accuracy_of(tables).item() == pytest.approx((6 + 1 + 3 + 1) / 15)

    def test_with_several_classes_accuracy_is_the_share_of_hits(self):
        tables = torch.zeros(3, 2, 2, 1)
        for index, (hits, rest) in enumerate([(5, 1), (4, 2), (3, 3)]):
            tables[index, 1, 1, 0], tables[index, 0, 1, 0], tables[index, 0, 0, 0] = hits, rest, 18 - hits - rest
        assert accuracy_of(tables).item() == pytest.approx(12 / 18)


class TestCaution:
    def test_a_single_gap_is_closed_whole_and_of_several_a_share_of_what_chance_makes_is_left(self):
        errors = torch.tensor([0.1, 0.2])
        one = Gaps(torch.zeros(2), errors, torch.tensor([True, False]))
        both = Gaps(torch.zeros(2), errors, torch.tensor([True, True]))
        assert caution_of(one, 0.5).tolist() == [0, 0]
        assert caution_of(both, 0.5).tolist() == pytest.approx([0.05 * sqrt(2 * log(2)), 0.1 * sqrt(2 * log(2))])


class TestTradeoff:
    def test_each_aim_alone_does_best_for_itself_and_all_are_told(self, place):
        asked = problem(place, EO, CAL)
        allowed = none(asked)
        told = tradeoff(asked, allowed, asked.answer(allowed).expected)
        assert len(told) == 9
        for own, other in (("equalized_odds", "calibration"), ("calibration", "equalized_odds")):
            assert told[f"tradeoff/{own}/{own}"] <= told[f"tradeoff/together/{own}"] + 0.01
            assert told[f"tradeoff/{own}/{other}"] >= told[f"tradeoff/together/{other}"] - 0.01
        lines = tradeoff_lines({**told, "calibration/ratio": 1.0})
        assert [line.split(":")[0] for line in lines] == [
            "Expected of all targets together",
            "Expected of equalized odds alone",
            "Expected of calibration alone",
        ]

    def test_a_single_target_has_none(self, place):
        asked = problem(place, EO)
        assert tradeoff(asked, none(asked), before(asked)) == {}
