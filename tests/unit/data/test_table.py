"""A user's own table as a federation."""

import datetime
import random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

from equfl.config.codec import from_dict
from equfl.core.errors import ConfigError, DataError, DataMissing
from equfl.data.table import Table, federate_table

ROLES = {"label": "hired", "sensitive": "sex", "client": "site"}


def people(rows: int = 120, **columns) -> pa.Table:
    """Applicants of three sites; ``columns`` are put in place of the made-up ones, or beside them."""
    chance = random.Random(1)
    made = {
        "age": [chance.randrange(18, 70) for _ in range(rows)],
        "wage": [chance.uniform(10, 90) for _ in range(rows)],
        "trade": [chance.choice(["farm", "shop", "office"]) for _ in range(rows)],
        "sex": [chance.choice(["man", "woman"]) for _ in range(rows)],
        "race": [chance.choice(["a", "b", "c"]) for _ in range(rows)],
        "site": [chance.choice(["north", "south", "west"]) for _ in range(rows)],
        "hired": [chance.choice(["no", "yes"]) for _ in range(rows)],
    }
    return pa.table(made | columns)


def test_every_value_of_the_client_column_is_a_client_and_every_row_is_used():
    federation = federate_table(people(), **ROLES)
    assert federation.clients == ("north", "south", "west")
    assert sum(federation.train.sizes) + sum(federation.test.sizes) == 120
    for train, test in zip(federation.train.sizes, federation.test.sizes, strict=True):
        assert test == round(0.3 * (train + test))
    assert federation.test.own_neighbours is not None


def test_the_model_sees_neither_label_nor_client():
    schema = federate_table(people(), **ROLES).schema
    assert [column.name for column in schema.columns] == ["age", "wage", "trade", "sex", "race"]
    assert schema.shape == (2 + 3 + 2 + 3,)
    assert schema.classes == ("no", "yes")
    assert schema.groups == ("man", "woman")
    assert schema.sensitive == ("sex",)
    assert len(schema.group_codes) == 2


@pytest.mark.parametrize("make", [pa.Table.to_pandas, pl.from_arrow], ids=["pandas", "polars"])
def test_the_same_table_is_the_same_federation_whoever_holds_it(make):
    ours, theirs = federate_table(people(), **ROLES), federate_table(make(people()), **ROLES)
    assert theirs.schema == ours.schema
    assert torch.equal(theirs.train.pooled.inputs, ours.train.pooled.inputs)
    assert torch.equal(theirs.test.pooled.groups, ours.test.pooled.groups)
    assert theirs.facts == ours.facts


def test_a_file_gives_the_same_and_goes_by_its_name(tmp_path):
    csv.write_csv(people(), tmp_path / "applicants.csv")
    ours, theirs = federate_table(people(), **ROLES), federate_table(tmp_path / "applicants.csv", **ROLES)
    assert theirs.name == "applicants"
    assert torch.equal(theirs.train.pooled.inputs, ours.train.pooled.inputs)
    loaded = Table(path=str(tmp_path / "applicants.csv"), label="hired", sensitive=("sex",), client="site").load()
    assert torch.equal(loaded.train.pooled.inputs, ours.train.pooled.inputs)


def test_a_file_is_prepared_once_and_again_when_it_changed(tmp_path, monkeypatch):
    path = tmp_path / "applicants.csv"
    csv.write_csv(people(), path)
    dataset = Table(path=str(path), label="hired", sensitive=("sex",), client="site")
    first = dataset.load()
    with monkeypatch.context() as patch:
        patch.setattr("equfl.data.table.read_source", None)
        assert torch.equal(dataset.load().test.pooled.inputs, first.test.pooled.inputs)
    csv.write_csv(people(140), path)
    assert sum(dataset.load().train.sizes) > sum(first.train.sizes)


def test_several_sensitive_columns_are_audited_together_and_alone():
    federation = federate_table(people(), label="hired", sensitive=["sex", "race"], client="site")
    assert len(federation.schema.groups) == 6
    assert federation.schema.groups[0] == "man, a"
    assert {name: alone.names for name, alone in federation.groupings.items()} == {
        "sex": ("man", "woman"),
        "race": ("a", "b", "c"),
    }
    assert torch.equal(federation.groupings["race"].groups, federation.test.pooled.groups % 3)


