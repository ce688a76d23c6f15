"""What clients, users and machines may send or have that is wrong, and what becomes of it.

A wrong certificate authority and a node that nobody registered are in ``test_deployment.py``: Flower turns them away.
"""

import io
import re

import numpy as np
import pytest
import torch
from flower_clients import NODES, Nudge, initial, run, state, trained, wrapped
from flwr.app import Array, MetricRecord
from flwr.serverapp.strategy import FedAvg, FedMedian, QFedAvg

from equfl.core.errors import ConfigError
from equfl.flower._version import demand
from equfl.flower.screening import PARTITION
from equfl.methods.equfl_feedback import EquFLFeedback
from equfl.synthesis.trajectory_matching import TrajectoryMatching

BAD = 2
"""The client that misbehaves."""


def fedavg(**settings):
    return FedAvg(fraction_evaluate=0.0, **settings)


def other_keys(reply):
    reply.content["arrays"]["more.weight"] = Array(np.zeros(3, np.float32))


def missing_keys(reply):
    del reply.content["arrays"]["out.bias"]


def other_shapes(reply):
    reply.content["arrays"]["out.bias"] = Array(np.zeros((2, 1), np.float32))


def infinite(reply):
    reply.content["arrays"]["norm.running_var"] = Array(np.full(3, np.inf, np.float32))


def lying_about_its_size(reply):
    array = Array(np.zeros(7, np.float32))
    array.shape = (2,)
    reply.content["arrays"]["out.bias"] = array


def no_array_at_all(reply):
    reply.content["arrays"]["out.bias"] = Array("float32", (2,), "numpy.ndarray", b"MZ\x90")


def a_pickle(reply):
    buffer = io.BytesIO()
    np.save(buffer, np.array([print, print], dtype=object))
    reply.content["arrays"]["out.bias"] = Array("object", (2,), "numpy.ndarray", buffer.getvalue())


def no_weight(reply):
    del reply.content["metrics"]["num-examples"]


def weight_of_nan(reply):
    reply.content["metrics"]["num-examples"] = float("nan")


def weight_below_zero(reply):
    reply.content["metrics"]["num-examples"] = -3


def two_models(reply):
    reply.content["more"] = initial()


def other_names(reply):
    reply.content["model"] = reply.content.pop("arrays")


WRONG = {
    other_keys: r"a model of other keys \(missing: \[\], unknown: \['more.weight'\]\)",
    missing_keys: r"a model of other keys \(missing: \['out.bias'\], unknown: \[\]\)",
    other_shapes: r"out.bias of shape \(2, 1\) instead of \(2,\)",
    infinite: "values that are not finite in the model",
    lying_about_its_size: "arrays that cannot be read",
    no_array_at_all: "arrays that cannot be read",
    a_pickle: "arrays that cannot be read",
    no_weight: "num-examples = None; wanted a finite number",
    weight_of_nan: "num-examples = nan; wanted a finite number",
    weight_below_zero: "num-examples = -3; wanted more than 0",
    two_models: "2 ArrayRecords and 1 MetricRecords; wanted one of each",
    other_names: r"records called \('model', 'metrics'\), unlike most",
}


def with_one(spoil):
    """An app in which one client's reply is spoilt."""

    def app(message, context):
        reply = trained(message, context)
        if context.node_config["partition-id"] == BAD:
            spoil(reply)
        return reply

    return app


def absent(message, context):
    if context.node_config["partition-id"] == BAD:
        raise RuntimeError("away")
    return trained(message, context)


