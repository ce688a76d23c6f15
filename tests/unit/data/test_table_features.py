"""Which columns of a user's table are numbers, which are codes, which say nothing."""

import datetime

import pyarrow as pa
import pytest

from equfl.data._column_types import simplified
from equfl.data._table_features import Account, read_feature


def read(values, *, categorical=(), numeric=(), most_codes=50):
    account = Account()
    column = simplified("c", pa.chunked_array([pa.array(values)]))
    found = read_feature("c", column, categorical=categorical, numeric=numeric, most_codes=most_codes, account=account)
    return found and (found[0], found[1].to_pylist()), account


def codes(values, **settings):
    (feature, _), account = read(values, **settings)
    return feature.codes, account


def test_text_is_codes_in_the_order_of_the_alphabet():
    (feature, values), account = read(["b", "a", "b"])
    assert feature.codes == ("a", "b")
    assert values == ["b", "a", "b"]
    assert account == Account()


def test_booleans_are_codes():
    assert codes([True, False, True])[0] == ("false", "true")


def test_whole_numbers_with_few_values_are_codes_in_their_own_order_and_it_is_told():
    found, account = codes([10, 9, 2] * 10)
    assert found == ("2", "9", "10")
    assert account.as_categories == ["c (3 different values)"]


@pytest.mark.parametrize(
    "values",
    [[1, 2, 3] * 9, list(range(11)) * 20, [0.5, 1.5] * 50, [7, 3, 9, 1]],
    ids=["too few rows each", "too many values", "fractions", "all different"],
)
def test_other_numbers_are_numbers(values):
    (feature, found), account = read(values)
    assert feature.codes == ()
    assert found == values
    assert account.as_categories == []


def test_the_user_may_overrule():
    assert codes([0.5, 1.5, 10.0], categorical=("c",))[0] == ("0.5", "1.5", "10")
    assert codes([1, 2] * 50, numeric=("c",))[0] == ()
    (feature, found), _ = read(["1", "2.5", None], numeric=("c",))
    assert feature.codes == ()
    assert found == [1, 2.5, None]


def test_moments_are_numbers():
    days = [datetime.date(2020, 1, day) for day in (3, 1, 2)]
    assert codes(days)[0] == ()
    assert codes(days, categorical=("c",))[0] == ("2020-01-01", "2020-01-02", "2020-01-03")


def test_a_missing_number_stays_missing_for_its_client_and_a_missing_code_is_a_code():
    (_, found), account = read([1.5, None, 3.5])
    assert found == [1.5, None, 3.5]
    assert account.missing == ["c: 1 became the mean of their client"]
    (feature, found), account = read(["a", None, "b"])
    assert feature.codes == ("a", "b", "missing")
    assert found == ["a", "missing", "b"]
    assert account.missing == ["c: 1 became the code 'missing'"]


def test_a_value_that_is_called_missing_is_the_same_as_none():
    (feature, found), _ = read(["missing", None, "b"])
    assert feature.codes == ("b", "missing")
    assert found == ["missing", "missing", "b"]


def test_the_rarest_codes_are_put_together_and_it_is_told_how_many():
    (feature, found), account = read([*"aaabbbccd"], most_codes=3)
    assert feature.codes == ("a", "b", "other")
    assert found == [*"aaabbb", "other", "other", "other"]
    assert account.rare == ["c: 2 of 4 values, in 3 rows"]


def test_a_value_that_is_called_other_is_among_the_others():
    (feature, found), _ = read(["other"] * 4 + [*"aaabbc"], most_codes=2)
    assert feature.codes == ("a", "other")
    assert found == ["other"] * 4 + [*"aaa"] + ["other"] * 3


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([None, None], "no values"),
        (["x", "x"], "'x' in every row"),
        ([3, 3], "'3' in every row"),
        ([3, None], "the same wherever it is given"),
        (["p1", "p2", "p3"], "a different value in every row"),
        ([4, 5, 6], "numbers the rows"),
        ([6, 4, 5], "numbers the rows"),
        ([10, 20, 40], "numbers the rows"),
    ],
)
def test_a_column_that_says_nothing_is_left_out_with_the_reason(values, reason):
    found, account = read(values)
    assert found is None
    assert account.left_out == [f"c ({reason})"]


def test_text_with_nearly_as_many_values_as_rows_is_left_out():
    values = [f"street {number}" for number in range(60)] + ["street 1"] * 40
    found, account = read(values)
    assert found is None
    assert account.left_out == ["c (60 different values in 100 rows)"]
    assert codes(values, categorical=("c",))[0][-1] == "other"


def test_whether_a_text_is_given_may_say_something():
    assert codes(["x", None, "x"])[0] == ("x", "missing")


def test_whole_numbers_that_all_differ_are_kept_and_doubted():
    _, account = read([70, 3, 500, 12])
    assert account.doubtful == ["c"]
    assert read([70, 3, 500, 12], numeric=("c",))[1].doubtful == []
