"""Consistency, by hand."""

import math
from dataclasses import replace

import pytest
import torch

from equfl.core.errors import DataError
from equfl.core.samples import Samples, Shards, concatenate
from equfl.fairness.consistency import Consistency
from equfl.fairness.neighbours import nearest

CON = Consistency()


def on_a_line(places: list[float], k: int, **settings: bool) -> Samples:
    inputs = torch.tensor(places, dtype=torch.float32).unsqueeze(1)
    zeros = torch.zeros(len(places), dtype=torch.long)
    return Samples(inputs, zeros, zeros, neighbours=nearest(inputs, k=k, **settings))


def test_it_is_the_mean_distance_from_the_neighbours_mean_prediction() -> None:
    samples = on_a_line([0, 1, 3, 7], k=2)
    # Neighbours: itself and 1, itself and 0, itself and 1, itself and 3.
    assert CON.metric(torch.tensor([1, 0, 0, 1]), samples) == pytest.approx((0.5 + 0.5 + 0 + 0.5) / 4)


def test_a_row_may_be_left_out_of_its_own_neighbours() -> None:
    samples = on_a_line([0, 1, 3, 7], k=2, include_self=False)
    # Neighbours: 1 and 3, 0 and 3, 1 and 0, 3 and 1.
    assert CON.metric(torch.tensor([1, 0, 0, 1]), samples) == pytest.approx((1 + 0.5 + 0.5 + 1) / 4)


@pytest.mark.parametrize("constant", [0, 1])
def test_a_constant_predictor_is_consistent(constant: int) -> None:
    assert CON.metric(torch.full((4,), constant), on_a_line([0, 1, 3, 7], k=3)) == 0


def test_fewer_rows_than_neighbours_are_compared_with_all() -> None:
    assert CON.metric(torch.tensor([1, 0, 0]), on_a_line([0, 1, 3], k=5)) == pytest.approx((2 + 1 + 1) / 9)


def test_one_row_shows_nothing() -> None:
    assert math.isnan(CON.metric(torch.tensor([1]), on_a_line([0], k=5)))


def test_clients_of_different_size_are_compared_among_their_own_rows() -> None:
    parts = [on_a_line([0, 1, 3, 7], k=3), on_a_line([5, 6], k=3), on_a_line([2], k=3)]
    predictions = torch.tensor([1, 0, 0, 1, 1, 0, 1])
    own = torch.cat([torch.nn.functional.pad(p.neighbours, (0, 3 - p.neighbours.shape[1]), value=-1) for p in parts])
    shards = replace(concatenate(parts), own_neighbours=own)
    alone = [CON.metric(part, samples) for part, samples in zip(predictions.split([4, 2, 1]), parts, strict=True)]
    torch.testing.assert_close(
        CON.by_client(predictions, shards), torch.tensor(alone, dtype=torch.float64), equal_nan=True
    )
    assert math.isnan(alone[2])


def test_the_loss_compares_losses_and_not_predictions(losing) -> None:
    logits, samples = losing([(1, 0, 1), (0, 0, 3), (1, 1, 3)])
    samples = replace(samples, neighbours=torch.tensor([[0, 1], [1, 0], [2, 1]]))
    assert CON.loss(logits, samples).item() == pytest.approx((1 + 1 + 0) / 3 * math.log(2))


def test_rows_whose_neighbours_were_not_searched_are_refused_with_a_remedy() -> None:
    samples = replace(on_a_line([0, 1], k=2), neighbours=None)
    with pytest.raises(DataError, match=r"Search them once with equfl\.fairness\.neighbours"):
        CON.metric(torch.tensor([0, 1]), samples)
    with pytest.raises(DataError, match="clients without neighbours of their own"):
        CON.by_client(torch.tensor([0, 1]), Shards(samples, (2,)))


def test_more_than_two_labels_are_refused() -> None:
    with pytest.raises(DataError, match="3 labels; wanted two"):
        CON.metric(torch.tensor([0, 1]), replace(on_a_line([0, 1], k=2), classes=3))