@pytest.mark.parametrize("spoil", WRONG, ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("inner", [fedavg, lambda: FedMedian(fraction_evaluate=0.0)], ids=["FedAvg", "FedMedian"])
def test_a_reply_that_cannot_be_used_is_left_out_and_told_and_the_others_go_on(spoil, inner, caplog):
    result = run(wrapped(inner(), Nudge()), with_one(spoil))
    without = run(wrapped(inner(), Nudge()), absent)
    assert all(torch.equal(value, state(without)[name]) for name, value in state(result).items())
    assert result.train_metrics_clientapp[1]["equfl/left_out"] == 1
    assert any(f"left out node {BAD}" in text for text in caplog.messages)
    assert re.search(WRONG[spoil], caplog.text)


def test_of_two_nodes_with_one_partition_the_first_one_counts(caplog):
    def app(message, context):
        reply = trained(message, context)
        reply.content["metrics"][PARTITION] = {BAD: 1}.get(node := context.node_config["partition-id"], node)
        return reply

    result = run(wrapped(fedavg(), Nudge()), app)
    without = run(wrapped(fedavg(), Nudge()), absent)
    assert torch.equal(state(result)["out.bias"], state(without)["out.bias"])
    assert "left out node 2: partition 1 was sent by node 1 already" in caplog.text


def test_metrics_that_only_some_send_are_dropped_instead_of_ending_the_run():
    result = run(wrapped(fedavg(), Nudge()), with_one(lambda reply: reply.content["metrics"].update({"extra": 1.0})))
    assert "extra" not in result.train_metrics_clientapp[1]
    assert "train_loss" in result.train_metrics_clientapp[1]


def test_a_loss_that_is_not_finite_is_left_out_where_the_strategy_weighs_by_it():
    app = with_one(lambda reply: reply.content["metrics"].update({"train_loss": float("nan")}))
    weighing = run(wrapped(QFedAvg(client_learning_rate=0.1, q=0.2, fraction_evaluate=0.0), Nudge()), app)
    assert weighing.train_metrics_clientapp[1]["equfl/left_out"] == 1
    assert run(wrapped(fedavg(), Nudge()), app).train_metrics_clientapp[1]["equfl/left_out"] == 0


class Never(FedAvg):
    """A strategy that is never content with what it gets."""

    def aggregate_train(self, server_round, replies):
        return None, None


def test_a_strategy_without_a_model_in_every_round_leaves_the_first_one_and_says_so(caplog):
    result = run(wrapped(Never(fraction_evaluate=0.0), Nudge()))
    assert all(torch.equal(value, initial().to_torch_state_dict()[name]) for name, value in state(result).items())
    assert caplog.text.count("changes nothing: Never returned no model") == 4


def test_a_round_in_which_nobody_answers_leaves_the_model():
    def dead(message, context):
        raise RuntimeError("power cut")

    result = run(wrapped(fedavg(), Nudge()), dead, rounds=2)
    assert torch.equal(state(result)["out.bias"], initial().to_torch_state_dict()["out.bias"])
    assert result.train_metrics_clientapp[2]["equfl/left_out"] == NODES


QUICK = TrajectoryMatching(samples=16, iterations=2, match_steps=1)


def test_counts_that_nobody_sends_leave_the_strategys_own_rounds_and_a_hint(caplog):
    method = EquFLFeedback(settle=2, synthesis=QUICK)
    assert torch.equal(state(run(wrapped(fedavg(), method)))["out.bias"], state(run(wrapped(fedavg())))["out.bias"])
    assert "Give the ClientApp the mod equfl.flower.feedback_mod" in caplog.text


@pytest.mark.parametrize(
    "counts",
    [None, [1.0] * 7, [float("nan")] * 8],
    ids=["none", "too few", "not finite"],
)
def test_a_client_without_usable_counts_still_trains_and_the_others_are_listened_to(counts, caplog):
    def app(message, context):
        reply = trained(message, context)
        node = context.node_config["partition-id"]
        sent = [3.0 + node, *[1.0] * 7]  # as many as the rows that it says it has
        if node == BAD:
            sent = counts
        if sent is not None and message.content["equfl"]:
            shape = "2x2x2" if len(sent) == 8 else "7"
            reply.content["metrics"][f"equfl/counts/float64/{shape}"] = sent
        return reply

    result = run(wrapped(fedavg(), EquFLFeedback(settle=2, synthesis=QUICK)), app, rounds=6)
    last = result.train_metrics_clientapp[6]
    assert (last["equfl/left_out"], last["equfl/feedback/clients"]) == (0, NODES - 1)
    assert f"client {BAD} did not report counts" in caplog.text


@pytest.mark.parametrize("found", [None, "1.39.2", "0.19.0"])
def test_a_flower_that_is_too_old_or_absent_is_named_with_what_to_install(found):
    with pytest.raises(
        ConfigError, match=r"wanted flwr 1\.40 or newer\. Install it with: pip install 'equfl\[flower\]'"
    ):
        demand(found)


def test_a_flower_of_the_lowest_version_or_later_is_welcome():
    demand("1.40.0")
    demand("2.0.0rc1")


def test_a_metric_record_survives_keys_of_ours_that_mean_nothing():
    app = with_one(lambda reply: reply.content["metrics"].update({"equfl/x/nonsense/2x": [1.0], "equfl/y": 1.0}))
    result = run(wrapped(fedavg(), Nudge()), app)
    assert isinstance(result.train_metrics_clientapp[1], MetricRecord)
    assert "equfl/y" not in result.train_metrics_clientapp[1]
