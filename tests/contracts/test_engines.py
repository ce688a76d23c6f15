"""What every engine must do, today's and later ones, on every rung: train each client as ``serial`` does."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import get_args, get_type_hints

import pytest
import torch
from torch import Tensor, nn

from equfl.aggregation.mean import Mean
from equfl.core.component import known
from equfl.core.errors import ConfigError
from equfl.core.losses import cross_entropy
from equfl.core.protocol import ServerState
from equfl.core.random import Seed
from equfl.core.samples import Samples, Shards, concatenate
from equfl.data.toy import Toy
from equfl.fairness.demographic_parity import DemographicParity
from equfl.methods.base import Method
from equfl.methods.fedavg import FedAvg
from equfl.models.base import Model
from equfl.models.mlp import MLP
from equfl.simulation.engines.base import Clients, Engine
from equfl.simulation.engines.batched import Batched
from equfl.simulation.engines.serial import Serial
from equfl.simulation.loop import simulate, start
from equfl.training.sgd import SGD

RUNGS = get_args(get_type_hints(Batched)["rung"])
ENGINES = [*(engine() for engine in known(Engine).values()), *(Batched(rung=rung) for rung in RUNGS if rung != "auto")]
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
EQUAL, UNEVEN = (64, 64, 64, 64), (37, 1, 150, 16, 64, 5, 129)
FEATURES = 6


@dataclass(frozen=True)
class Normed(Model):
    """A model with layers of several kinds, and with buffers that training moves."""

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        layers = [nn.Unflatten(1, (2, 3)), nn.Conv1d(2, 4, 2), nn.BatchNorm1d(4), nn.Tanh(), nn.Flatten()]
        return nn.Sequential(*layers, nn.Linear(8, classes))

    def initial(self, network, generator):
        sizes = zip(network.layout.names, network.layout.shapes, strict=True)
        parameters = {name: torch.rand(shape, generator=generator) - 0.5 for name, shape in sizes}
        buffers = {
            "2.running_mean": torch.zeros(4),
            "2.running_var": torch.ones(4),
            "2.num_batches_tracked": torch.tensor(0),
        }
        return network.layout.flatten(parameters), buffers


@dataclass(frozen=True)
class Steered(Method):
    """An objective of its own: it sees groups and instructions, and compares the groups of a batch."""

    # Named without being declared, so that no other contract takes it for one of ours.
    name = "steered"

    def objective(self, logits, samples, instructions, target):
        losses = cross_entropy(logits, samples)
        member = samples.group_weights()[:, 1]
        gap = (losses * member).sum() / (1 + member.sum()) - losses.mean()
        return losses.mean() + instructions["strength"] * gap.square()


@dataclass(frozen=True)
class Peeking(Method):
    """An objective that looks into its tensors, which only a loop over the clients can do."""

    name = "peeking"

    def objective(self, logits, samples, instructions, target):
        mean = cross_entropy(logits, samples).mean()
        return mean if mean.item() < 0.7 else mean / 2


@dataclass(frozen=True)
class Case:
    """What is trained, and which rungs of the batched engine cannot."""

    sizes: tuple[int, ...] = UNEVEN
    ids: tuple[int, ...] | None = None
    model: Model = field(default_factory=lambda: MLP((5,)))
    training: SGD = field(default_factory=lambda: SGD(batch_size=16))
    method: Method = field(default_factory=FedAvg)
    classes: int = 2
    change: Callable[[Samples], Samples] = lambda samples: samples
    refused: tuple[str, ...] = ()
    memory_mb: int = 256

    def load(self, device: str) -> tuple[Clients, ServerState, tuple[int, ...], dict[str, Tensor]]:
        draws = Seed(0).generator("engines")
        parts = [
            Samples(
                torch.randn(size, FEATURES, generator=draws),
                torch.randint(self.classes, (size,), generator=draws),
                torch.randint(2, (size,), generator=draws),
                classes=self.classes,
            )
            for size in self.sizes
        ]
        shards = concatenate(parts)
        shards = Shards(self.change(shards.pooled), shards.sizes).to(device)
        network = self.model.network((FEATURES,), self.classes)
        state = replace(start(self.model, network, Seed(1), device=device), round=3)
        clients = Clients(shards, network, self.training, self.method, Seed(2), DemographicParity())
        ids = tuple(range(len(shards))) if self.ids is None else self.ids
        return clients, state, ids, {"strength": torch.tensor(0.5, device=device)}


def weighted(samples: Samples) -> Samples:
    return replace(samples, importance=torch.linspace(0, 3, len(samples)))


def soft(samples: Samples) -> Samples:
    return replace(samples, labels=torch.softmax(2 * samples.inputs[:, :2], dim=1))


WIDE = MLP((96, 64))
CASES = {
    "clients of one size": Case(EQUAL),
    "uneven clients, last batches short": Case(),
    "a client of one row": Case((1,)),
    "batches larger than any client": Case(training=SGD(batch_size=1000)),
    "batches of one row": Case((3, 1, 4), training=SGD(batch_size=1)),
    "some of the clients": Case(ids=(0, 2, 5)),
    "one of the clients": Case(ids=(4,)),
    "clients in another order": Case(ids=(6, 0, 3, 1)),
    "three epochs": Case(training=SGD(batch_size=16, epochs=3)),
    "one batch": Case(training=SGD(batch_size=16, batches=1)),
    "more batches than an epoch has": Case(training=SGD(batch_size=16, batches=11)),
    "a large step": Case(training=SGD(batch_size=16, learning_rate=0.5)),
    "logistic regression": Case(model=MLP(())),
    "two hidden layers": Case(model=MLP((7, 4))),
    "three hidden layers and four classes": Case(model=MLP((7, 5, 3)), classes=4),
    "logistic regression of three classes": Case(model=MLP(()), classes=3),
    "rows with an importance": Case(change=weighted),
    "rows with an importance, and three classes": Case(change=weighted, classes=3),
    "labels that are memberships": Case(change=soft, refused=("packed",)),
    "convolution, batch norm, another activation": Case((32, 50, 18), model=Normed(), refused=("packed",)),
    "an objective of the method's own": Case(method=Steered(), refused=("packed",)),
    "an objective that looks into its tensors": Case(method=Peeking(), refused=("packed", "vmap")),
    "a memory that only some clients fit": Case((70,) * 24, model=WIDE, memory_mb=1),
    "a memory that only some uneven clients fit": Case((70, 9, 120) * 8, model=WIDE, memory_mb=1),
    "a memory that the packed rows do not fit": Case((700,) * 30, memory_mb=1),
}


def within(engine: Engine, case: Case) -> Engine:
    return replace(engine, memory_mb=case.memory_mb) if isinstance(engine, Batched) else engine


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("engine", ENGINES, ids=str)
class TestEngine:
    def test_it_trains_each_client_as_the_plain_loop_does(self, engine, case, device):
        clients, state, ids, instructions = case.load(device)
        if isinstance(engine, Batched) and engine.rung in case.refused:
            with pytest.raises(ConfigError, match=rf"engine\.rung = '{engine.rung}' with .*'auto' takes the fastest"):
                within(engine, case).load(clients)(state, ids, instructions)
            return
        expected = Serial().load(clients)(state, ids, instructions)
        assert not torch.equal(expected.vectors[0], state.vector)
        found = within(engine, case).load(clients)(state, ids, instructions)
        torch.testing.assert_close(found.vectors, expected.vectors, rtol=1e-5, atol=1e-5)
        assert found.buffers.keys() == expected.buffers.keys()
        for name, value in expected.buffers.items():
            torch.testing.assert_close(found.buffers[name], value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("engine", ENGINES, ids=str)
class TestLoaded:
    """An engine is loaded once and asked in every round."""

    def test_what_it_did_before_leaves_no_trace(self, engine):
        clients, state, _, instructions = Case().load("cpu")
        used, fresh = engine.load(clients), engine.load(clients)
        used(replace(state, vector=torch.randn_like(state.vector), round=8), (1, 4), instructions)
        ours, theirs = used(state, (0, 2, 3), instructions), fresh(state, (0, 2, 3), instructions)
        assert torch.equal(ours.vectors, theirs.vectors)

    def test_its_answers_stay_as_they_were_when_it_is_asked_again(self, engine):
        clients, state, ids, instructions = Case().load("cpu")
        train = engine.load(clients)
        answers = train(state, ids, instructions).vectors
        before = answers.clone()
        train(replace(state, vector=state.vector + 1, round=4), ids, instructions)
        assert torch.equal(answers, before)

    def test_the_state_that_it_is_given_stays_as_it_was(self, engine):
        clients, state, ids, instructions = Case().load("cpu")
        before = state.vector.clone()
        engine.load(clients)(state, ids, instructions)
        assert torch.equal(state.vector, before)

    def test_every_round_has_batches_of_its_own(self, engine):
        clients, state, ids, instructions = Case().load("cpu")
        train = engine.load(clients)
        assert not torch.equal(
            train(state, ids, instructions).vectors, train(replace(state, round=4), ids, instructions).vectors
        )

    @pytest.mark.parametrize("participation", [1.0, 0.5])
    def test_a_whole_run_is_that_of_the_plain_loop(self, engine, participation):
        def run(engine):
            return list(
                simulate(
                    Toy(clients=6, rows=30, spread=2.0).load(),
                    method=FedAvg(),
                    target=DemographicParity(),
                    notions=[DemographicParity()],
                    model=MLP((4,)),
                    training=SGD(batch_size=16),
                    aggregation=Mean(),
                    engine=engine,
                    rounds=10,
                    participation=participation,
                )
            )

        for (record, state), (expected_record, expected) in zip(run(engine), run(Serial()), strict=True):
            torch.testing.assert_close(state.vector, expected.vector, rtol=1e-5, atol=1e-5)
            assert record.participants == expected_record.participants
