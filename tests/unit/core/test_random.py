import torch

from equfl.core.random import Seed


def draw(seed: int, purpose: str = "shuffle", **name: int) -> list[float]:
    return torch.rand(4, generator=Seed(seed).generator(purpose, **name)).tolist()


def test_the_same_name_gives_the_same_numbers():
    assert draw(1, round=3, client=7) == draw(1, round=3, client=7)


def test_seed_purpose_round_and_client_each_change_the_numbers():
    draws = [draw(1), draw(2), draw(1, "init"), draw(1, round=1), draw(1, client=1), draw(1, round=1, client=1)]
    assert len({tuple(d) for d in draws}) == len(draws)


def test_the_global_generator_is_neither_used_nor_moved():
    before = torch.random.get_rng_state()
    draw(5)
    assert torch.equal(before, torch.random.get_rng_state())
