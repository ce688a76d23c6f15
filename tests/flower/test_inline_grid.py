"""A grid in one process: what strategies and clients meet there is what they would meet elsewhere."""

import threading

import pytest
import torch
from flower_clients import Nudge, initial, run, state, trained, wrapped
from flwr.app import ArrayRecord, ConfigRecord, RecordDict
from flwr.serverapp.strategy import DifferentialPrivacyClientSideFixedClipping, FedAvg, FedProx, QFedAvg

from equfl.core.errors import ConfigError
from equfl.core.random import Seed
from equfl.data.toy import Toy
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.flower import InlineGrid, SimulatedClients, counted, pooled
from equfl.flower.records import PREFIX
from equfl.models.mlp import MLP
from equfl.simulation.loop import start
from equfl.training.sgd import SGD

FEDERATION, MODEL = Toy(clients=4, rows=60).load(), MLP((4,))
NETWORK = MODEL.network(FEDERATION.schema.shape, 2)


def arrays() -> ArrayRecord:
    return ArrayRecord(NETWORK.layout.unflatten(start(MODEL, NETWORK, Seed(0)).vector))


def test_an_unmodified_strategy_learns_on_simulated_clients():
    clients = SimulatedClients(FEDERATION, model=MODEL, training=SGD(batch_size=8))
    result = FedAvg().start(InlineGrid(clients), arrays(), num_rounds=15)
    first, last = result.evaluate_metrics_clientapp[1], result.evaluate_metrics_clientapp[15]
    assert last["accuracy"] > 0.75 > first["accuracy"]
    assert last["loss"] < first["loss"]


def test_messages_can_be_pushed_and_their_replies_pulled_each_once():
    grid = InlineGrid(trained, nodes=2)
    content = RecordDict({"arrays": initial(), "config": ConfigRecord()})
    names = list(grid.push_messages([grid.create_message(content, "train", node, "1") for node in (1, 0)]))
    assert [reply.metadata.src_node_id for reply in grid.pull_messages(names)] == [1, 0]
    assert list(grid.pull_messages(names)) == []


def test_what_one_client_does_to_its_message_no_other_sees():
    def greedy(message, context):
        reply = trained(message, context)
        message.content["arrays"].clear()
        del message.content["config"]
        return reply

    assert torch.equal(state(run(wrapped(FedAvg(fraction_evaluate=0.0)), greedy))["out.bias"], ordinary())


def ordinary() -> torch.Tensor:
    return state(run(wrapped(FedAvg(fraction_evaluate=0.0))))["out.bias"]


def test_a_clients_context_lasts_over_the_rounds():
    def counting(message, context):
        seen = context.state.config_records.setdefault("seen", ConfigRecord({"rounds": 0}))
        seen["rounds"] += 1
        assert seen["rounds"] == message.content["config"]["server-round"]
        return trained(message, context)

    result = run(wrapped(FedAvg(fraction_evaluate=0.0), Nudge()), counting, rounds=3)
    assert result.train_metrics_clientapp[3][f"{PREFIX}left_out"] == 0


def test_a_grid_without_nodes_is_refused():
    with pytest.raises(ConfigError, match="nodes = None; wanted 1 or more"):
        InlineGrid(trained)


@pytest.mark.parametrize(
    "strategy",
    [
        FedProx(proximal_mu=0.1),
        DifferentialPrivacyClientSideFixedClipping(FedAvg(), 1.0, clipping_norm=1.0, num_sampled_clients=4),
    ],
    ids=["FedProx", "clipping at the client"],
)
def test_what_simulated_clients_cannot_do_is_refused_instead_of_left_out(strategy):
    with pytest.raises(ConfigError, match="wanted a strategy that asks for plain local training"):
        strategy.start(InlineGrid(SimulatedClients(FEDERATION, model=MODEL)), arrays(), num_rounds=1)


def test_simulated_clients_can_send_their_loss_for_qfedavg():
    clients = SimulatedClients(FEDERATION, model=MODEL, train_loss=True)
    result = QFedAvg(client_learning_rate=0.1, fraction_evaluate=0.0).start(InlineGrid(clients), arrays(), num_rounds=3)
    losses = [record["train_loss"] for record in result.train_metrics_clientapp.values()]
    assert losses[0] > losses[-1] > 0


def test_pooled_bias_is_that_of_all_rows_together():
    rows, predictions = FEDERATION.test.pooled, torch.arange(len(FEDERATION.test.pooled)) % 2
    parts = zip(predictions.split(FEDERATION.test.sizes), FEDERATION.test, strict=True)
    replies = [RecordDict({"metrics": counted(mine, samples)}) for mine, samples in parts]
    told = pooled(EqualizedOdds())(replies, "num-examples")
    assert told["equfl/equalized_odds"] == pytest.approx(EqualizedOdds().metric(predictions, rows))
    assert told["accuracy"] == pytest.approx((predictions == rows.labels).double().mean().item())


@pytest.mark.parametrize("values", [[float("nan")] * 8, [-1.0] * 8, [1.0] * 7], ids=["NaN", "below 0", "too few"])
def test_counts_that_cannot_be_true_are_left_out_of_the_pool(values, caplog):
    rows = FEDERATION.test[0]
    good = RecordDict({"metrics": counted(rows.labels, rows)})
    bad = RecordDict({"metrics": counted(rows.labels, rows)})
    shape = "2x2x2" if len(values) == 8 else "1x1x7"
    del bad["metrics"]["equfl/counts/float64/2x2x2"]
    bad["metrics"][f"equfl/counts/float64/{shape}"] = values
    assert pooled(EqualizedOdds())([good, bad, good], "num-examples") == pooled(EqualizedOdds())([good], "num-examples")
    assert "1 of 3 clients sent no usable counts" in caplog.text


def test_a_server_that_synthesises_lets_other_threads_live():
    """The SuperLink takes a ServerApp for dead whose heartbeat, a thread beside it, is not heard for a minute."""
    beats, enough = [], threading.Event()

    def heart():
        while not enough.wait(0.001):
            beats.append(len(beats))
            if len(beats) == 20:
                enough.set()

    class Slow(type(Nudge())):
        def step(self, state, cohort, context):
            thread = threading.Thread(target=heart)
            thread.start()
            while not enough.is_set():  # ends only if the heart beats meanwhile
                torch.randn(200, 200).matrix_exp()
            thread.join()
            return super().step(state, cohort, context)

    run(wrapped(FedAvg(fraction_evaluate=0.0), Slow()), rounds=1)
    assert len(beats) == 20
