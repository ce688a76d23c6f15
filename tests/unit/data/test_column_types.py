"""Arrow's column types as five."""

import datetime

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equfl.core.errors import DataError
from equfl.data._column_types import as_numbers, as_text, is_text, is_whole, shown, simplified


def column(values, kind=None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["a", None, " b "], pa.string(), ["a", None, "b"]),
        (["a", "?"], pa.large_string(), ["a", None]),
        (["a", "NA"], pa.string_view(), ["a", None]),
        ([1, None], pa.uint8(), [1, None]),
        ([2**63], pa.uint64(), ["9223372036854775808"]),
        ([1.0, None, float("nan")], pa.float32(), [1, None, None]),
        ([1.5, float("nan")], pa.float64(), [1.5, None]),
        ([True, None], pa.bool_(), [True, None]),
        ([None, None], pa.null(), [None, None]),
    ],
)
def test_a_column_becomes_the_simplest_type_that_holds_it(values, kind, expected):
    assert simplified("c", column(values, kind)).to_pylist() == expected


def test_decimals_are_numbers():
    values = pa.array([1, 2]).cast(pa.decimal128(21, 2))
    assert simplified("c", pa.chunked_array([values])).to_pylist() == [1, 2]


def test_a_dictionary_becomes_text_whatever_it_holds_and_whoever_made_it():
    ours = pa.chunked_array([pa.array(["b", None, "a"]).dictionary_encode(), pa.array(["c"]).dictionary_encode()])
    theirs = pa.table(pl.DataFrame({"c": ["b", None, "a", "c"]}, schema={"c": pl.Categorical}))["c"]
    numbers = pa.chunked_array([pa.array([3, None, 5]).dictionary_encode()])
    assert simplified("c", ours).to_pylist() == ["b", None, "a", "c"]
    assert simplified("c", theirs).to_pylist() == ["b", None, "a", "c"]
    assert simplified("c", numbers).to_pylist() == ["3", None, "5"]


def test_fractions_of_0_are_whole_numbers_since_a_missing_one_makes_fractions_of_them():
    assert is_whole(simplified("c", column([1.0, None, 3.0])))
    assert not is_whole(simplified("c", column([1.0, 2.5])))
    assert not is_whole(simplified("c", column([1e20])))
    assert not is_whole(simplified("c", column([float("nan")])))


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e200])
def test_infinite_numbers_are_refused_with_how_many_they_are(value):
    with pytest.raises(DataError, match="'wage' is infinite, or as good as that, in 2 rows"):
        simplified("wage", column([value, 1.0, value, None]))


@pytest.mark.parametrize("values", [[[1]], [{"a": 1}], [b"x"]])
def test_what_is_no_single_value_is_refused(values):
    with pytest.raises(DataError, match=r"the column 'c' holds .*; wanted numbers, text, true and false, or dates"):
        simplified("c", column(values))


def test_moments_count_in_seconds():
    day = datetime.datetime(1970, 1, 2)
    assert as_numbers("c", column([day, None])).to_pylist() == [86400.0, None]
    assert as_numbers("c", column([day.date()])).to_pylist() == [86400.0]
    assert as_numbers("c", column([datetime.time(0, 1)])).to_pylist() == [60.0]
    assert as_numbers("c", column([datetime.timedelta(minutes=2)])).to_pylist() == [120.0]
    assert as_numbers("c", column([day], pa.timestamp("ns"))).to_pylist() == [86400.0]
    assert as_numbers("c", column([day], pa.timestamp("s", "UTC"))).to_pylist() == [86400.0]


def test_text_may_be_read_as_numbers_if_every_value_is_one():
    assert as_numbers("c", column(["1", "2.5", None])).to_pylist() == [1, 2.5, None]
    assert as_numbers("c", column([True, False])).to_pylist() == [1, 0]
    with pytest.raises(DataError, match="the column 'c' holds 'one', 'two'; wanted a number in every row"):
        as_numbers("c", column(["1", "one", "two"]))
    with pytest.raises(DataError, match="infinite"):
        as_numbers("c", column(["1", "inf"]))


def test_text_and_booleans_have_no_order():
    assert is_text(column(["a"]))
    assert is_text(column([True]))
    assert not is_text(column([1]))
    assert as_text(column([True, None, False])).to_pylist() == ["true", None, "false"]


@given(st.lists(st.none() | st.floats(width=64) | st.integers(-(2**60), 2**60), min_size=1))
def test_numbers_come_out_finite_and_equal_or_are_refused(values):
    plain = [None if value is None else float(value) for value in values]
    try:
        found = as_numbers("c", simplified("c", column(plain, pa.float64()))).to_pylist()
    except DataError:
        assert any(value is not None and abs(value) >= 1e150 for value in plain)
    else:
        for ours, theirs in zip(found, plain, strict=True):
            assert ours == theirs if theirs is not None and theirs == theirs else ours is None
            assert ours is None or np.isfinite(ours)


def test_few_values_are_shown_and_long_ones_cut():
    assert shown(["a"]) == "'a'"
    assert shown(range(7)) == "'0', '1', '2', '3', '4' and 2 more"
    assert shown(["x" * 40]) == f"'{'x' * 27}...'"
