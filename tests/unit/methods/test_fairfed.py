from dataclasses import replace

import pytest
import torch

from equfl.aggregation.mean import Mean
from equfl.core.component import find, known
from equfl.core.errors import ConfigError
from equfl.fairness.consistency import Consistency
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.methods.base import check_pair
from equfl.methods.fairfed import FairFed, gap, unlikeness
from equfl.methods.fedavg import FedAvg
from equfl.methods.reweight import Reweight

ODDS, PARITY = EqualizedOdds(), DemographicParity()


def table(true_positives, positives, *, wrong_negatives=0, negatives=10):
    """Counts by prediction, label and group; rows of label 1 as given per group, of label 0 as many in each group."""
    hits, rows = torch.tensor(true_positives).double(), torch.tensor(positives).double()
    ones = torch.ones_like(hits)
    return torch.stack(
        [
            torch.stack([(negatives - wrong_negatives) * ones, rows - hits]),
            torch.stack([wrong_negatives * ones, hits]),
        ]
    )


# Signed gaps of the true positive rate: 0.4, 0 and -0.1; on all rows together 5/30 - 2/30 = 0.1.
CLIENTS = torch.stack([table([9, 5], [10, 10]), table([5, 5], [10, 10]), table([4, 5], [10, 10])])


def weights_of(method, server, context, cohort, counts=CLIENTS, target=ODDS, ids=None):
    """The weight that each client's update got, and the state; the updates are unit vectors to tell them apart."""
    clients = len(counts)
    updates = torch.zeros(clients, len(server.vector))
    updates[range(clients), range(clients)] = 1
    given = replace(cohort(clients, counts=counts), updates=updates, ids=ids or tuple(range(clients)))
    there = replace(context, target=target)
    state, told = method.step(server, given, there)
    return (server.vector - state.vector)[:clients] / context.learning_rate, state, told


def test_the_gap_is_the_signed_difference_of_the_rates_among_label_1():
    torch.testing.assert_close(gap(CLIENTS, ODDS), torch.tensor([0.4, 0.0, -0.1]).double())
    torch.testing.assert_close(gap(CLIENTS, PARITY), torch.tensor([0.2, 0.0, -0.05]).double())


def test_for_more_than_two_groups_it_is_the_largest_minus_the_smallest_rate():
    assert gap(table([9, 5, 2], [10, 10, 10]), ODDS).item() == pytest.approx(0.7)


def test_clients_lose_weight_as_far_as_their_gap_is_unlike_everybodys(server, context, cohort):
    unlike = unlikeness(CLIENTS, ODDS)
    torch.testing.assert_close(unlike, torch.tensor([0.3, 0.1, 0.2]).double())
    weights, _, _ = weights_of(FairFed(beta=1.0), server, context, cohort)
    # On average 1 before; the unlikeness is 0.2 on average.
    torch.testing.assert_close(weights, torch.tensor([0.9, 1.1, 1.0]) / 3)


def test_it_goes_on_from_the_weights_of_the_round_before(server, context, cohort):
    _, state, _ = weights_of(FairFed(), server, context, cohort)
    weights, _, _ = weights_of(FairFed(), state, context, cohort)
    torch.testing.assert_close(weights, torch.tensor([0.8, 1.2, 1.0]) / 3)


def test_with_beta_zero_it_averages_as_fedavg_does(server, context, cohort):
    given = cohort(3, counts=CLIENTS)
    given = replace(given, shares=torch.tensor([0.5, 0.3, 0.2]))
    ours, _ = FairFed(beta=0.0).step(server, given, context)
    theirs, _ = FedAvg().step(server, given, context)
    torch.testing.assert_close(ours.vector, theirs.vector)


def test_equally_unlike_clients_keep_their_weights(server, context, cohort):
    alike = torch.stack([table([7, 5], [10, 10])] * 3)
    weights, _, _ = weights_of(FairFed(beta=5.0), server, context, cohort, alike)
    torch.testing.assert_close(weights, torch.full((3,), 1 / 3))


def test_a_client_without_the_second_group_is_judged_by_its_accuracy_and_counted(server, context, cohort):
    alone = torch.tensor([[[10.0, 0.0], [4.0, 0.0]], [[0.0, 0.0], [6.0, 0.0]]]).double()
    counts = torch.stack([CLIENTS[0], CLIENTS[1], alone])
    together = counts.sum(0)
    accuracy = (together[0, 0].sum() + together[1, 1].sum()) / together.sum()
    assert unlikeness(counts, ODDS)[2].item() == pytest.approx(abs(16 / 20 - accuracy.item()))
    _, _, told = weights_of(FairFed(), server, context, cohort, counts)
    assert told["fairfed/clients_without_gap"] == 1


