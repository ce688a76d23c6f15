"""What the packed rung takes, and how much of it at once; that it is right is for the contract of all engines."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from equfl.methods.base import Method
from equfl.models.mlp import MLP
from equfl.simulation.engines._packed import FEWEST, Packed, is_perceptron
from equfl.training.sgd import SGD

MB = 2**20


@dataclass(frozen=True)
class Other(Method):
    name = "other"

    def objective(self, logits, samples, instructions, target):
        return logits.sum()


@dataclass(frozen=True)
class Momentum(SGD):
    name = "momentum"


@pytest.mark.parametrize("hidden", [(), (4,), (4, 5, 6)])
def test_every_mlp_is_a_perceptron(hidden):
    assert is_perceptron(MLP(hidden).build((3,), 2))


@pytest.mark.parametrize(
    "module",
    [
        nn.Linear(3, 2),
        nn.Sequential(nn.Linear(3, 2)),
        nn.Sequential(nn.Flatten(), nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)),
        nn.Sequential(nn.Flatten(), nn.Linear(3, 4, bias=False), nn.ReLU(), nn.Linear(4, 2)),
        nn.Sequential(nn.Flatten(), nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), nn.ReLU()),
        nn.Sequential(nn.Flatten(), nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)),
    ],
    ids=["bare", "no flatten", "tanh", "no bias", "ends in relu", "batch norm"],
)
def test_what_differs_by_a_layer_is_none(module):
    assert not is_perceptron(module)


def test_what_is_in_the_way_is_named(clients):
    assert Packed.obstacle(clients((8, 8))) == ""
    assert Packed.obstacle(clients((8, 8), method=Other())) == "the objective of 'other'"
    assert Packed.obstacle(clients((8, 8), training=Momentum())) == "training 'momentum'"
    made = clients((8, 8))
    soft = replace(made.shards.pooled, labels=made.shards.pooled.label_weights())
    assert "memberships" in Packed.obstacle(replace(made, shards=replace(made.shards, pooled=soft)))


def test_rows_are_kept_packed_only_if_that_leaves_half_of_the_memory(clients):
    made = clients((1000,) * 10, features=10)
    kept = 10_000 * 12 * 4
    assert Packed(made, 2 * kept).packed is not None
    assert Packed(made, 2 * kept - 1).packed is None


def test_less_memory_means_fewer_clients_at_once_and_never_none(clients):
    made = clients((60,) * 50, model=MLP((64, 64)), training=SGD(batch_size=32))
    at_once = [Packed(made, memory).at_once for memory in (64 * MB, 2 * MB, MB // 2, 1)]
    assert at_once == sorted(at_once, reverse=True)
    assert at_once[0] > at_once[-2] > at_once[-1] == 1


def test_a_step_of_large_models_is_cut_to_the_cache(clients):
    torch.set_num_threads(1)
    large, small = (clients((60,) * 50, model=MLP((units,))) for units in (4096, 2))
    assert Packed(large, 10**9).at_once == FEWEST
    assert Packed(small, 10**9).at_once == 50


@pytest.mark.parametrize("memory", [MB, 8 * MB])
def test_what_is_taken_stays_within_the_budget(clients, memory):
    made = clients((70,) * 40, model=MLP((96, 64)), training=SGD(batch_size=16))
    rung = Packed(made, memory)
    space = rung.workspace
    parts = [
        space.packed,
        *space.layers,
        *space.rooms,
        *space.weights,
        *filter(torch.is_tensor, space.biases),
        space.head,
        space.scores,
        space.error,
    ]
    taken = sum(part.nbytes for part in parts) + (0 if rung.packed is None else rung.packed.nbytes)
    assert memory / 20 < taken <= memory
