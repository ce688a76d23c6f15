"""A real federation on this machine: SuperLink and SuperNodes as processes of their own, speaking TLS."""

import os
import re
from pathlib import Path

import pytest
import torch
from flower_deployment import Deployment, authority
from flwr.app import ArrayRecord, Context, RecordDict
from flwr.serverapp.strategy import FedAvg
from torch import Tensor

from equfl.cli import main
from equfl.core.samples import Samples
from equfl.data import tensor_file
from equfl.data.income import Income
from equfl.data.toy import Toy
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.flower import EquFLStrategy, InlineGrid

pytestmark = pytest.mark.deployment
NODES = 4
INCOME_ROUNDS = 12
Tensors = dict[str, Tensor]
SABOTAGE = '''

def sabotage(message, context, call_next):
    """What a broken machine sends."""
    reply = call_next(message, context)
    broken = int(message.content["config"]["server-round"]) <= int(context.node_config.get("broken-until", 0))
    if broken and reply.content.array_records:
        arrays = reply.content["arrays"].to_torch_state_dict()
        reply.content["arrays"] = ArrayRecord({name: value * float("nan") for name, value in arrays.items()})
    return reply

'''


def project(folder: Path, method: str) -> Path:
    """The template with the method, a client that can break, and no evaluation, which the test does itself."""
    place = folder / "app" / "small"
    assert main(["new", "flower", str(place)]) == 0
    found = "import EquFLFeedback\n"
    wanted = f"{found}from equfl.synthesis.trajectory_matching import TrajectoryMatching\n"
    edit(place / "small/task.py", ("EquFLFeedback()", method), (found, wanted))
    edit(place / "small/server_app.py", ("min_evaluate_nodes=nodes", "fraction_evaluate=0.0"))
    edit(place / "small/client_app.py", ("mods=[", "mods=[sabotage, "), ("\n# The one", f"{SABOTAGE}\n# The one"))
    return place


def edit(path: Path, *changes: tuple[str, str]) -> None:
    """Replace what stands there once."""
    text = path.read_text()
    for before, after in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    path.write_text(text)


def deployed(folder: Path, app: Path, *, broken_until: int, rounds: int, **settings: object) -> tuple[str, Tensors]:
    """The log and the last model of a federation of which one node dies and comes back, and another one is broken."""
    with Deployment(folder) as federation:
        federation.superlink()
        for node in range(NODES):
            broken = f" broken-until={broken_until}" if node == 2 else ""
            federation.supernode(f"node{node}", config=f"partition-id={node} num-partitions={NODES}{broken}")
        authority(folder, "other")
        federation.supernode("stranger", config="partition-id=9 num-partitions=4", certificates="other.crt")
        out = folder / "model.safetensors"
        federation.run(app, **{"min-nodes": 3, "num-server-rounds": rounds, "out": out, **settings})
        federation.wait("the second round begins", lambda: f"[ROUND 2/{rounds}]" in federation.log("run"))
        federation.kill("node3")
        federation.wait("the fourth round begins", lambda: f"[ROUND 4/{rounds}]" in federation.log("run"))
        federation.supernode("node3", config=f"partition-id=3 num-partitions={NODES}")
        federation.wait("the run ends", lambda: federation.ended("run"), seconds=1500)
        assert "certificate" in federation.log("stranger").lower()
        log, found = federation.log("run"), tensor_file.read(out)
    assert found is not None
    assert "values that are not finite in the model" in log
    return log.partition("Strategy execution")[0], found[0]


def told(log: str, name: str) -> list[float]:
    """A diagnostic, round by round."""
    return [float(value) for value in re.findall(rf"'equfl/{name}': ([\d.]+)", log)]


def bias(model: Tensors, rows: Samples) -> float:
    """The bias of a model on rows."""
    net = torch.nn.Sequential(torch.nn.Linear(rows.inputs.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    net.load_state_dict(dict(model))
    return EqualizedOdds().metric(net(rows.inputs).argmax(dim=1), rows)


def test_a_federation_survives_a_dead_node_and_a_broken_one_and_ends_fairer(tmp_path):
    quick = "TrajectoryMatching(samples=64, iterations=20, match_steps=1)"
    app = project(tmp_path, f"EquFLFeedback(settle=2, accuracy_budget=10.0, synthesis={quick})")
    settings = {"data": "toy", "local-epochs": 8, "round-timeout": 30}
    log, model = deployed(tmp_path, app, broken_until=99, rounds=6, **settings)
    assert told(log, "feedback/clients")[-1] == 3, "all but the broken one, the one that came back among them"
    assert bias(model, Toy().load().train.pooled) < told(log, "feedback/bias")[0] / 2


@pytest.mark.real_data
@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("EQUFL_DATA"), reason="EQUFL_DATA names no folder with the census")
def test_income_by_sex_split_among_four_ends_fairer_as_in_one_process(tmp_path, monkeypatch):
    app = project(tmp_path, "EquFLFeedback()")
    edit(app / "small/server_app.py", ("ROWS = 1000", "ROWS = 12_500"))
    settings = {"data": "income", "round-timeout": 60, "state-dir": tmp_path / "state"}
    log, model = deployed(tmp_path, app, broken_until=3, rounds=INCOME_ROUNDS, **settings)
    test = Income().load().test.pooled
    monkeypatch.syspath_prepend(str(app))
    inline, alone = (in_one_process(fair=fair, rounds=INCOME_ROUNDS) for fair in (True, False))
    figures = {"deployed": bias(model, test), "in one process": bias(inline, test), "FedAvg": bias(alone, test)}
    print({name: round(value, 4) for name, value in figures.items()}, told(log, "feedback/bias"))
    assert figures["deployed"] < figures["FedAvg"] / 2
    assert figures["in one process"] < figures["FedAvg"] / 2


def in_one_process(*, fair: bool, rounds: int) -> Tensors:
    """The same ServerApp's strategy and the same ClientApp, without the network and without the mishaps."""
    import small.client_app
    import small.task

    config = {"data": "income", "learning-rate": 0.1, "batch-size": 64, "local-epochs": 1, "noise": 0.0}
    context = Context(0, 0, {}, RecordDict(), config)
    torch.manual_seed(0)
    net = small.task.net(context)
    strategy = FedAvg(fraction_evaluate=0.0)
    if fair:
        strategy = EquFLStrategy(
            strategy,
            method=small.task.METHOD,
            model=net,
            schema=small.task.schema(context),
            target=small.task.TARGET,
            learning_rate=0.1,
            local_steps=196.0,
        )
    grid = InlineGrid(small.client_app.app, nodes=NODES, run_config=config)
    result = strategy.start(grid, ArrayRecord(net.state_dict()), num_rounds=rounds)
    return dict(result.arrays.to_torch_state_dict())


def test_a_supernode_that_nobody_has_registered_is_turned_away(tmp_path):
    with Deployment(tmp_path) as federation:
        federation.superlink("--enable-supernode-auth")
        federation.supernode("stranger", config="partition-id=0 num-partitions=1")
        federation.wait("it is turned away", lambda: federation.ended("stranger"))
        assert "auth" in federation.log("stranger").lower()
