"""The ladder: which rung trains what, and how many clients at a time."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from equfl.core.errors import ConfigError
from equfl.core.random import Seed
from equfl.methods.base import Method
from equfl.models.base import Model
from equfl.models.mlp import MLP
from equfl.simulation.engines._packed import Packed
from equfl.simulation.engines._vmapped import TRACE_AFTER, Vmapped
from equfl.simulation.engines.batched import Batched, in_chunks
from equfl.simulation.loop import start
from equfl.training.sgd import SGD


@dataclass(frozen=True)
class Tanh(Model):
    def build(self, shape, classes):
        return nn.Sequential(nn.Linear(*shape, 4), nn.Tanh(), nn.Linear(4, classes))


@dataclass(frozen=True)
class Dropping(Model):
    def build(self, shape, classes):
        return nn.Sequential(nn.Linear(*shape, 4), nn.Dropout(0.5), nn.Linear(4, classes))


@dataclass(frozen=True)
class Branching(Method):
    name = "branching"

    def objective(self, logits, samples, instructions, target):
        return logits.mean() if logits.sum() > 0 else logits.square().mean()


@dataclass(frozen=True)
class Momentum(SGD):
    name = "momentum"


UNUSUAL = pytest.mark.parametrize(
    "unusual", [{"model": Dropping()}, {"method": Branching()}, {"training": Momentum()}], ids=["dropout", "if", "sgd"]
)


def first(clients):
    return start(MLP(), clients.network, Seed(0))


@pytest.fixture
def asked(monkeypatch) -> list[tuple[str, int]]:
    """Every call of a rung: its name, and how many clients it was to train."""
    calls: list[tuple[str, int]] = []
    for rung in (Packed, Vmapped):

        def noted(self, state, ids, instructions, out, call=rung.__call__):
            calls.append((type(self).__name__, len(ids)))
            call(self, state, ids, instructions, out)

        monkeypatch.setattr(rung, "__call__", noted)
    return calls


def test_a_perceptron_with_the_plain_objective_is_packed(asked, clients):
    made = clients((8, 8))
    Batched().load(made)(first(made), [0, 1], {})
    assert asked == [("Packed", 2)]


def test_another_model_is_mapped(asked, clients):
    made = clients((8, 8), model=Tanh())
    Batched().load(made)(first(made), [0, 1], {})
    assert asked == [("Vmapped", 2)]


@UNUSUAL
def test_what_cannot_be_mapped_is_trained_one_after_another(asked, clients, unusual):
    made = clients((8, 8), **unusual)
    answers = Batched().load(made)(first(made), [0, 1], {})
    assert asked == []
    assert answers.vectors.isfinite().all()


@UNUSUAL
def test_a_rung_that_is_asked_for_is_not_replaced_by_another(clients, unusual):
    made = clients((8, 8), **unusual)
    with pytest.raises(ConfigError, match=r"engine\.rung = 'vmap' with .*'auto' takes the fastest that can"):
        Batched(rung="vmap").load(made)(first(made), [0, 1], {})


def test_clients_are_trained_in_chunks_of_about_one_size(asked, clients):
    made = clients((8,) * 10)
    rung = Packed(made, 2**28)
    rung.at_once = 4
    in_chunks(made, rung)(first(made), range(10), {})
    assert asked == [("Packed", 4), ("Packed", 4), ("Packed", 2)]


def test_mapping_fits_fewer_clients_into_less_memory_and_never_none(clients):
    made = clients((50,) * 10, model=Tanh(), training=SGD(batch_size=32))
    at_once = []
    for memory in (2**20, 2**15, 1):
        rung = Vmapped(made, memory)
        assert rung.trial(first(made), {}) == ""
        at_once.append(rung.at_once)
    assert at_once[0] > at_once[1] > at_once[2] == 1


def test_a_step_whose_shapes_keep_coming_back_is_recorded_and_gives_the_same_bits(clients):
    made = clients((8, 8), model=Tanh(), training=SGD(batch_size=4, epochs=TRACE_AFTER))
    recording = Vmapped(made, 2**28)
    state = first(made)
    before = in_chunks(made, recording)(state, [0, 1], {}).vectors
    assert len(recording.traced) == 1
    again = in_chunks(made, recording)(state, [0, 1], {}).vectors
    assert torch.equal(before, again)
