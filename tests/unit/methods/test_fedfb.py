from dataclasses import replace

import pytest
import torch

from equfl.aggregation.mean import Mean
from equfl.core.errors import ConfigError
from equfl.core.losses import cross_entropy
from equfl.core.random import Seed
from equfl.data.toy import Toy
from equfl.fairness.calibration import Calibration
from equfl.fairness.consistency import Consistency
from equfl.fairness.counts import count
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.methods.fedavg import FedAvg
from equfl.methods.fedfb import FedFB
from equfl.models.mlp import MLP
from equfl.simulation.engines.serial import Serial
from equfl.simulation.loop import simulate
from equfl.training.sgd import SGD

PARITY, ODDS = DemographicParity(), EqualizedOdds()


def surveyed(server, samples):
    return replace(server, memory={"survey/cells": FedFB().survey(samples)["cells"]})


def after(samples, server, context, cohort, target, losses=None, *, method=None, round=4, present=None):
    """The state when the clients, all rows at one of them, have reported these losses per cell."""
    method = method or FedFB(rate=0.2)
    cells = FedFB().survey(samples)["cells"] if present is None else torch.tensor(present).double()
    reports = {"present_cells": cells.unsqueeze(0), "losses": torch.tensor(losses).double().unsqueeze(0)}
    state, told = method.step(
        surveyed(server, samples), cohort(1, **reports), replace(context, target=target, round=round)
    )
    return state, told


def table(state, context, target):
    return FedFB().instruct(state, replace(context, target=target))["weights"]


@pytest.mark.parametrize("target", [PARITY, ODDS, Calibration()], ids=str)
def test_at_the_start_every_row_weighs_one(rows, server, context, target):
    samples = rows([[3, 1], [2, 4]])
    instructions = {"weights": table(surveyed(server, samples), context, target)}
    torch.testing.assert_close(FedFB().weigh(samples, instructions), torch.ones(10))


def test_the_first_two_rounds_are_fedavgs_and_then_it_goes_its_own_way():
    def vectors(method):
        federation = Toy(clients=3, rows=60).load()
        settings = {"target": PARITY, "notions": [], "model": MLP((4,)), "training": SGD(batch_size=16)}
        run = simulate(federation, method=method, aggregation=Mean(), engine=Serial(), rounds=3, **settings)
        return [state.vector for _, state in run]

    ours, fedavg = vectors(FedFB()), vectors(FedAvg())
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(ours[:2], fedavg[:2], strict=True))
    assert not torch.allclose(ours[2], fedavg[2], atol=1e-4)


@pytest.mark.parametrize("statistic", ["cross_entropy", "zero_one"])
def test_clients_report_their_losses_by_label_and_group(rows, server, context, statistic):
    samples = rows([[3, 1], [2, 4]])
    report = FedFB(statistic=statistic).report(context.network, server.vector, {}, samples, {})
    logits = context.network.forward(server.vector, {}, samples.inputs)
    losses = cross_entropy(logits, samples)
    if statistic == "zero_one":
        losses = (logits.argmax(1) != samples.labels).float()
    for label in (0, 1):
        for group in (0, 1):
            cell = (samples.labels == label) & (samples.groups == group)
            torch.testing.assert_close(report["losses"][label, group], losses[cell].sum().double())


def test_with_errors_as_losses_a_step_for_parity_is_the_gap_of_the_rates(rows, server, context, cohort):
    samples = rows([[10, 4], [6, 9]])
    predictions = (torch.rand(29, generator=Seed(5).generator("p")) < 0.5).long()
    tables = count(predictions, samples)
    errors = torch.stack([tables[1, 0], tables[0, 1]])
    state, _ = after(samples, server, context, cohort, PARITY, errors.tolist())
    rates = tables[1].sum(0) / tables.sum((0, 1))
    # Group 0 has the most rows; rate 0.2 in round 4 is a step of 0.1.
    moved = state.memory["fedfb/weights"] - torch.tensor([16, 13]).double() / 29
    torch.testing.assert_close(moved, 0.1 * torch.stack([rates[0] - rates[1], rates[1] - rates[0]]))


def test_a_group_with_too_many_positives_learns_more_from_its_negatives(rows, server, context, cohort):
    samples = rows([[10, 10], [10, 10]])
    # In group 1 all errors are false positives.
    state, _ = after(samples, server, context, cohort, PARITY, [[0, 8], [0, 0]])
    weights = table(state, context, PARITY)
    assert weights[0, 1] > 1 > weights[1, 1]
    torch.testing.assert_close(weights.sum(0), torch.full((2,), 2.0).double())


