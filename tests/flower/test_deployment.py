"""A real federation on this machine: SuperLink and SuperNodes as processes of their own, speaking TLS."""

import re
from pathlib import Path

import pytest
import torch
from flower_deployment import Deployment, authority

from equfl.cli import main
from equfl.data import tensor_file
from equfl.data.toy import Toy
from equfl.fairness.equalized_odds import EqualizedOdds

pytestmark = pytest.mark.deployment
NODES = 4
QUICK = "TrajectoryMatching(samples=64, iterations=20, match_steps=1)"
SABOTAGE = '''

def sabotage(message, context, call_next):
    """What a broken machine sends."""
    reply = call_next(message, context)
    if context.node_config.get("sends") == "nan" and reply.content.array_records:
        arrays = reply.content["arrays"].to_torch_state_dict()
        reply.content["arrays"] = ArrayRecord({name: value * float("nan") for name, value in arrays.items()})
    return reply

'''


@pytest.fixture
def project(tmp_path) -> Path:
    """The template, small: few epochs are many, D_syn takes no time, and nobody evaluates but the test."""
    folder = tmp_path / "app" / "small"
    assert main(["new", "flower", str(folder)]) == 0
    edit(
        folder / "small/task.py",
        ("EquFLFeedback()", f"EquFLFeedback(settle=2, accuracy_budget=10.0, synthesis={QUICK})"),
        (
            "import EquFLFeedback\n",
            "import EquFLFeedback\nfrom equfl.synthesis.trajectory_matching import TrajectoryMatching\n",
        ),
    )
    edit(folder / "small/server_app.py", ("min_evaluate_nodes=nodes", "fraction_evaluate=0.0"))
    edit(folder / "small/client_app.py", ("mods=[", "mods=[sabotage, "), ("\n\napp = ", f"\n{SABOTAGE}\napp = "))
    return folder


def edit(path: Path, *changes: tuple[str, str]) -> None:
    """Replace what stands there once."""
    text = path.read_text()
    for before, after in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    path.write_text(text)


def test_a_federation_survives_a_dead_node_and_a_broken_one_and_ends_fairer(project, tmp_path):
    with Deployment(tmp_path) as federation:
        federation.superlink()
        for node in range(NODES):
            broken = ' sends="nan"' if node == 2 else ""
            federation.supernode(f"node{node}", config=f"partition-id={node} num-partitions={NODES}{broken}")
        authority(tmp_path, "other")
        federation.supernode("stranger", config="partition-id=9 num-partitions=4", certificates="other.crt")
        settings = {"data": "toy", "local-epochs": 8, "round-timeout": 30, "min-nodes": 3, "num-server-rounds": 6}
        federation.run(project, **settings, out=tmp_path / "model.safetensors")

        federation.wait("the second round begins", lambda: "[ROUND 2/6]" in federation.log("run"))
        federation.kill("node3")
        federation.wait("the fourth round begins", lambda: "[ROUND 4/6]" in federation.log("run"))
        federation.supernode("node3", config=f"partition-id=3 num-partitions={NODES}")
        federation.wait("the run ends", lambda: federation.ended("run"))

        log = federation.log("run")
        assert "values that are not finite in the model" in log
        clients = [
            int(float(count))
            for count in re.findall(r"'equfl/feedback/clients': ([\d.]+)", log.partition("Strategy execution")[0])
        ]
        assert clients[-1] == 3, "all but the broken one, the one that came back among them"
        assert "certificate" in federation.log("stranger").lower()
    before = float(re.findall(r"'equfl/feedback/bias': ([\d.]+)", log)[0])
    assert bias(tmp_path / "model.safetensors") < before / 2


def bias(path: Path) -> float:
    """The bias of a federation's last model on all its training rows."""
    found = tensor_file.read(path)
    assert found is not None
    model, rows = found[0], Toy().load().train.pooled
    net = torch.nn.Sequential(torch.nn.Linear(7, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    net.load_state_dict(model)
    return EqualizedOdds().metric(net(rows.inputs).argmax(dim=1), rows)


def test_a_supernode_that_nobody_has_registered_is_turned_away(tmp_path):
    with Deployment(tmp_path) as federation:
        federation.superlink("--enable-supernode-auth")
        federation.supernode("stranger", config="partition-id=0 num-partitions=1")
        federation.wait("it is turned away", lambda: federation.ended("stranger"))
        assert "auth" in federation.log("stranger").lower()