def test_a_sensitive_number_is_a_range_for_the_groups_and_a_number_for_the_model():
    federation = federate_table(people(), label="hired", sensitive="age", client="site", cuts=[40.0])
    assert federation.schema.groups == ("below 40", "40 or more")
    columns = {column.name: column for column in federation.schema.columns}
    assert columns["age"].numeric
    assert columns["age (ranges)"].codes == ("below 40", "40 or more")
    ages = federation.train[0].inputs[:, columns["age"].start]
    groups = federation.train[0].groups
    assert ages[groups == 0].max() < ages[groups == 1].min()


def test_a_model_that_must_not_see_the_sensitive_column_sees_neither_range_nor_number():
    federation = federate_table(people(), label="hired", sensitive="age", client="site", exclude_sensitive=True)
    assert [column.name for column in federation.schema.columns] == ["wage", "trade", "sex", "race"]
    assert len(federation.schema.groups) == 4


def test_rows_without_a_role_are_left_out_and_counted():
    table = people()
    sexes = [None] * 3 + table["sex"].to_pylist()[3:]
    sites = [*table["site"].to_pylist()[:-2], None, ""]
    federation = federate_table(people(sex=sexes, site=sites), **ROLES)
    assert sum(federation.train.sizes) + sum(federation.test.sizes) == 115
    assert federation.facts["rows left out"] == "2 without site, 3 without sex"


def test_small_clients_are_left_out_and_counted():
    sites = ["north"] * 50 + ["south"] * 59 + ["west"] * 9 + ["east"] * 2
    federation = federate_table(people(site=sites), **ROLES)
    assert federation.clients == ("north", "south")
    assert federation.facts["rows left out"] == "11 of 2 clients with fewer than 10 rows ('east', 'west')"
    everybody = federate_table(people(site=sites), **ROLES, smallest_client=2)
    assert len(everybody.clients) == 4
    assert "rows left out" not in everybody.facts


def test_a_missing_number_is_the_mean_of_its_client():
    table = people()
    ages = [None if row % 10 == 0 else age for row, age in enumerate(table["age"].to_pylist())]
    federation = federate_table(people(age=ages), **ROLES, mark_missing=True)
    frame = pd.DataFrame({"age": ages, "site": table["site"].to_pylist()})
    filled = frame.groupby("site")["age"].transform(lambda column: column.fillna(column.mean()))
    north = filled[frame["site"] == "north"].to_numpy()
    found = torch.cat([federation.train[0].inputs[:, 0], federation.test[0].inputs[:, 0]]).sort().values
    np.testing.assert_allclose(found, np.sort((north - north.mean()) / north.std()), rtol=1e-5, atol=1e-6)
    assert federation.facts["missing values"] == "age: 12 became the mean of their client"
    (mark,) = (column for column in federation.schema.columns if column.name == "age (missing)")
    assert mark.codes == ("no", "yes")
    assert federation.train.pooled.inputs[:, mark.stop - 1].sum() + federation.test.pooled.inputs[
        :, mark.stop - 1
    ].sum() == sum(age is None for age in ages)


def test_a_number_that_a_client_lacks_altogether_is_0_for_it():
    table = people()
    wages = [
        None if site == "north" else wage
        for site, wage in zip(table["site"].to_pylist(), table["wage"].to_pylist(), strict=True)
    ]
    federation = federate_table(people(wage=wages), **ROLES)
    assert federation.train[0].inputs[:, 1].abs().sum() == 0
    assert federation.train[1].inputs[:, 1].abs().sum() > 0


def test_what_was_inferred_left_out_and_filled_in_is_told():
    table = people(
        id=list(range(120)),
        name=[f"p{row}" for row in range(120)],
        country=["X"] * 120,
        stars=[row % 3 for row in range(120)],
        town=[None if row < 5 else f"t{row % 7}" for row in range(120)],
    )
    facts = federate_table(table, **ROLES, ignore=["race"], most_codes=4).facts
    assert facts["source"] == "table, 120 rows and 12 columns"
    assert facts["label"] == "hired: 'yes' is the favourable value, 'no' the other"
    assert facts["clients"].startswith("3 values of site, ")
    assert facts["groups"].startswith("sex: ")
    assert facts["numbers"] == "age, wage"
    assert facts["codes"] == "trade (3), sex (2), stars (3), town (5)"
    assert facts["whole numbers read as codes"] == "stars (3 different values)"
    assert facts["columns left out"] == (
        "id (numbers the rows), name (a different value in every row), country ('X' in every row), race (as asked)"
    )
    assert facts["missing values"] == "town: 5 became the code 'missing'"
    assert facts["rare values read as 'other'"].startswith("town: 4 of 7 values, in ")