def test_for_parity_no_weight_leaves_its_bounds(rows, server, context, cohort):
    samples = rows([[10, 10], [10, 10]])
    state, _ = after(samples, server, context, cohort, PARITY, [[0, 900], [0, 0]], method=FedFB(rate=50.0))
    torch.testing.assert_close(table(state, context, PARITY), torch.tensor([[0.0, 2.0], [2.0, 0.0]]).double())


def test_for_equalized_odds_the_cell_with_the_larger_loss_gains_within_its_label(rows, server, context, cohort):
    samples = rows([[10, 5], [4, 6]])
    # Mean losses: label 0 has 0.2 and 0.4, label 1 has 1 and 1.
    state, _ = after(samples, server, context, cohort, ODDS, [[2, 2], [4, 6]])
    expected = torch.tensor([[10 / 25 - 0.01, 5 / 25 + 0.01], [4 / 25, 6 / 25]]).double()
    torch.testing.assert_close(state.memory["fedfb/weights"], expected)
    weights = FedFB().weigh(samples, {"weights": table(state, context, ODDS)})
    assert weights.mean().item() == pytest.approx(1)


def test_by_sign_only_the_label_with_the_largest_gap_moves(rows, server, context, cohort):
    samples = rows([[10, 5], [4, 6]])
    method = FedFB(rate=0.2, rule="sign_max")
    state, _ = after(samples, server, context, cohort, ODDS, [[2, 2], [4, 12]], method=method)
    expected = torch.tensor([[10 / 25, 5 / 25], [4 / 25 - 0.1, 6 / 25 + 0.1]]).double()
    torch.testing.assert_close(state.memory["fedfb/weights"], expected)


def test_for_calibration_only_label_1_moves(rows, server, context, cohort):
    samples = rows([[10, 5], [4, 6]])
    losses = [[2, 9], [4, 12]]
    odds, _ = after(samples, server, context, cohort, ODDS, losses)
    state, _ = after(samples, server, context, cohort, Calibration(), losses)
    assert torch.equal(state.memory["fedfb/weights"][1], odds.memory["fedfb/weights"][1])
    torch.testing.assert_close(state.memory["fedfb/weights"][0], torch.tensor([10, 5]).double() / 25)
    assert not torch.allclose(odds.memory["fedfb/weights"][0], state.memory["fedfb/weights"][0])


@pytest.mark.parametrize("target", [PARITY, ODDS], ids=str)
def test_where_the_group_follows_from_the_label_groups_are_weighed_and_the_record_says_so(
    rows, server, context, cohort, target
):
    samples = rows([[10, 0], [0, 15]])
    state, told = after(samples, server, context, cohort, target, [[2, 0], [0, 9]])
    torch.testing.assert_close(state.memory["fedfb/weights"], torch.tensor([0.4 - 0.02, 0.6 + 0.02]).double())
    assert told["fedfb/by_group"] == 1
    assert told["fedfb/empty_cells"] == 2


def test_an_empty_cell_is_left_out_and_counted(rows, server, context, cohort):
    samples = rows([[10, 5, 0], [4, 6, 5]])
    state, told = after(samples, server, context, cohort, ODDS, [[2, 2, 0], [4, 6, 5]])
    torch.testing.assert_close(
        state.memory["fedfb/weights"][0], torch.tensor([10 / 30 - 0.01, 5 / 30 + 0.01, 0]).double()
    )
    assert told == {"fedfb/empty_cells": 1.0, "fedfb/by_group": 0.0}


def test_a_cell_that_no_participant_has_keeps_its_weight(rows, server, context, cohort):
    samples = rows([[10, 5, 5], [4, 6, 5]])
    present = [[8, 5, 0], [4, 6, 0]]
    state, _ = after(samples, server, context, cohort, ODDS, [[8, 1, 0], [4, 2, 0]], present=present)
    torch.testing.assert_close(state.memory["fedfb/weights"][:, 2], torch.full((2,), 5 / 35).double())


def test_what_it_has_no_rule_for_is_refused_with_the_reason():
    with pytest.raises(ConfigError, match=r"method = fedfb with target = consistency; wanted the target demographic"):
        FedFB().check(Consistency())
