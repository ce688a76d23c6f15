from dataclasses import replace

import pytest
import torch

from equfl.core.losses import cross_entropy
from equfl.methods.fedminmax import FedMinMax


def surveyed(server, *clients):
    return replace(server, memory={"survey/group_rows": sum(FedMinMax().survey(c)["group_rows"] for c in clients)})


def after(method, server, context, cohort, present, losses):
    reports = {"present_rows": torch.tensor(present).double(), "losses": torch.tensor(losses).double()}
    return method.step(server, cohort(len(present), **reports), context)


def test_in_the_first_round_every_row_weighs_one(rows, server, context):
    samples = rows([[3, 1], [2, 4]])
    instructions = FedMinMax().instruct(surveyed(server, samples), context)
    torch.testing.assert_close(FedMinMax().weigh(samples, instructions), torch.ones(10))


def test_clients_report_rows_and_losses_of_the_received_model_by_group(rows, server, context):
    samples = rows([[3, 1], [2, 4]])
    report = FedMinMax().report(context.network, server.vector, {}, samples, {})
    losses = cross_entropy(context.network.forward(server.vector, {}, samples.inputs), samples)
    expected = torch.stack([losses[samples.groups == group].sum() for group in (0, 1)])
    torch.testing.assert_close(report["losses"], expected.double())
    assert report["present_rows"].tolist() == [5, 5]


def test_the_group_with_the_larger_mean_loss_gains_what_the_other_loses(rows, server, context, cohort):
    samples = rows([[3, 1], [3, 3]])
    # Two clients. Group 0: 6 rows with mean loss 0.5; group 1: 4 rows with mean loss 1.5.
    state, told = after(
        FedMinMax(rate=0.1), surveyed(server, samples), context, cohort, [[4, 1], [2, 3]], [[2, 1], [1, 5]]
    )
    torch.testing.assert_close(state.memory["fedminmax/weights"], torch.tensor([0.55, 0.45]).double())
    weights = FedMinMax().weigh(samples, FedMinMax().instruct(state, context))
    torch.testing.assert_close(weights, torch.where(samples.groups == 0, 0.55 / 0.6, 0.45 / 0.4))
    assert weights.mean().item() == pytest.approx(1)
    assert told == {"fedminmax/largest_loss": 1.5, "fedminmax/groups_absent": 0.0}


def test_with_all_weight_on_one_group_the_other_counts_for_nothing(rows, server, context, cohort):
    state, _ = after(
        FedMinMax(rate=9.0), surveyed(server, rows([[3, 1], [3, 3]])), context, cohort, [[6, 4]], [[3.0, 6.0]]
    )
    assert state.memory["fedminmax/weights"].tolist() == [0, 1]


def test_a_group_that_nobody_has_stays_at_zero_and_is_counted(rows, server, context, cohort):
    samples = rows([[3, 0, 2], [2, 0, 3]])
    state, told = after(FedMinMax(), surveyed(server, samples), context, cohort, [[5, 0, 5]], [[5.0, 0.0, 9.0]])
    weights = state.memory["fedminmax/weights"]
    assert weights[1] == 0
    assert weights.sum().item() == pytest.approx(1)
    assert weights[2] > weights[0]
    assert told["fedminmax/groups_absent"] == 1
    assert FedMinMax().weigh(samples, FedMinMax().instruct(state, context)).isfinite().all()
