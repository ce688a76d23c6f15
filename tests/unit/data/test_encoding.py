"""From columns to inputs."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from equfl.data.encoding import Feature, columns, encode, numbers, positions

AGE, TRADE = Feature("age"), Feature("trade", (1, 2, 5), ("farm", "shop"))
TABLE = pa.table({"age": [20, 40, None, 60], "trade": [5, 1, 7, None]})


def test_a_number_takes_one_input_and_a_code_one_per_code_in_the_order_of_the_features():
    inputs = encode(TABLE, [TRADE, AGE]).inputs
    assert inputs.shape == (4, 4)
    assert inputs[:, :3].tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0], [0, 0, 0]]


def test_a_missing_number_is_0_before_it_is_standardised():
    ages = np.array([[20.0], [40.0], [0.0], [60.0]])
    expected = StandardScaler().fit_transform(ages)
    np.testing.assert_allclose(encode(TABLE, [AGE]).inputs.numpy(), expected, rtol=1e-6)


def test_nan_counts_as_missing():
    assert numbers(pa.chunked_array([[1.5, float("nan"), None]])).tolist() == [1.5, 0, 0]


def test_an_unknown_or_missing_code_sets_no_input_unless_missing_has_a_code_of_its_own():
    applicable = Feature("trade", (1, 2, 5), missing="N/A")
    assert positions(TABLE["trade"], TRADE).tolist() == [2, 0, -1, -1]
    assert positions(TABLE["trade"], applicable).tolist() == [2, 0, -1, 3]
    assert encode(TABLE, [applicable]).inputs[3].tolist() == [0, 0, 0, 1]


def test_a_column_without_any_value_is_missing_throughout():
    nothing = pa.table({"trade": pa.nulls(3)})
    assert positions(nothing["trade"], TRADE).tolist() == [-1, -1, -1]
    assert encode(nothing, [TRADE]).inputs.sum() == 0


def test_codes_may_be_text():
    feature = Feature("sex", ("f", "m"))
    assert positions(pa.chunked_array([["m", "f", "x"]]), feature).tolist() == [1, 0, -1]


def test_with_schema_scaling_codes_stay_0_and_1():
    encoded = encode(TABLE, [AGE, TRADE], "schema")
    assert set(encoded.inputs[:, 1:].unique().tolist()) == {0, 1}
    schema = columns([AGE, TRADE], [encoded])
    assert [(column.name, column.start, column.codes) for column in schema] == [
        ("age", 0, ()),
        ("trade", 1, ("1", "2", "5")),
    ]
    assert schema[1].off == (0, 0, 0)
    assert schema[1].on == (1, 1, 1)


def test_with_paper_scaling_every_input_is_standardised_as_scikit_learn_does():
    raw = np.array([[20, 0, 0, 1], [40, 1, 0, 0], [0, 0, 0, 0], [60, 0, 0, 0]], dtype=float)
    np.testing.assert_allclose(
        encode(TABLE, [AGE, TRADE], "paper").inputs.numpy(), StandardScaler().fit_transform(raw), rtol=1e-5, atol=1e-7
    )


def test_with_paper_scaling_the_schema_knows_what_absent_and_present_codes_became():
    encoded = encode(TABLE, [AGE, TRADE], "paper")
    (_, trade) = columns([AGE, TRADE], [encoded])
    found = encoded.inputs[:, trade.start : trade.stop]
    for code, (off, on) in enumerate(zip(trade.off, trade.on, strict=True)):
        present = positions(TABLE["trade"], TRADE) == code
        assert torch.allclose(found[present, code], torch.tensor(on))
        assert torch.allclose(found[~present, code], torch.tensor(off))


def test_the_schema_has_the_mean_of_the_clients_values_for_a_code():
    parts = [encode(TABLE.slice(start, 2), [TRADE], "paper") for start in (0, 2)]
    (trade,) = columns([TRADE], parts)
    np.testing.assert_allclose(trade.off, torch.stack([part.off for part in parts]).mean(dim=0))


def test_an_input_that_is_the_same_in_all_rows_becomes_0():
    same = pa.table({"age": [7, 7], "trade": [1, 1]})
    assert encode(same, [AGE, TRADE], "paper").inputs.abs().sum() == 0


@given(value=st.floats(-1e100, 1e100), rows=st.integers(1, 300))
def test_a_number_that_is_the_same_in_all_rows_becomes_0_whatever_it_is(value, rows):
    assert encode(pa.table({"age": [value] * rows}), [AGE]).inputs.abs().sum() == 0


@given(values=st.lists(st.integers(-1000, 1000), min_size=1, max_size=50), unit=st.sampled_from([1e-100, 0.1, 1e100]))
def test_standardised_numbers_have_mean_0_and_deviation_1_whatever_their_unit(values, unit):
    found = encode(pa.table({"age": [value * unit for value in values]}), [AGE]).inputs.double()
    assert abs(found.mean()) < 1e-5
    assert found.std(correction=0) == pytest.approx(float(len(set(values)) > 1), abs=1e-5)


def test_meanings_are_shown_where_they_are_given():
    assert [TRADE.meaning(code) for code in range(3)] == ["farm", "shop", "5"]
    assert Feature("trade", (1,), ("farm",), missing="N/A").meaning(1) == "N/A"
