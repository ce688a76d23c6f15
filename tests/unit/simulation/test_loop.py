import pytest
import torch

from equfl.aggregation.mean import Mean
from equfl.core.random import Seed
from equfl.data.toy import Toy
from equfl.fairness.demographic_parity import DemographicParity
from equfl.methods.fedavg import FedAvg
from equfl.models.mlp import MLP
from equfl.simulation.engines.serial import Serial
from equfl.simulation.loop import participants, simulate
from equfl.training.sgd import SGD


def run(federation=None, **settings):
    defaults = {
        "method": FedAvg(),
        "target": DemographicParity(),
        "notions": [DemographicParity()],
        "model": MLP((4,)),
        "training": SGD(batch_size=16),
        "aggregation": Mean(),
        "engine": Serial(),
        "rounds": 4,
    }
    return list(simulate(federation or Toy(clients=3, rows=40, spread=1.0).load(), **(defaults | settings)))


def test_with_the_mean_a_round_is_the_weighted_average_of_the_local_models():
    federation = Toy(clients=3, rows=40, spread=1.0).load()
    (_, before), (_, after) = run(federation, rounds=2)
    network = MLP((4,)).network(federation.schema.shape, 2)
    locals_ = [
        SGD(batch_size=16).train(
            before.vector,
            {},
            samples,
            network=network,
            objective=lambda logits, batch: FedAvg().objective(logits, batch, {}),
            generator=Seed(0).generator("shuffle", round=2, client=client),
        )[0]
        for client, samples in enumerate(federation.train)
    ]
    shares = torch.tensor(federation.train.sizes) / sum(federation.train.sizes)
    torch.testing.assert_close(after.vector, shares @ torch.stack(locals_), rtol=1e-5, atol=1e-6)


def test_training_finds_the_planted_law_and_its_planted_bias():
    last, _ = run(Toy().load(), rounds=30)[-1]
    assert last.evaluation["accuracy"] > 0.8
    assert last.evaluation["demographic_parity/pooled"] > 0.2


def test_a_share_of_the_clients_is_another_one_each_round_and_known_from_the_seed():
    chosen = [participants(20, 0.3, Seed(0).generator("participants", round=number)) for number in range(4)]
    assert all(len(ids) == 6 and list(ids) == sorted(set(ids)) for ids in chosen)
    assert len(set(chosen)) == 4
    assert chosen[2] == participants(20, 0.3, Seed(0).generator("participants", round=2))


@pytest.mark.parametrize(("participation", "expected"), [(1.0, 3), (0.5, 2), (0.01, 1)])
def test_the_number_of_participants_is_recorded_and_never_nobody(participation, expected):
    assert {record.participants for record, _ in run(participation=participation)} == {expected}


def test_evaluation_can_be_rarer_but_the_last_round_always_has_it():
    records = [record for record, _ in run(rounds=5, evaluate_every=2)]
    assert [bool(record.evaluation) for record in records] == [False, True, False, True, True]


def test_the_loop_yields_each_round_before_it_computes_the_next():
    rounds = simulate(
        Toy(clients=2, rows=20).load(),
        method=FedAvg(),
        target=DemographicParity(),
        notions=[],
        model=MLP(()),
        training=SGD(),
        aggregation=Mean(),
        engine=Serial(),
        rounds=10**9,
    )
    record, state = next(rounds)
    assert (record.round, state.round) == (1, 1)
