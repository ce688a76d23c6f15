from dataclasses import replace

import pytest
import torch

from equfl.aggregation.mean import Mean
from equfl.core.errors import ConfigError
from equfl.data.toy import Toy
from equfl.fairness.calibration import Calibration
from equfl.fairness.consistency import Consistency
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.methods.fedavg import FedAvg
from equfl.methods.post_processing import PostProcessing
from equfl.models.mlp import MLP
from equfl.simulation.engines.batched import Batched
from equfl.simulation.loop import simulate
from equfl.training.sgd import SGD

FEDERATION = Toy(clients=3, rows=1500).load()


def run(method, target, rounds=6, federation=FEDERATION):
    return list(
        simulate(
            federation,
            method=method,
            target=target,
            notions=[EqualizedOdds(), DemographicParity()],
            model=MLP((4,)),
            training=SGD(learning_rate=0.3),
            aggregation=Mean(),
            engine=Batched(),
            rounds=rounds,
        )
    )


@pytest.mark.parametrize("target", [EqualizedOdds(), DemographicParity()], ids=str)
def test_the_planted_bias_goes_in_the_last_round_for_little_accuracy(target):
    records = [record.evaluation for record, _ in run(PostProcessing(), target)]
    assert records[-2][f"{target.name}/pooled"] > 0.15
    assert records[-1][f"{target.name}/pooled"] < 0.05
    assert records[-1]["accuracy"] > records[-2]["accuracy"] - 0.05


def test_until_then_it_is_fedavg_and_then_the_model_stands_still():
    ours, fedavg = run(PostProcessing(), EqualizedOdds()), run(FedAvg(), EqualizedOdds())
    assert all(torch.equal(a.vector, b.vector) for (_, a), (_, b) in zip(ours[:-1], fedavg[:-1], strict=True))
    assert torch.equal(ours[-1][1].vector, ours[-2][1].vector)
    assert PostProcessing().shared_rounds(6) == 5


def test_a_wider_bound_leaves_more_bias_and_more_accuracy():
    tight, wide = (run(PostProcessing(allowed=a), DemographicParity())[-1][0].evaluation for a in (0.0, 0.2))
    assert 0.1 < wide["demographic_parity/pooled"] < 0.3
    assert wide["accuracy"] > tight["accuracy"]


def test_clients_count_scores_by_label_group_and_bin_when_they_are_asked(rows, server, context):
    samples, method = rows([[3, 1], [2, 4]]), PostProcessing(bins=10)
    assert method.report(context.network, server.vector, {}, samples, {}) == {}
    asked = method.instruct(server, replace(context, round=context.rounds))
    counts = method.report(context.network, server.vector, {}, samples, asked)["scores"]
    scores = context.network.forward(server.vector, {}, samples.inputs).softmax(1)[:, 1]
    expected = torch.zeros(2, 2, 10).double()
    for label, group, score in zip(samples.labels, samples.groups, scores, strict=True):
        expected[label, group, int(10 * score)] += 1
    assert torch.equal(counts, expected)


def test_without_thresholds_a_prediction_is_the_class_with_the_largest_logit(rows):
    samples = rows([[3, 1], [2, 4]])
    logits = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).repeat(5, 1)
    assert PostProcessing().predict(logits, samples, {}).tolist() == [1, 0] * 5


def test_each_group_has_its_own_threshold_and_lots_are_drawn_with_the_right_chance(rows):
    samples = rows([[2000, 2000]])
    chances = torch.tensor([[0.0, 0.0, 0.25, 1.0], [0.0, 1.0, 1.0, 1.0]]).double()
    memory = {"thresholds/chances": chances, "thresholds/lots": torch.tensor(7)}
    middle = torch.logit(torch.tensor(0.6))
    logits = torch.stack([torch.zeros(4000), middle.expand(4000)], dim=1)
    predictions = PostProcessing(bins=4).predict(logits, samples, memory)
    assert predictions[2000:].all()
    assert predictions[:2000].double().mean().item() == pytest.approx(0.25, abs=0.03)
    assert torch.equal(predictions, PostProcessing(bins=4).predict(logits, samples, memory))


def test_a_score_of_one_half_is_in_the_lower_of_the_middle_bins_as_ties_go_to_label_0(rows):
    memory = {
        "thresholds/chances": torch.tensor([[0.0, 1.0], [0.0, 1.0]]).double(),
        "thresholds/lots": torch.tensor(0),
    }
    logits = torch.tensor([[0.0, 0.0], [0.0, 1e-3]])
    assert PostProcessing(bins=2).predict(logits, rows([[1, 1]]), memory).tolist() == [0, 1]


def test_groups_without_rows_and_rows_decided_by_lot_are_in_the_record():
    nobody = replace(
        FEDERATION,
        train=replace(
            FEDERATION.train,
            pooled=replace(FEDERATION.train.pooled, groups=torch.zeros_like(FEDERATION.train.pooled.groups)),
        ),
    )
    told = run(PostProcessing(), EqualizedOdds(), rounds=2, federation=nobody)[-1][0].diagnostics
    assert told == {"thresholds/groups_without_rows": 1.0, "thresholds/by_lot": 0.0}
    fine = run(PostProcessing(), EqualizedOdds(), rounds=2)[-1][0].diagnostics
    assert 0 < fine["thresholds/by_lot"] < 0.5


def test_a_prediction_needs_the_group_and_the_method_says_so():
    assert PostProcessing.uses_group_at_prediction


@pytest.mark.parametrize("target", [Calibration(), Consistency()], ids=str)
def test_what_is_not_linear_in_thresholds_is_refused_with_the_reason(target):
    with pytest.raises(ConfigError, match=f"target = {target.name}; wanted the target demographic_parity or equalized"):
        PostProcessing().check(target)


@pytest.mark.parametrize("setting", [{"allowed": -0.1}, {"allowed": 1.5}, {"bins": 1}])
def test_settings_outside_their_range_are_refused(setting):
    with pytest.raises(ConfigError, match=rf"method\.{next(iter(setting))}"):
        PostProcessing(**setting)
