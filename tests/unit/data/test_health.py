"""The Health task: people under 65 with little income, and 154 inputs."""

import pytest

from equfl.data.health import Health

MEANT = {"AGEP": "64", "PINCP": "30000"}
MIXED = [MEANT | {"SEX": 1 + number % 2, "PUBCOV": 1 + number // 2 % 2} for number in range(20)]


@pytest.fixture
def load(tmp_path, monkeypatch, write_persons):
    def load(rows: list[dict], party: str = "AL", **settings):
        write_persons(tmp_path, party, rows=rows)
        monkeypatch.setenv("EQUFL_DATA", str(tmp_path))
        return Health(parties=(party,), **settings).load()

    return load


def test_there_are_154_inputs(load):
    assert load(MIXED).schema.shape == (154,)


@pytest.mark.parametrize("not_meant", [{"AGEP": "65"}, {"PINCP": "30001"}, {"PINCP": ""}], ids=str)
def test_only_people_under_65_with_at_most_30_000_dollars_are_meant(load, not_meant):
    assert load(MIXED + [MEANT | not_meant] * 30).test.sizes == (8,)


def test_a_loss_counts_as_little_income(load):
    assert load(MIXED + [MEANT | {"PINCP": "-900", "SEX": 1, "PUBCOV": 1}] * 5).test.sizes == (10,)


def test_the_label_is_public_coverage(load):
    federation = load([row | {"SEX": row["PUBCOV"]} for row in MIXED])
    assert federation.schema.classes == ("without public coverage", "with public coverage")
    assert (federation.test.pooled.labels == (federation.test.pooled.groups == 0)).all()


def test_the_state_is_an_input_that_is_the_same_in_all_rows_of_a_party(load):
    federation = load(MIXED, party="PR")
    (state,) = (column for column in federation.schema.columns if column.name == "ST")
    assert state.stop - state.start == 53
    inputs = federation.train.pooled.inputs[:, state.start : state.stop]
    assert (inputs[:, state.codes.index("72")] == 1).all()
    assert (inputs.sum(dim=1) == 1).all()
