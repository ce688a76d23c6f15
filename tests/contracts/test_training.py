"""What every training must do, today's and later ones."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from equfl.aggregation.mean import Mean
from equfl.core.component import known
from equfl.core.random import Seed
from equfl.data.toy import Toy
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.methods.fedavg import FedAvg
from equfl.methods.fedminmax import FedMinMax
from equfl.models.mlp import MLP
from equfl.privacy.accounting import epsilon
from equfl.simulation.engines.batched import Batched
from equfl.simulation.engines.serial import Serial
from equfl.simulation.loop import simulate
from equfl.training.base import Training

TRAININGS = [training() for training in known(Training).values()]
PRIVATE = [training for training in TRAININGS if training.protection(100, 1)]
ROUNDS = 4


def run(training: Training, **settings):
    defaults = {"federation": Toy(clients=3, rows=90, spread=0.5).load(), "engine": Serial(), "model": MLP((4,))}
    settings = defaults | settings
    return list(
        simulate(
            settings.pop("federation"),
            method=settings.pop("method", FedAvg()),
            target=EqualizedOdds(),
            notions=[EqualizedOdds()],
            training=training,
            aggregation=Mean(),
            rounds=ROUNDS,
            **settings,
        )
    )


@pytest.mark.parametrize("training", TRAININGS, ids=lambda training: training.name)
class TestTraining:
    def test_the_same_seed_gives_the_same_run_and_another_seed_another(self, training):
        first, again, other = run(training), run(training), run(training, seed=1)
        assert torch.equal(first[-1][1].vector, again[-1][1].vector)
        assert not torch.equal(first[-1][1].vector, other[-1][1].vector)

    def test_going_on_from_any_round_ends_where_the_undisturbed_run_ended(self, training):
        undisturbed = run(training)
        for _, state in undisturbed[:-1]:
            assert torch.equal(run(training, state=state)[-1][1].vector, undisturbed[-1][1].vector)

    @pytest.mark.parametrize("hidden", [(), (4,), (5, 3)], ids=str)
    def test_clients_trained_at_once_end_where_clients_one_by_one_do(self, training, hidden):
        model = MLP(hidden)
        one_by_one = run(training, model=model)[-1][1].vector
        torch.testing.assert_close(run(training, model=model, engine=Batched())[-1][1].vector, one_by_one)

    def test_engines_agree_for_clients_of_any_size_and_rows_of_any_weight(self, training):
        federation = Toy(clients=1, rows=200).load()
        shards, draws = federation.train, Seed(0).generator("weights")
        rows = len(shards.pooled)
        sizes = (1, 70, rows - 101, 30)
        weighted = replace(shards.pooled, importance=torch.rand(rows, generator=draws) * 3)
        federation = replace(
            federation, clients=tuple("abcd"), train=replace(shards, pooled=weighted, sizes=sizes), test=federation.test
        )
        small = replace(
            training,
            **({"local": replace(training.local, batch_size=16)} if hasattr(training, "local") else {"batch_size": 16}),
        )
        states = [
            run(small, federation=federation, engine=engine)[-1][1] for engine in (Serial(), Batched(memory_mb=1))
        ]
        torch.testing.assert_close(states[1].vector, states[0].vector)

    def test_engines_agree_where_the_method_weighs_rows_anew_in_each_round(self, training):
        # A weight scales a row's gradient before it is clipped, so what is always clipped cannot show it.
        training = replace(training, clip=100.0) if training.protection(100, 1) else training
        states = [run(training, method=FedMinMax(rate=3.0), engine=engine)[-1][1] for engine in (Serial(), Batched())]
        torch.testing.assert_close(states[1].vector, states[0].vector)
        assert not torch.equal(states[0].vector, run(training)[-1][1].vector)

    def test_the_global_model_is_left_as_it_was(self, training):
        (_, state), *_ = run(training)
        before = state.vector.clone()
        run(training, state=state)
        assert torch.equal(state.vector, before)


@pytest.mark.parametrize("training", PRIVATE, ids=lambda training: training.name)
class TestPrivateTraining:
    def epsilon(self, training, rounds=10, rows=1000):
        protection = training.protection(rows, rounds)
        return epsilon(protection.releases, protection.delta)

    def test_more_rounds_cost_more(self, training):
        costs = [self.epsilon(training, rounds) for rounds in (1, 2, 5, 20, 100)]
        assert all(fewer < more for fewer, more in pairwise(costs))

    def test_more_noise_costs_less_and_none_costs_everything(self, training):
        costs = [self.epsilon(replace(training, noise=noise)) for noise in (0.0, 0.3, 1.0, 3.0, 10.0)]
        assert costs[0] == float("inf")
        assert all(quieter > louder for quieter, louder in pairwise(costs))

    def test_the_noise_is_another_in_every_round_and_at_every_client(self, training):
        """With the updates clipped to nothing, a round moves the model by its clients' mean noise alone."""
        quiet = replace(training, clip=1e-12, noise=1e10)
        start, *rest = [state.vector for _, state in run(quiet, model=MLP((60,)))]
        moves = [after - before for before, after in pairwise([start, *rest])]
        assert torch.cosine_similarity(moves[0], moves[1], dim=0).abs() < 0.2
        one = run(quiet, model=MLP((60,)), federation=Toy(clients=1, rows=90).load())
        alone = one[1][1].vector - one[0][1].vector
        assert moves[0].std().item() == pytest.approx(alone.std().item() / 3**0.5, rel=0.2)
