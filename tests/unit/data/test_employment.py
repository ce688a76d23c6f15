"""The Employment task: everybody, and 109 inputs."""

import pytest

from equfl.data.employment import Employment

MIXED = [{"SEX": 1 + number % 2, "ESR": 1 + number // 2 % 6} for number in range(40)]


@pytest.fixture
def load(tmp_path, monkeypatch, write_persons):
    def load(rows: list[dict], **settings):
        write_persons(tmp_path, "AL", rows=rows)
        monkeypatch.setenv("EQUFL_DATA", str(tmp_path))
        return Employment(parties=("AL",), **settings).load()

    return load


def test_there_are_109_inputs(load):
    assert load(MIXED).schema.shape == (109,)


def test_everybody_is_meant_children_too_and_what_they_are_not_asked_is_a_code(load):
    child = {"AGEP": "03", "ESR": "", "SCHL": "", "MIL": "", "PINCP": ""}
    federation = load([*MIXED, *[child | {"SEX": 1 + number % 2} for number in range(40)]])
    assert federation.train.sizes == (16,)
    columns = {column.name: column for column in federation.schema.columns}
    assert columns["MIL"].codes[-1] == "N/A"
    not_asked = federation.test.pooled.inputs[:, columns["MIL"].stop - 1] == 1
    assert 0 < not_asked.sum() < len(not_asked)
    assert (federation.test.pooled.labels[not_asked] == 0).all(), "whom nobody asked is not at work"


def test_the_label_is_being_at_work_in_a_civilian_job(load):
    rows = [row | {"SEX": 1 if row["ESR"] == 1 else 2} for row in MIXED]
    federation = load(rows)
    assert federation.schema.classes == ("not at work", "at work")
    assert (federation.test.pooled.labels == (federation.test.pooled.groups == 0)).all()


def test_a_sensitive_question_that_was_not_asked_makes_a_group_of_its_own(load):
    rows = [*MIXED, *[row | {"MIL": ""} for row in MIXED]]
    groups = load(rows, sensitive=("MIL",)).schema.groups
    assert groups[-1] == "N/A"
    assert "never served in the military" in groups
