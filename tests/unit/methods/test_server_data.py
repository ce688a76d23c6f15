from collections import Counter
from dataclasses import replace

import pytest
import torch

from equfl.core.protocol import ServerState
from equfl.core.random import Seed
from equfl.methods._server_data import collected, model_to_keep


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