def test_another_seed_is_another_split():
    one, same, other = (federate_table(people(), **ROLES, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one.test.pooled.inputs, same.test.pooled.inputs)
    assert not torch.equal(one.test.pooled.inputs, other.test.pooled.inputs)


def test_clients_may_be_numbers_or_dates():
    assert federate_table(people(site=[10, 9, 8] * 40), **ROLES).clients == ("8", "9", "10")
    days = [datetime.date(2020, 1, 1 + day % 2) for day in range(120)]
    assert federate_table(people(site=days), **ROLES).clients == ("2020-01-01", "2020-01-02")


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"hired": ["yes"] * 120}, r"the label 'hired' has one value only: 'yes'; wanted exactly two\."),
        ({"hired": [None] * 120}, r"no row is left \(120 without hired\)"),
        ({"sex": ["man"] * 120}, r"sex is 'man' in every row; wanted at least two groups to compare\."),
        ({"site": ["north"] * 120}, "'site' names 1 client; wanted at least two clients. Choose another column"),
        ({"site": [f"s{row}" for row in range(120)]}, "names 120 clients, 120 of them with fewer than 10 rows"),
        ({"wage": [float("inf")] + [1.5] * 119}, "the column 'wage' is infinite, or as good as that, in 1 rows"),
        ({"wage": [[1.0]] * 120}, "the column 'wage' holds list"),
        ({name: [1] * 120 for name in ("age", "wage", "trade", "race")}, ""),
    ],
    ids=["one label", "no label", "one group", "one client", "empty clients", "infinite", "lists", "constants"],
)
def test_a_table_that_cannot_be_used_is_refused_on_one_line(columns, told):
    if not told:
        assert federate_table(people(**columns), **ROLES).schema.shape == (2,), "the sensitive column is left"
        columns, told = columns, r"has no column left to predict 'hired' from"
        with pytest.raises(DataError, match=told):
            federate_table(people(**columns), **ROLES, exclude_sensitive=True)
        return
    with pytest.raises(DataError, match=told) as caught:
        federate_table(people(**columns), **ROLES)
    assert "\n" not in str(caught.value)


def test_nan_is_a_missing_number():
    wages = [float("nan"), *[1.5, 2.5] * 59, 3.0]
    facts = federate_table(people(wage=wages), **ROLES).facts
    assert facts["missing values"] == "wage: 1 became the mean of their client"


@pytest.mark.parametrize(
    ("roles", "told"),
    [
        ({"label": "hird"}, "table has no column 'hird'; wanted one of 'age', 'wage'.*Did you mean 'hired'"),
        ({"sensitive": "Sex"}, "Did you mean 'sex'"),
        ({"client": "qqqq"}, "has no column 'qqqq'.*Check the spelling"),
        ({"ignore": ["agee"]}, "Did you mean 'age'"),
        ({"categorical": ["trades"]}, "Did you mean 'trade'"),
        ({"numeric": ["wages"]}, "Did you mean 'wage'"),
        ({"cuts": (1.0,)}, "with 0 sensitive columns of many numbers; wanted exactly one"),
        ({"sensitive": ["age", "wage"], "cuts": (1.0,)}, "with 2 sensitive columns of many numbers"),
        ({"positive": "maybe"}, "the label 'hired' is never 'maybe'"),
    ],
)
def test_words_that_do_not_fit_the_table_name_the_nearest(roles, told):
    with pytest.raises(DataError, match=told):
        federate_table(people(), **(ROLES | roles))


