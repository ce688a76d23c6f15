"""Federations that a program has made: what is refused, and how it is told."""

from dataclasses import replace

import pytest
import torch

from equfl.core.errors import DataError
from equfl.data.soundness import demand_sound
from equfl.data.toy import Toy

TOY = Toy(clients=3, rows=20).load()


def having(part: str, **fields):
    """The toy federation with other rows to train or to test on."""
    shards = getattr(TOY, part)
    return replace(TOY, **{part: replace(shards, pooled=replace(shards.pooled, **fields))})


def spoilt(value: float) -> torch.Tensor:
    inputs = TOY.test.pooled.inputs.clone()
    inputs[45, 1] = value
    return inputs


def sized(part: str, *sizes: int):
    return replace(TOY, **{part: replace(getattr(TOY, part), sizes=sizes)})


def same_everywhere(field: str, value: int):
    alike = torch.full_like(TOY.train.pooled.labels, value)
    both = having("train", **{field: alike}), having("test", **{field: alike})
    return replace(both[0], test=both[1].test)


def test_what_is_sound_passes():
    demand_sound(TOY)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_number_that_is_not_finite_is_named_with_its_column_and_its_client(value):
    told = rf"input 1 \(effort\) of a row to test on is {value}, at the client 'client 2'; wanted finite numbers"
    with pytest.raises(DataError, match=told):
        demand_sound(having("test", inputs=spoilt(float(value))))


def test_numbers_that_add_up_to_infinity_are_finite():
    demand_sound(having("test", inputs=TOY.test.pooled.inputs.abs() * 1e38))


def test_a_client_without_rows_to_train_on_is_named_and_one_without_rows_to_test_on_is_not():
    with pytest.raises(DataError, match="the client 'client 1' has no rows to train on"):
        demand_sound(sized("train", 30, 0, 30))
    demand_sound(sized("test", 30, 0, 30))


@pytest.mark.parametrize("sizes", [(20, 20, 21), (60,), (20, 20, 10, 10)], ids=str)
def test_sizes_must_divide_the_rows_among_the_clients(sizes):
    with pytest.raises(
        DataError, match=r"sizes of \d clients that add up to \d\d; wanted all rows divided among the 3"
    ):
        demand_sound(sized("train", *sizes))


@pytest.mark.parametrize("field", ["labels", "groups"])
@pytest.mark.parametrize(("shift", "number"), [(-1, -1), (1, 2)])
def test_numbers_that_the_schema_does_not_name_are_refused(field, shift, number):
    values = getattr(TOY.train.pooled, field) + shift
    with pytest.raises(DataError, match=rf"the {field[:-1]} of a row is {number}; wanted numbers from 0 to 1"):
        demand_sound(having("train", **{field: values}))


@pytest.mark.parametrize(("field", "name"), [("labels", "yes"), ("groups", "man")])
def test_one_value_in_every_row_is_refused_and_named(field, name):
    with pytest.raises(DataError, match=rf"the {field[:-1]} is '{name}' in every row; wanted at least two"):
        demand_sound(same_everywhere(field, 1))


def test_memberships_are_not_numbers():
    demand_sound(having("train", labels=TOY.train.pooled.label_weights()))
