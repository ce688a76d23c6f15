"""The Income task: who is meant, what is asked, and the 54 inputs."""

import pytest

from equfl.data.income import Income


@pytest.fixture
def load(tmp_path, monkeypatch, write_persons):
    def load(rows: list[dict], **settings):
        write_persons(tmp_path, "AL", rows=rows)
        monkeypatch.setenv("EQUFL_DATA", str(tmp_path))
        return Income(parties=("AL",), **settings).load()

    return load


MEANT = {"AGEP": "17", "PINCP": "101", "WKHP": "01", "PWGTP": "1"}
MIXED = [MEANT | {"SEX": number % 2 + 1, "PINCP": (50_000, 50_001)[number % 3 == 0]} for number in range(20)]


def test_there_are_54_inputs_numbers_first_and_sex_and_race_last(load):
    schema = load(MIXED).schema
    assert schema.shape == (54,)
    places = {column.name: (column.start, column.stop) for column in schema.columns}
    assert list(places) == ["AGEP", "OCCP", "POBP", "RELP", "WKHP", "COW", "SCHL", "MAR", "SEX", "RAC1P"]
    assert places["SEX"] == (43, 45)
    assert places["RAC1P"] == (45, 54)
    assert [column.numeric for column in schema.columns] == [True] * 5 + [False] * 5


@pytest.mark.parametrize(
    "not_meant",
    [{"AGEP": "16"}, {"PINCP": "100"}, {"PINCP": ""}, {"WKHP": "00"}, {"WKHP": ""}, {"PWGTP": "0"}],
    ids=str,
)
def test_only_people_of_17_and_over_who_work_and_earn_are_meant(load, not_meant):
    federation = load(MIXED + [MEANT | not_meant] * 30)
    assert federation.train.sizes == (4,)
    assert federation.test.sizes == (8,)


def test_the_label_is_an_income_above_50_000_dollars(load):
    rows = [row | {"SEX": 1 if row["PINCP"] == 50_001 else 2} for row in MIXED]
    federation = load(rows)
    assert federation.schema.classes == ("at most 50 000 dollars", "more than 50 000 dollars")
    for samples in (federation.train.pooled, federation.test.pooled):
        assert (samples.labels == (samples.groups == 0)).all()
