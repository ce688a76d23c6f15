"""The hooks that run at the clients beside training, by methods that make use of each."""

from dataclasses import dataclass, replace

import pytest
import torch

from equfl.aggregation.mean import Mean
from equfl.core.samples import concatenate
from equfl.data.toy import Toy
from equfl.fairness.demographic_parity import DemographicParity
from equfl.methods.base import Method
from equfl.methods.fedavg import FedAvg
from equfl.models.mlp import MLP
from equfl.simulation.engines.batched import Batched
from equfl.simulation.engines.serial import Serial
from equfl.simulation.loop import simulate
from equfl.training.sgd import SGD

FEDERATION = Toy(clients=3, rows=40, spread=1.0).load()


def run(method, federation=FEDERATION, engine=None, **settings):
    return list(
        simulate(
            federation,
            method=method,
            target=DemographicParity(),
            notions=[DemographicParity()],
            model=MLP((4,)),
            training=SGD(batch_size=16),
            aggregation=Mean(),
            engine=engine or Serial(),
            rounds=3,
            **settings,
        )
    )


@dataclass(frozen=True)
class Counting(Method):
    """Asks how many rows there are, and prepares rows with the answer."""

    def survey(self, samples):
        return {"rows": torch.tensor(len(samples))}

    def prepare(self, samples, totals):
        return replace(samples, importance=torch.full((len(samples),), len(samples) / totals["rows"].item()))


@dataclass(frozen=True)
class Shifting(Method):
    """Takes the mean of its training rows from all that the model sees."""

    def prepare(self, samples, totals):
        return replace(samples, inputs=self.test_inputs(samples, samples, totals))

    def test_inputs(self, samples, train, totals):
        return samples.inputs - train.inputs.mean(dim=0)


@dataclass(frozen=True)
class ByGroup(Method):
    """Predicts the group."""

    uses_group_at_prediction = True

    def predict(self, logits, samples, memory):
        return samples.groups


@dataclass(frozen=True)
class MoreEachRound(Method):
    """Rows of the second group weigh as much as the round says."""

    def instruct(self, state, context):
        return {"weight": torch.tensor([1.0, float(context.round)])}

    def weigh(self, samples, instructions):
        return instructions["weight"][samples.groups]


def test_the_sums_of_the_survey_reach_the_clients_and_the_servers_memory():
    assert run(Counting())[0][1].memory["survey/rows"] == sum(FEDERATION.train.sizes)
    # With a weight for all its rows a client takes shorter steps.
    assert not torch.equal(run(Counting())[-1][1].vector, run(FedAvg())[-1][1].vector)


def test_test_rows_are_shown_by_the_rule_of_their_own_client():
    shifted = [
        replace(test, inputs=test.inputs - train.inputs.mean(dim=0))
        for train, test in zip(FEDERATION.train, FEDERATION.test, strict=True)
    ]
    trained = [replace(train, inputs=train.inputs - train.inputs.mean(dim=0)) for train in FEDERATION.train]
    there = replace(FEDERATION, train=concatenate(trained), test=concatenate(shifted))
    ours, theirs = run(Shifting()), run(FedAvg(), there)
    assert [record.evaluation for record, _ in ours] == [record.evaluation for record, _ in theirs]


def test_what_a_method_predicts_is_what_is_judged():
    assert run(ByGroup())[-1][0].evaluation["demographic_parity/pooled"] == 1.0


@pytest.mark.parametrize("rung", ["packed", "vmap"])
def test_weights_that_change_each_round_reach_every_engine(rung):
    fast, plain = run(MoreEachRound(), engine=Batched(rung=rung)), run(MoreEachRound())
    torch.testing.assert_close(fast[-1][1].vector, plain[-1][1].vector, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(plain[-1][1].vector, run(FedAvg())[-1][1].vector, rtol=1e-3)


def test_weights_reach_the_engine_that_packs_rows_batch_by_batch():
    tight, plain = run(MoreEachRound(), engine=Batched(rung="packed", memory_mb=0)), run(MoreEachRound())
    torch.testing.assert_close(tight[-1][1].vector, plain[-1][1].vector, rtol=1e-4, atol=1e-5)


def test_the_record_counts_clients_with_one_group_and_groups_nobody_has():
    clients = list(FEDERATION.train)
    clients[0] = replace(clients[0], groups=torch.zeros_like(clients[0].groups))
    alone = replace(FEDERATION, train=concatenate(clients))
    assert run(FedAvg(), alone)[0][0].clients == {"one_group": 1.0}
    nobody = replace(FEDERATION, train=concatenate([replace(c, groups=torch.zeros_like(c.groups)) for c in clients]))
    assert run(FedAvg(), nobody)[0][0].clients == {"one_group": 3.0, "groups_without_rows": 1.0}
    assert run(FedAvg())[0][0].clients == {}
