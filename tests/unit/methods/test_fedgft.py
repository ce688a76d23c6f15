from dataclasses import replace

import pytest
import torch

from equfl.core.errors import ConfigError
from equfl.core.losses import cross_entropy
from equfl.fairness.calibration import Calibration
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.methods.fedgft import FedGFT

TARGETS = [DemographicParity(), EqualizedOdds()]


def penalised(method, network, vector, samples, target):
    """Mean loss and ``weight * sum F²`` of all rows together, straight from the definition."""
    logits = network.forward(vector, {}, samples.inputs)
    positive = logits.softmax(1)[:, 1]
    groups = samples.group_count
    among = [samples.labels >= 0] if isinstance(target, DemographicParity) else [samples.labels == y for y in (0, 1)]
    penalty = sum(
        (positive[one & (samples.groups == a)].mean() - positive[one & (samples.groups == b)].mean()) ** 2
        for one in among
        for a in range(groups)
        for b in range(a + 1, groups)
    )
    return cross_entropy(logits, samples).mean() + method.weight * penalty


def steered(method, server, context, cohort, clients, target):
    """What the server sends after the clients have reported on the model."""
    reports = [method.report(context.network, server.vector, {}, samples, {}) for samples in clients]
    stacked = {name: torch.stack([report[name] for report in reports]) for name in reports[0]}
    schema = replace(context.schema, groups=tuple("abc"[: clients[0].group_count]))
    there = replace(context, target=target, schema=schema)
    state, told = method.step(server, cohort(len(clients), **stacked), there)
    return method.instruct(state, there), told


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("cells", [[[5, 3], [2, 6]], [[5, 3, 4], [2, 6, 4]]], ids=["two groups", "three groups"])
def test_the_clients_gradients_add_up_to_that_of_the_federations_penalised_loss(
    rows, server, context, cohort, cells, target
):
    samples, method = rows(cells), FedGFT(weight=3.0, follow=1.0)
    clients = [samples.rows(slice(0, None, 2)), samples.rows(slice(1, None, 2))]
    instructions, _ = steered(method, server, context, cohort, clients, target)
    point = server.vector.clone().requires_grad_()
    ours = sum(
        len(part)
        / len(samples)
        * method.objective(context.network.forward(point, {}, part.inputs), part, instructions, target)
        for part in clients
    )
    (gradient,) = torch.autograd.grad(ours, point)
    (expected,) = torch.autograd.grad(penalised(method, context.network, point, samples, target), point)
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-6)


def test_the_push_follows_the_reports_gradually_and_ends_where_it_would_have_jumped_to(rows, server, context, cohort):
    samples = rows([[5, 3], [2, 6]])
    jump, _ = steered(FedGFT(follow=1.0), server, context, cohort, [samples], DemographicParity())
    gentle, _ = steered(FedGFT(follow=0.25), server, context, cohort, [samples], DemographicParity())
    torch.testing.assert_close(gentle["push"], 0.25 * jump["push"])
    there = replace(server, memory={"fedgft/push": jump["push"]})
    stays, _ = steered(FedGFT(follow=0.25), there, context, cohort, [samples], DemographicParity())
    torch.testing.assert_close(stays["push"], jump["push"])


@pytest.mark.parametrize("setting", [{"weight": -1.0}, {"follow": 0.0}, {"follow": 1.5}])
def test_settings_outside_their_range_are_refused(setting):
    with pytest.raises(ConfigError, match=rf"method\.{next(iter(setting))} = "):
        FedGFT(**setting)


def test_before_any_report_it_is_fedavg(rows, server, context):
    instructions = FedGFT().instruct(server, context)
    samples = rows([[5, 3], [2, 6]])
    logits = context.network.forward(server.vector, {}, samples.inputs)
    loss = FedGFT().objective(logits, samples, instructions, context.target)
    torch.testing.assert_close(loss, cross_entropy(logits, samples).mean())


def test_gaps_with_an_empty_cell_are_left_out_and_counted(rows, server, context, cohort):
    samples = rows([[5, 0], [2, 6]])
    instructions, told = steered(FedGFT(), server, context, cohort, [samples], EqualizedOdds())
    assert torch.equal(instructions["push"][0], torch.zeros(2).double())
    assert (instructions["push"][1] != 0).all()
    assert told["fedgft/empty_cells"] == 1


def test_with_one_group_nothing_is_pushed(rows, server, context, cohort):
    instructions, told = steered(FedGFT(), server, context, cohort, [rows([[5, 0], [2, 0]])], DemographicParity())
    assert not instructions["push"].any()
    assert told["fedgft/empty_cells"] == 2


def test_the_record_has_the_largest_gap(rows, server, context, cohort):
    samples = rows([[5, 3], [2, 6]])
    _, told = steered(FedGFT(), server, context, cohort, [samples], DemographicParity())
    positive = context.network.forward(server.vector, {}, samples.inputs).softmax(1)[:, 1]
    gap = positive[samples.groups == 0].mean() - positive[samples.groups == 1].mean()
    assert told["fedgft/largest_gap"] == pytest.approx(gap.abs().item(), rel=1e-5)


def test_what_is_no_sum_over_rows_is_refused_with_the_reason():
    with pytest.raises(ConfigError, match="target = calibration; wanted the target demographic_parity or equalized"):
        FedGFT().check(Calibration())
