"""The simulator and a Flower strategy are two drivers of the same method, so they reach the same model."""

from dataclasses import replace

import pytest
import torch
from flwr.app import ArrayRecord
from flwr.serverapp.strategy import FedAvg

from equfl.aggregation.mean import Mean
from equfl.core.component import known
from equfl.core.errors import ConfigError
from equfl.core.random import Seed
from equfl.data.toy import Toy
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.flower import EquFLStrategy, InlineGrid, SimulatedClients
from equfl.methods.base import Method
from equfl.models.mlp import MLP
from equfl.simulation.engines.serial import Serial
from equfl.simulation.loop import simulate, start
from equfl.synthesis.trajectory_matching import TrajectoryMatching
from equfl.training.sgd import SGD

ROUNDS = 10
FEDERATION = Toy(clients=4, rows=60, spread=1.0).load()
MODEL, TRAINING = MLP((4,)), SGD(batch_size=16)
NETWORK = MODEL.network(FEDERATION.schema.shape, 2)


def quick(method: type[Method]) -> Method:
    default = method()
    if hasattr(default, "synthesis"):
        return replace(default, synthesis=TrajectoryMatching(samples=16, iterations=3, match_steps=2))
    return default


METHODS = [quick(method) for method in known(Method).values()]
SURVEYING = [method for method in METHODS if any(one.when == "once" for one in method.leaves())]


@pytest.mark.parametrize("method", SURVEYING, ids=lambda method: method.name)
def test_what_must_know_the_clients_counts_before_the_first_round_is_refused(method):
    with pytest.raises(ConfigError, match=f"method = {method.name}, which asks the clients for .* before the first"):
        EquFLStrategy(
            FedAvg(),
            method=method,
            model=NETWORK,
            schema=FEDERATION.schema,
            target=EqualizedOdds(),
            learning_rate=0.1,
            local_steps=4.0,
        )


@pytest.mark.parametrize(
    "method", [method for method in METHODS if method not in SURVEYING], ids=lambda method: method.name
)
def test_simulator_and_flower_reach_the_same_model(method):
    *_, (_, simulated) = simulate(
        FEDERATION,
        method=method,
        target=EqualizedOdds(),
        notions=[],
        model=MODEL,
        training=TRAINING,
        aggregation=Mean(),
        engine=Serial(),
        rounds=ROUNDS,
    )
    initial = start(MODEL, NETWORK, Seed(0))
    strategy = EquFLStrategy(
        FedAvg(fraction_evaluate=0.0),
        method=method,
        model=NETWORK,
        schema=FEDERATION.schema,
        target=EqualizedOdds(),
        learning_rate=TRAINING.learning_rate,
        local_steps=sum(TRAINING.steps(size) for size in FEDERATION.train.sizes) / len(FEDERATION.train),
    )
    grid = InlineGrid(SimulatedClients(FEDERATION, model=MODEL, training=TRAINING, method=method))
    result = strategy.start(grid, ArrayRecord(NETWORK.layout.unflatten(initial.vector)), num_rounds=ROUNDS)
    reached = NETWORK.layout.flatten(result.arrays.to_torch_state_dict())
    torch.testing.assert_close(reached, simulated.vector, rtol=0, atol=1e-5)
