"""Which rows belong to whom, and which of them train and test."""

import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equfl.data.partition import by_party, sizes_by_count, split_by_count, split_by_share


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (200_000, (1000, 2000)),
        (5000, (1000, 2000)),
        (4999, (999, 1999)),
        (3473, (694, 1389)),
        (5, (1, 2)),
        (4, (0, 1)),
        (0, (0, 0)),
    ],
)
def test_a_party_below_5000_rows_keeps_the_proportions_of_1000_and_2000(rows, expected):
    assert sizes_by_count(rows, train=1000, test=2000) == expected


@given(rows=st.integers(0, 10**6), train=st.integers(1, 5000), test=st.integers(1, 5000))
def test_at_least_as_many_rows_are_kept_out_as_are_tested_on(rows, train, test):
    trained, tested = sizes_by_count(rows, train=train, test=test)
    assert 0 <= trained <= train
    assert 0 <= tested <= test
    assert rows - trained - tested >= tested


@given(rows=st.integers(1, 300), seed=st.integers(0, 9))
def test_no_row_is_both_trained_and_tested_on(rows, seed):
    for train, test in (
        split_by_count("AL", rows, train=20, test=30, seed=seed),
        split_by_share("AL", rows, test_share=0.3, seed=seed),
    ):
        together = torch.cat([train, test])
        assert together.unique().numel() == together.numel()
        assert together.numel() == 0 or 0 <= together.min() <= together.max() < rows
        assert torch.equal(train, train.sort().values)
        assert torch.equal(test, test.sort().values)


@given(rows=st.integers(2, 300), share=st.floats(0.01, 0.99))
def test_by_share_every_row_is_used_and_each_side_has_one(rows, share):
    train, test = split_by_share("a", rows, test_share=share)
    assert len(train) + len(test) == rows
    assert min(len(train), len(test)) >= 1
    assert abs(len(test) - rows * share) <= 1


def test_the_split_depends_on_seed_and_party_alone():
    one = split_by_count("AL", 9000, seed=1)
    assert all(map(torch.equal, one, split_by_count("AL", 9000, seed=1)))
    assert not torch.equal(one[0], split_by_count("AL", 9000, seed=2)[0])
    assert not torch.equal(one[0], split_by_count("AK", 9000, seed=1)[0])


def test_rows_go_to_their_party_in_the_order_they_came():
    table = pa.table({"party": ["b", "a", "b", "c", "a"], "row": [0, 1, 2, 3, 4]})
    found = by_party(table, "party")
    assert {name: part["row"].to_pylist() for name, part in found.items()} == {"a": [1, 4], "b": [0, 2], "c": [3]}
    assert list(found) == ["a", "b", "c"]


def test_parties_that_are_numbers_are_in_the_order_of_numbers():
    assert list(by_party(pa.table({"party": [10, 9, 10]}), "party")) == ["9", "10"]


def test_parties_may_be_encoded_as_a_dictionary():
    column = pa.chunked_array([pa.array(["b", "a"]).dictionary_encode(), pa.array(["a", "c"]).dictionary_encode()])
    found = by_party(pa.table({"party": column, "row": [0, 1, 2, 3]}), "party")
    assert {name: part["row"].to_pylist() for name, part in found.items()} == {"a": [1, 2], "b": [0], "c": [3]}
