from dataclasses import replace

import pytest
import torch

from equfl.core.random import Seed
from equfl.data.toy import Toy
from equfl.models.mlp import MLP
from equfl.synthesis._distilling import of_network
from equfl.synthesis._matching import Trajectory
from equfl.synthesis._training import logits_of
from equfl.synthesis.faithful_matching import FaithfulMatching
from equfl.synthesis.trajectory_matching import TrajectoryMatching

TOY = Toy().load()
ROWS = TOY.train.pooled.inputs[:100]
OTHER = pytest.mark.parametrize("model", [MLP((6,)), MLP((6, 3)), MLP((12,))], ids=["standard", "deep", "wide"])


@pytest.fixture
def federated(context):
    """A context of clients with a small perceptron and toy rows."""
    return replace(context, network=MLP((4,)).network(TOY.schema.shape, 2), schema=TOY.schema)


@pytest.fixture
def trajectory(federated):
    """Models of the clients' architecture, trained on the toy's rows."""
    pooled = TOY.train.pooled
    vector, _ = MLP((4,)).initial(federated.network, Seed(0).generator("start"))
    models = [vector]
    for _ in range(8):
        for _ in range(16):
            vector = vector - 0.1 * federated.network.mean_gradient(vector, pooled.inputs, pooled.label_weights())
        models.append(vector)
    return Trajectory(federated.network, torch.stack(models), (2,))


@OTHER
def test_another_network_learns_to_answer_like_each_collected_model(federated, trajectory, model):
    taught, told = of_network(model, trajectory, ROWS, federated)
    assert taught.models.shape == (9, model.network((7,), 2).layout.size)
    assert told["synthesis/taught_divergence"] < 0.02
    assert told["synthesis/taught_agreement"] > 0.9
    test = TOY.test.pooled.inputs
    for theirs, ours in list(zip(trajectory.models, taught.models, strict=True))[3:]:
        answers = logits_of(trajectory.network, theirs, test).argmax(dim=1)
        assert (logits_of(taught.network, ours, test).argmax(dim=1) == answers).double().mean() > 0.85


def test_the_same_seed_teaches_the_same(federated, trajectory):
    (first, _), (again, _) = (of_network(MLP((6,)), trajectory, ROWS, federated) for _ in range(2))
    assert torch.equal(first.models, again.models)


def test_without_another_network_the_trajectory_is_the_collected_one(federated, trajectory):
    assert of_network(None, trajectory, ROWS, federated) == (trajectory, {})


@OTHER
def test_what_another_network_has_learned_can_be_retraced_by_training_on_rows(federated, trajectory, model):
    for synthesis in (
        FaithfulMatching(samples=40, iterations=30, gaps=(2,), network=model),
        TrajectoryMatching(samples=40, iterations=30, match_steps=2, network=model),
    ):
        _, told = synthesis(trajectory.models, federated)
        assert told["synthesis/matching_loss"] < 0.7 * told["synthesis/matching_loss_before"]
        assert told["synthesis/taught_agreement"] > 0.85


def test_another_network_gives_other_rows(federated, trajectory):
    own = FaithfulMatching(samples=40, iterations=5, gaps=(2,))
    ours, _ = own(trajectory.models, federated)
    theirs, _ = replace(own, network=MLP((6,)))(trajectory.models, federated)
    assert not torch.equal(ours.inputs, theirs.inputs)