def test_where_all_have_one_group_all_are_judged_by_their_accuracy(server, context, cohort):
    alone = torch.stack([table([6, 0], [10, 0]), table([8, 0], [10, 0]), table([10, 0], [10, 0])])
    alone[..., 1] = 0
    weights, _, told = weights_of(FairFed(), server, context, cohort, alone)
    assert told["fairfed/clients_without_gap"] == 3
    assert weights[1] > weights[0]
    assert weights[0].item() == pytest.approx(weights[2].item())


def test_weights_are_never_negative_and_sum_to_one(server, context, cohort):
    weights, _, told = weights_of(FairFed(beta=20.0), server, context, cohort)
    torch.testing.assert_close(weights, torch.tensor([0.0, 0.75, 0.25]))
    assert told["fairfed/clients_without_weight"] == 1


def test_in_the_papers_scale_the_same_step_is_larger_by_the_number_of_clients(server, context, cohort):
    ours, _, _ = weights_of(FairFed(beta=0.3, scale="paper"), server, context, cohort)
    theirs, _, _ = weights_of(FairFed(beta=0.9), server, context, cohort)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(ours, 1 / 3 - 0.3 * torch.tensor([0.1, -0.1, 0.0]))


def test_the_exponential_form_has_no_memory(server, context, cohort):
    weights, state, _ = weights_of(FairFed(beta=2.0, form="exp"), server, context, cohort)
    torch.testing.assert_close(weights, torch.softmax(torch.tensor([-0.6, -0.2, -0.4]), 0))
    assert state.memory == {}


def test_who_does_not_take_part_keeps_what_he_had(server, context, cohort):
    _, state, _ = weights_of(FairFed(), server, context, cohort, CLIENTS[[0, 1, 2, 1]])
    _, later, _ = weights_of(FairFed(), state, context, cohort, CLIENTS)
    assert later.memory["fairfed/moved"][3] == state.memory["fairfed/moved"][3] != 0
    assert not torch.equal(later.memory["fairfed/moved"][:3], state.memory["fairfed/moved"][:3])
    _, fourth, _ = weights_of(FairFed(), later, context, cohort, CLIENTS[:2], ids=(1, 4))
    assert len(fourth.memory["fairfed/moved"]) == 5
    assert fourth.memory["fairfed/moved"][0] == later.memory["fairfed/moved"][0]


def test_when_nobody_has_weight_left_all_start_again(server, context, cohort):
    state = replace(server, memory={"fairfed/moved": torch.full((3,), -2.0).double()})
    weights, after, told = weights_of(FairFed(beta=0.0), state, context, cohort)
    torch.testing.assert_close(weights, torch.full((3,), 1 / 3))
    assert told["fairfed/started_again"] == 1
    assert not after.memory["fairfed/moved"].any()


def test_clients_reweight_their_rows_unless_told_otherwise(rows):
    samples = rows([[4, 1], [1, 4]])
    assert torch.equal(FairFed().prepare(samples, {}).importance, Reweight().prepare(samples, {}).importance)
    assert FairFed(debiasing="none").prepare(samples, {}) is samples


def test_it_is_itself_a_rule_and_refused_beside_another():
    from equfl.aggregation.base import Aggregation

    check_pair(FairFed(), Mean())
    for name in known(Aggregation):
        if name != "mean":
            with pytest.raises(ConfigError, match=f"method = fairfed with aggregation = {name}; .* is itself one"):
                check_pair(FairFed(), find(Aggregation, name)())


def test_what_is_no_difference_of_rates_is_refused_with_the_reason():
    with pytest.raises(ConfigError, match="method = fairfed with target = consistency; wanted the target demographic"):
        FairFed().check(Consistency())


def test_the_counts_are_those_of_the_received_model_on_the_rows(rows, server, context):
    samples = rows([[4, 1], [1, 4]])
    counts = FairFed().report(context.network, server.vector, {}, samples, {})["counts"]
    predictions = context.network.forward(server.vector, {}, samples.inputs).argmax(1)
    assert counts.sum(0).tolist() == [[4, 1], [1, 4]]
    assert counts[1].sum() == predictions.sum()
