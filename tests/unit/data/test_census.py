"""What the census tasks share: where the rows come from, how they are divided, what is told of them."""

import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from equfl.core.errors import ConfigError, DataError, DataMissing
from equfl.data._census_files import LAYOUT
from equfl.data.health import Health
from equfl.data.income import Income

SIZES = {"AL": 60, "CA": 50, "VT": 40}
PARTIES = tuple(SIZES)


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("EQUFL_DATA", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


@pytest.fixture
def persons(own_folder, write_persons):
    for party in PARTIES:
        write_persons(own_folder / LAYOUT, party, people=SIZES[party])


def test_the_extract_is_taken_before_the_person_files(own_folder, write_extract, persons):
    write_extract(own_folder, SIZES)
    assert "acs_income_2018.parquet" in Income(parties=PARTIES).load().facts["source"]
    assert "person files" in Health(parties=PARTIES).load().facts["source"], "the extract is of another task"


def test_without_any_file_the_error_names_one_and_where_to_put_it():
    with pytest.raises(DataMissing, match=r"psam_p01\.csv.*EQUFL_DATA=FOLDER"):
        Income().load()


def test_a_task_that_found_its_files_loads_from_the_cache_the_second_time(own_folder, persons, monkeypatch):
    first = Income(parties=PARTIES).load()
    monkeypatch.setattr("equfl.data._census.read_persons", None)
    second = Income(parties=PARTIES).load()
    assert torch.equal(first.test.pooled.inputs, second.test.pooled.inputs)
    assert second.facts == first.facts


def test_parties_come_in_the_order_asked_for_and_their_rows_do_not_depend_on_the_others(own_folder, write_extract):
    write_extract(own_folder, SIZES)
    both, alone = Income(parties=("VT", "AL")).load(), Income(parties=("AL",)).load()
    assert both.clients == ("VT", "AL")
    assert torch.equal(both.train[1].inputs, alone.train[0].inputs)
    assert torch.equal(both.test[1].labels, alone.test[0].labels)


def test_small_states_train_on_20_percent_and_test_on_40(own_folder, write_extract):
    write_extract(own_folder, SIZES)
    federation = Income(parties=PARTIES).load()
    assert federation.train.sizes == (12, 10, 8)
    assert federation.test.sizes == (24, 20, 16)


def test_large_states_train_and_test_on_as_many_rows_as_asked(own_folder, write_extract):
    write_extract(own_folder, SIZES)
    federation = Income(parties=PARTIES, train=10, test=20).load()
    assert federation.train.sizes == (10, 10, 8)
    assert federation.test.sizes == (20, 20, 16)


def test_another_seed_is_another_split(own_folder, write_extract):
    write_extract(own_folder, SIZES)
    one, other = (Income(parties=PARTIES, seed=seed).load() for seed in (0, 1))
    assert one.test.sizes == other.test.sizes
    assert not torch.equal(one.test.pooled.inputs, other.test.pooled.inputs)


@pytest.mark.parametrize("scaling", ["schema", "paper"])
def test_both_scalings_hold_the_same_people(own_folder, write_extract, scaling):
    write_extract(own_folder, SIZES)
    federation = Income(parties=PARTIES, scaling=scaling).load()
    schema, inputs = federation.schema, federation.train[0].inputs
    (sex,) = (column for column in schema.columns if column.name == "SEX")
    present = inputs[:, sex.start : sex.stop] > 0 if scaling == "paper" else inputs[:, sex.start : sex.stop] == 1
    assert (present.long().argmax(dim=1) == federation.train[0].groups).all()
    assert (present.sum(dim=1) == 1).all()
    assert (set(inputs[:, 43:45].unique().tolist()) == {0, 1}) is (scaling == "schema")


def test_the_model_can_be_kept_from_the_sensitive_column(own_folder, write_extract):
    write_extract(own_folder, SIZES)
    federation = Income(parties=PARTIES, exclude_sensitive=True).load()
    assert federation.schema.shape == (52,)
    assert "SEX" not in [column.name for column in federation.schema.columns]
    assert federation.schema.groups == ("male", "female")


def test_intersections_are_audited_as_each_column_alone_too(own_folder, write_extract):
    write_extract(own_folder, {"AL": 300, "VT": 300})
    federation = Income(parties=("AL", "VT"), sensitive=("SEX", "RAC1P")).load()
    assert federation.schema.groups[:2] == ("male, White", "male, Black")
    assert len(federation.schema.groups) == 10
    assert federation.groupings["SEX"].names == ("male", "female")
    sexes = federation.groupings["SEX"].groups
    assert torch.equal(sexes, (federation.test.pooled.groups >= 5).long())
    assert federation.test.pooled.neighbours is not None


def test_a_party_whose_race_is_unknown_is_left_out_for_race_and_said_to_be(own_folder, write_extract):
    races = [1] * 60 + [1, 0] * 25 + [1, 2] * 20
    write_extract(own_folder, SIZES, RAC1P=races)
    federation = Income(parties=PARTIES, sensitive=("RAC1P",)).load()
    assert federation.clients == ("AL", "VT")
    assert federation.facts["left out"] == "CA, where RAC1P is unknown in 25 of 50 rows"
    assert federation.schema.groups == ("White", "Black")


def test_as_an_input_an_unknown_race_sets_no_column(own_folder, write_extract):
    write_extract(own_folder, SIZES, RAC1P=[0] * 150)
    federation = Income(parties=PARTIES).load()
    assert federation.clients == PARTIES
    assert "left out" not in federation.facts
    assert federation.train.pooled.inputs[:, 45:].sum() == 0


def test_no_party_left_is_an_error(own_folder, write_extract):
    write_extract(own_folder, SIZES, RAC1P=[0] * 150)
    with pytest.raises(DataError, match="no party is left without CA, where RAC1P is unknown in 50 of 50 rows"):
        Income(parties=("CA",), sensitive=("RAC1P",)).load()


def test_merged_codes_are_named_as_what_they_are(own_folder, write_extract):
    write_extract(own_folder, {"AL": 300})
    federation = Income(parties=("AL",), sensitive=("RAC1P",)).load()
    assert federation.schema.groups == (
        "White",
        "Black",
        "American Indian or Alaska Native",
        "Asian",
        "another or several races",
    )
    assert {"merged codes", "subsets", "licence", "simulated"} < federation.facts.keys()


def test_a_party_that_the_extract_lacks_is_named(own_folder, write_extract):
    write_extract(own_folder, SIZES)
    with pytest.raises(DataError, match=r"acs_income_2018\.parquet has no rows of WY"):
        Income(parties=("AL", "WY")).load()


@pytest.mark.parametrize("damage", ["truncated", "text", "columns"])
def test_an_extract_that_cannot_be_read_is_named(own_folder, write_extract, damage):
    path = write_extract(own_folder, SIZES)
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "text":
        path.write_text("Version https://git-lfs")
    else:
        parquet.write_table(pa.table({"ST": ["AL"], "AGEP": [30]}), path)
    with pytest.raises(
        DataError, match=r"acs_income_2018\.parquet cannot be read \(.+\).*Get the file again"
    ) as caught:
        Income(parties=PARTIES).load()
    assert "\n" not in str(caught.value)


def test_a_party_of_whom_nobody_is_meant_is_named(own_folder, write_persons):
    write_persons(own_folder, "AL")
    write_persons(own_folder, "VT", rows=[{"AGEP": "03", "PINCP": ""}] * 20)
    with pytest.raises(DataError, match="VT has 0 rows, of which 0 train and 0 test"):
        Income(parties=("AL", "VT")).load()


def test_progress_tells_of_the_files_read(own_folder, persons):
    told = []
    Income(parties=PARTIES).load(progress=lambda *what: told.append(what))
    assert ("read the person files", 3, 3) in told
    assert ("encode the rows", 3, 3) in told


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"sensitive": ()}, "at least one of COW, SCHL"),
        ({"sensitive": ("SEKS",)}, "data.sensitive = .*SEKS"),
        ({"sensitive": ("AGEP",)}, "data.sensitive = .*AGEP"),
        ({"sensitive": ("SEX", "SEX")}, "each once"),
        ({"parties": ("DC",)}, "data.parties = .*DC"),
        ({"parties": ("AL", "AL")}, "each once"),
        ({"train": 0}, "data.train = 0; wanted at least one row"),
        ({"test": -1}, "data.test = -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, told):
    with pytest.raises(ConfigError, match=told):
        Income(**wrong)
