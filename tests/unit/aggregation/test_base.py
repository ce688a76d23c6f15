"""What the record says about the clients of a round."""

from dataclasses import dataclass

import pytest
import torch

from equfl.aggregation.base import Aggregated, Aggregation, Tally
from equfl.aggregation.mean import Mean
from equfl.core.errors import ConfigError
from equfl.models.mlp import MLP


@dataclass(frozen=True)
class Picky(Aggregation):
    """Takes the first update only; not registered, as it has no name of its own."""

    name = "picky"

    def __call__(self, updates, shares, context):
        return Aggregated(updates[0], torch.arange(len(updates)) == 0, {"pickiness": 1.0})

    def needs(self, clients):
        return 3


def test_a_rule_that_takes_everybody_tells_nothing(context):
    tally = Tally(Mean(), (3, 5))
    assert tally.apply(torch.eye(2), torch.tensor([0.5, 0.5]), context).tolist() == [0.5, 0.5]
    assert (tally.numbers, tally.rejected, tuple(tally.accepted)) == ({}, (), (3, 5))


def test_who_was_left_out_is_known_by_client_and_counted_by_reason(context):
    tally = Tally(Picky(), (3, 5, 8, 9))
    tally.usable = (5, 8, 9)
    tally.apply(torch.eye(3), torch.full((3,), 1 / 3), context)
    assert (tuple(tally.accepted), tally.rejected) == ((5,), (3, 8, 9))
    assert tally.numbers == {"not_finite": 1.0, "rejected": 2.0, "picky/pickiness": 1.0}


def test_a_round_with_fewer_clients_than_the_rule_needs_is_counted(context):
    tally = Tally(Picky(), (3, 5, 8))
    tally.usable = (5, 8)
    tally.apply(torch.eye(2), torch.full((2,), 0.5), context)
    assert tally.numbers["too_few"] == 1.0


def test_a_round_of_which_nothing_can_be_used_is_counted():
    tally = Tally(Mean(), (3, 5))
    tally.usable = ()
    assert tally.numbers == {"not_finite": 2.0, "too_few": 1.0, "idle": 1.0}
    assert tally.rejected == (3, 5)


def test_too_few_participants_are_refused_with_what_to_do():
    with pytest.raises(ConfigError, match=r"2 participants in a round; wanted at least 3\. Raise participation"):
        Picky().check(2, MLP((4,)).network((3,), 2))
