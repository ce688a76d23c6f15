"""The label and the sensitive columns of a user's table."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equfl.core.errors import DataError
from equfl.data._column_types import simplified
from equfl.data._table_roles import read_label, read_sensitive


def column(values) -> pa.ChunkedArray:
    return simplified("c", pa.chunked_array([pa.array(values)]))


def label(values, positive=""):
    found, classes = read_label("hired", column(values), positive=positive)
    return found.to_pylist(), classes


def groups(values, *, bins=4, cuts=(), codes=False, most_codes=50):
    feature, found = read_sensitive("age", column(values), bins=bins, cuts=cuts, codes=codes, most_codes=most_codes)
    return feature, found.to_pylist()


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([0, 1], ("0", "1")),
        ([-1, 1], ("-1", "1")),
        ([0.0, 1.0], ("0", "1")),
        ([False, True], ("false", "true")),
        (["no", "yes"], ("no", "yes")),
        (["N", "Y"], ("N", "Y")),
        (["No", "Yes"], ("No", "Yes")),
        (["F", "T"], ("F", "T")),
    ],
)
def test_the_usual_words_for_no_and_yes_are_known(values, classes):
    assert label(values) == ([0, 1], classes)
    assert label(values[::-1]) == ([1, 0], classes)


def test_the_user_says_which_value_is_favourable():
    assert label([">50K", "<=50K"], positive=">50K") == ([1, 0], ("<=50K", ">50K"))
    assert label([0, 1], positive="0") == ([1, 0], ("1", "0"))


@pytest.mark.parametrize(
    ("values", "positive", "told"),
    [
        (["good", "bad"], "", r"is 'bad' or 'good'; wanted to know .* --set data\.positive="),
        (["good", "bad"], "Good", "is never 'Good'; wanted positive as one of 'bad', 'good'"),
        ([1, 1], "", "has one value only: '1'; wanted exactly two. Choose another label"),
        ([1, 2, 3], "", "has 3 different values: '1', '2', '3'; wanted exactly two. Make a column"),
        ([0.5, 1.5, 2.5, 3.5, 4.5, 5.5], "", "has 6 different values: .* and 1 more"),
    ],
)
def test_a_label_without_two_known_values_is_refused(values, positive, told):
    with pytest.raises(DataError, match=rf"the label 'hired' {told}"):
        label(values, positive)


def test_a_sensitive_column_with_few_values_makes_a_group_of_each():
    feature, found = groups(["w", "m", "w"])
    assert feature.codes == ("m", "w")
    assert found == ["w", "m", "w"]
    assert groups([10, 9, 10])[0].codes == ("9", "10")
    assert groups([True, False])[0].codes == ("false", "true")


def test_many_numbers_become_ranges_that_are_equally_full():
    feature, found = groups(list(range(20, 60)))
    assert feature.name == "age (ranges)"
    assert feature.codes == ("below 30", "30 to 39", "40 to 49", "50 or more")
    assert [found.count(code) for code in feature.codes] == [10] * 4


def test_the_user_may_cut_where_he_likes():
    feature, found = groups(list(range(20, 60)), cuts=(40.0,))
    assert feature.codes == ("below 40", "40 or more")
    assert found == ["below 40"] * 20 + ["40 or more"] * 20


def test_ranges_that_nobody_is_in_are_no_groups():
    assert groups(list(range(20, 60)), cuts=(10.0, 40.0, 70.0))[0].codes == ("10 to 39", "40 to 69")


def test_fractions_are_ranges_up_to_below_a_number():
    feature, _ = groups([number / 2 for number in range(1, 20, 2)], bins=3)
    assert feature.codes == ("below 3.5", "3.5 to below 6.5", "6.5 or more")


def test_a_range_of_one_whole_number_is_that_number():
    assert groups([1] * 9 + list(range(2, 13)), cuts=(2.0, 3.0))[0].codes == ("below 2", "2", "3 or more")


@given(st.lists(st.integers(0, 40), min_size=12).filter(lambda values: len(set(values)) > 10), st.integers(2, 6))
def test_every_number_is_in_the_range_that_its_group_names(values, bins):
    feature, found = groups(values, bins=bins)
    assert 1 <= len(feature.codes) <= bins
    for value, name in zip(values, found, strict=True):
        low, _, high = name.partition(" to ")
        if name.startswith("below "):
            assert value < int(name.removeprefix("below "))
        elif name.endswith(" or more"):
            assert value >= int(name.removesuffix(" or more"))
        else:
            assert int(low) <= value <= int(high or low)


def test_numbers_listed_as_codes_make_a_group_of_each():
    assert len(groups(list(range(20)), codes=True)[0].codes) == 20


def test_too_many_groups_are_refused():
    with pytest.raises(DataError, match=r"'age' has 60 different values: .*; wanted at most 50 groups"):
        groups([f"p{number}" for number in range(60)])


def test_moments_make_no_groups():
    with pytest.raises(DataError, match=r"the sensitive column 'age' holds date32.*; wanted text or numbers"):
        groups([datetime.date(2020, 1, 1)])


def test_equal_numbers_never_part():
    values = [30] * 50 + list(range(11))
    feature, found = groups(values)
    assert len(set(found[:50])) == 1
    assert np.unique(found).tolist() == sorted(feature.codes)
