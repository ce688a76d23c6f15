"""Count tables."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import one_hot

from equfl.core.errors import DataError
from equfl.core.samples import Samples, Shards
from equfl.fairness.counts import (
    binary,
    correct,
    count,
    count_by_client,
    count_jointly,
    large_groups,
    largest,
    largest_gap,
)

NAN = float("nan")

PREDICTIONS = torch.tensor([0, 1, 1, 0, 1])
SAMPLES = Samples(torch.zeros(5, 1), torch.tensor([0, 1, 0, 0, 1]), torch.tensor([0, 1, 1, 0, 0]), group_count=3)


def test_every_row_is_in_one_cell() -> None:
    table = count(PREDICTIONS, SAMPLES)
    assert table.shape == (2, 2, 3)
    assert table[0, 0].tolist() == [2, 0, 0]
    assert table[1, 0].tolist() == [0, 1, 0]
    assert table[1, 1].tolist() == [1, 1, 0]
    assert table.sum() == 5


def test_soft_memberships_are_added_up() -> None:
    labels = torch.tensor([[0.25, 0.75], [1.0, 0.0]])
    groups = torch.tensor([[0.5, 0.5], [0.0, 1.0]])
    table = count(torch.tensor([1, 1]), Samples(torch.zeros(2, 1), labels, groups))
    torch.testing.assert_close(table[1], torch.tensor([[0.125, 1.125], [0.375, 0.375]], dtype=torch.float64))


def test_one_of_the_two_may_be_soft() -> None:
    soft = replace(SAMPLES, groups=one_hot(SAMPLES.groups, 3).float())
    torch.testing.assert_close(count(PREDICTIONS, soft), count(PREDICTIONS, SAMPLES))


def test_the_clients_tables_add_up_to_the_table_of_all() -> None:
    shards = Shards(SAMPLES, (2, 0, 3))
    tables = count_by_client(PREDICTIONS, shards)
    assert tables.sum(dim=(1, 2, 3)).tolist() == [2, 0, 3]
    assert torch.equal(tables.sum(dim=0), count(PREDICTIONS, SAMPLES))
    assert torch.equal(tables[2], count(PREDICTIONS[2:], SAMPLES.rows(slice(2, 5))))


def test_a_joint_table_summed_over_one_model_is_the_others() -> None:
    after = torch.tensor([1, 1, 0, 0, 0])
    shards = Shards(SAMPLES, (2, 3))
    joint = count_jointly(PREDICTIONS, after, shards)
    assert torch.equal(joint.sum(dim=2), count_by_client(PREDICTIONS, shards))
    assert torch.equal(joint.sum(dim=1), count_by_client(after, shards))
    assert joint[0, 0, 1, 0, 0] == 1


def test_right_predictions_are_counted_by_group() -> None:
    assert correct(count(PREDICTIONS, SAMPLES)).tolist() == [3, 1, 0]


def test_groups_of_just_the_smallest_share_are_large_enough() -> None:
    table = count(PREDICTIONS, SAMPLES)
    assert large_groups(table, 0.4).tolist() == [True, True, False]
    assert large_groups(table, 0.41).tolist() == [True, False, False]
    assert large_groups(table, 0.0).all()


def test_the_largest_gap_is_between_groups_that_are_present() -> None:
    rates = torch.tensor([[0.2, 0.9, 0.5], [0.2, 0.9, 0.5], [0.2, 0.9, 0.5]])
    present = torch.tensor([[True, True, True], [True, False, True], [False, True, False]])
    torch.testing.assert_close(largest_gap(rates, present), torch.tensor([0.7, 0.3, NAN]), equal_nan=True)


def test_the_largest_value_is_one_that_is_known() -> None:
    values = torch.tensor([[0.1, NAN], [0.1, 0.4], [NAN, NAN]])
    torch.testing.assert_close(largest(values), torch.tensor([0.1, 0.4, NAN]), equal_nan=True)


def test_more_than_two_labels_are_refused_with_a_remedy() -> None:
    with pytest.raises(DataError, match=r"3 labels; wanted two.*Make the label binary"):
        binary(torch.zeros(3, 3, 2))
