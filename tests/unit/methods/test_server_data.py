from collections import Counter
from dataclasses import replace

import pytest
import torch

from equfl.aggregation.mean import Mean
from equfl.core.component import known
from equfl.core.protocol import ServerState
from equfl.core.random import Seed
from equfl.core.samples import Samples
from equfl.data.toy import Toy
from equfl.fairness.base import Notion
from equfl.methods._calibrating import importance
from equfl.methods._server_data import cell_counts, collected, model_to_keep
from equfl.methods.equfl import EquFL
from equfl.methods.equfl_solve import EquFLSolve
from equfl.models.mlp import MLP
from equfl.simulation.engines.serial import Serial
from equfl.simulation.loop import simulate
from equfl.synthesis.small_real import SmallReal
from equfl.training.sgd import SGD


def kept_rounds(context, *, rounds=10, seed=0, **settings) -> list[int]:
    """The rounds whose models are in memory after a run that only collects."""
    state = ServerState(0, torch.zeros(1))
    for number in range(1, rounds + 1):
        now = replace(
            context,
            round=number,
            rounds=rounds,
            generator=lambda purpose, n=number: Seed(seed).generator(purpose, round=n),
        )
        state = ServerState(
            number, torch.tensor([float(number)]), {}, {**state.memory, **model_to_keep(state, now, **settings)}
        )
    return [int(name.removeprefix("collected/")) for name in sorted(state.memory)]


def test_continuous_collecting_keeps_the_first_rounds(context):
    assert kept_rounds(context, share=0.5) == [1, 2, 3, 4, 5]
    assert kept_rounds(context, share=0.5, models=3) == [1, 2, 3]
    assert kept_rounds(context, share=0.0) == []


@pytest.mark.parametrize("models", [1, 3, 5])
def test_discrete_collecting_keeps_exactly_as_many_from_among_the_first_rounds(context, models):
    for seed in range(20):
        kept = kept_rounds(context, share=0.6, models=models, strategy="discrete", seed=seed)
        assert len(kept) == models
        assert max(kept) <= 6


def test_discrete_collecting_takes_every_round_equally_often(context):
    runs = [kept_rounds(context, share=0.6, models=3, strategy="discrete", seed=seed) for seed in range(400)]
    often = Counter(number for kept in runs for number in kept)
    # 400 runs with 3 of 6 rounds each: 200 times, give or take four standard deviations of 10.
    assert all(160 < often[number] < 240 for number in range(1, 7))
    assert len({tuple(kept) for kept in runs}) == 20


def test_discrete_collecting_of_all_rounds_is_continuous(context):
    assert kept_rounds(context, share=0.5, strategy="discrete") == [1, 2, 3, 4, 5]


def test_more_models_than_collecting_rounds_are_all_of_them(context):
    assert kept_rounds(context, share=0.3, models=50) == [1, 2, 3]
    assert kept_rounds(context, share=0.3, models=50, strategy="discrete") == [1, 2, 3]


def test_collected_models_come_oldest_first():
    memory = {f"collected/{number:05d}": torch.tensor([float(number)]) for number in (30, 2, 11)}
    assert collected(ServerState(40, torch.zeros(1), {}, memory)).flatten().tolist() == [2, 11, 30]


def test_without_collected_models_there_is_an_empty_trajectory():
    assert collected(ServerState(0, torch.zeros(3))).shape == (0, 3)


ONE_GROUP = Samples(torch.zeros(4, 3), torch.tensor([0, 0, 0, 1]), torch.zeros(4, dtype=torch.int64))


def test_cells_and_groups_without_rows_are_counted(context):
    assert cell_counts(ONE_GROUP, context.schema) == {
        "synthesis/rows/no/a": 3.0,
        "synthesis/rows/no/b": 0.0,
        "synthesis/rows/yes/a": 1.0,
        "synthesis/rows/yes/b": 0.0,
        "synthesis/cells_without_rows": 2.0,
        "synthesis/groups_without_rows": 1.0,
    }


def test_soft_rows_count_by_their_share(context):
    soft = replace(ONE_GROUP, labels=torch.tensor([[0.25, 0.75]] * 4))
    assert cell_counts(soft, context.schema)["synthesis/rows/yes/a"] == 3.0


def test_rows_weigh_as_their_group_weighs_in_the_federation():
    samples = replace(ONE_GROUP, groups=torch.tensor([0, 0, 0, 1]))
    weights = importance(samples, torch.tensor([0.6, 0.4]))
    torch.testing.assert_close(weights, torch.tensor([0.2, 0.2, 0.2, 0.4]))


def test_the_weight_of_a_group_without_synthetic_rows_is_nobodys():
    torch.testing.assert_close(importance(ONE_GROUP, torch.tensor([0.6, 0.4])), torch.full((4,), 0.15))


@pytest.mark.parametrize("method", [EquFL(), EquFLSolve(smooth=2)], ids=lambda method: method.name)
@pytest.mark.parametrize("target", [notion() for notion in known(Notion).values()], ids=str)
def test_a_server_that_has_rows_of_one_group_only_leaves_the_model_finite_and_says_so(method, target):
    rounds = simulate(
        Toy(clients=3, rows=40).load(),
        method=replace(method, synthesis=SmallReal(samples=1)),
        target=target,
        notions=[],
        model=MLP((4,)),
        training=SGD(batch_size=16),
        aggregation=Mean(),
        engine=Serial(),
        rounds=6,
    )
    records, states = zip(*rounds, strict=True)
    assert states[-1].vector.isfinite().all()
    told = [record.diagnostics for record in records if "synthesis/groups_without_rows" in record.diagnostics]
    assert [(one["synthesis/groups_without_rows"], one["synthesis/cells_without_rows"]) for one in told] == [(1, 3)]