def test_a_role_that_nobody_has_is_asked_for(tmp_path):
    csv.write_csv(people(), tmp_path / "people.csv")
    with pytest.raises(ConfigError, match=r"no client column is named; wanted one of 'age'.*Pass --client COLUMN"):
        Table(path=str(tmp_path / "people.csv"), label="hired", sensitive=("sex",)).load()


def test_a_table_without_a_header_is_recognised(tmp_path):
    csv.write_csv(people(), tmp_path / "people.csv", csv.WriteOptions(include_header=False))
    with pytest.raises(DataError, match=r"has no column 'hired'; its first line reads .*Write one above the rows"):
        federate_table(tmp_path / "people.csv", **ROLES)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"test_share": 0.0}, r"data\.test_share = 0\.0; wanted a share above 0 and below 1"),
        ({"test_share": 1.0}, "test_share"),
        ({"bins": 1}, "data.bins = 1"),
        ({"most_codes": 1}, "data.most_codes = 1"),
        ({"smallest_client": 1}, "smallest_client = 1"),
        ({"cuts": (2.0, 1.0)}, "rising numbers"),
        ({"label": "sex", "sensitive": ("sex",)}, "columns that all differ"),
        ({"label": "hired", "ignore": ("hired",)}, "neither label, client nor sensitive"),
        ({"categorical": ("age",), "numeric": ("age",)}, "not listed as numeric too"),
    ],
)
def test_settings_that_make_no_sense_are_refused(fields, told):
    with pytest.raises(ConfigError, match=told):
        Table(**fields)


def test_a_path_is_needed_and_must_lead_to_a_file(tmp_path):
    with pytest.raises(ConfigError, match=r"data\.path = ''; wanted the file with the table"):
        Table().load()
    with pytest.raises(DataMissing, match="there is no file"):
        Table(path=str(tmp_path / "people.csv")).load()


def test_an_unreadable_file_is_one_line(tmp_path):
    (tmp_path / "people.csv").write_bytes(b"age,sex\n1\n")
    with pytest.raises(DataError, match="cannot be read"):
        Table(path=str(tmp_path / "people.csv"), label="hired", sensitive=("sex",), client="site").load()


def test_a_config_file_may_hold_every_setting():
    plain = {"data": {"name": "table", "path": "p.csv", "label": "l", "sensitive": ["s"], "client": "c", "cuts": [40]}}
    assert from_dict(plain).data == Table(path="p.csv", label="l", sensitive=("s",), client="c", cuts=(40.0,))


CELLS = st.none() | st.sampled_from(["a", "b", "other", "missing", "", "NA", "1", "2.5"])
NUMBERS = st.none() | st.floats(allow_infinity=False) | st.integers(-5, 5).map(float)


@given(data=st.data())
def test_any_table_becomes_finite_inputs_with_every_row_accounted_for_or_is_refused_in_words(data):
    rows = data.draw(st.integers(8, 30))
    draw = {
        name: data.draw(st.lists(cells, min_size=rows, max_size=rows))
        for name, cells in {
            "text": CELLS,
            "number": NUMBERS,
            "count": st.none() | st.integers(-(2**63), 2**63 - 1),
            "flag": st.none() | st.booleans(),
            "group": st.none() | st.sampled_from(["x", "y"]),
            "site": st.sampled_from(["n", "s"]),
            "label": st.sampled_from(["no", "yes"]),
        }.items()
    }
    table = pa.table({name: pa.array(values, from_pandas=False) for name, values in draw.items()})
    scaling = data.draw(st.sampled_from(["schema", "paper"]))
    federation, refusal = None, ""
    try:
        federation = federate_table(
            table, label="label", sensitive="group", client="site", smallest_client=2, scaling=scaling, most_codes=3
        )
    except DataError as error:
        refusal = str(error)
    if federation is None:
        assert "; wanted " in refusal
        assert "\n" not in refusal
        return
    assert torch.isfinite(federation.train.pooled.inputs).all()
    assert torch.isfinite(federation.test.pooled.inputs).all()
    assert federation.train.pooled.inputs.shape[1:] == federation.schema.shape
    used = sum(federation.train.sizes) + sum(federation.test.sizes)
    without = sum(group is None for group in draw["group"])
    assert used <= rows - without
    if used < rows - without:
        assert "with fewer than 2 rows" in federation.facts["rows left out"]
