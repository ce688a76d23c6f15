"""People who do not exist, and the profile that they are drawn from."""

import json
from dataclasses import replace

import pytest
import torch

from equfl.data._census_codebook import MEANINGS, PARTIES
from equfl.data._census_profile import conditional, read
from equfl.data.base import Federation
from equfl.data.simulated_census import PROFILE, SimulatedCensus

SMALL = SimulatedCensus(parties=("AL", "CA", "VT"), train=30, test=60)


@pytest.fixture(scope="module")
def plain() -> dict:
    return json.loads(PROFILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def whole() -> Federation:
    """All parties; without neighbours, which take longest and are of no interest here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("equfl.data._census.with_neighbours", lambda federation, progress: federation)
        return SimulatedCensus()._drawn(lambda *what: None)


def lines_of(plain: dict) -> list[list]:
    """Every line of counts."""
    return [line for step in plain["steps"] for table in ("counts", "by_state") for line in step.get(table, [])]


def test_the_profile_is_small():
    assert PROFILE.stat().st_size <= 300_000


def test_the_profile_holds_whole_numbers_of_tens_of_people_and_nothing_else(plain):
    assert plain.keys() == {"source", "smallest", "smallest_weighed", "states", "variables", "steps", "label"}
    assert plain["smallest"] == 10
    assert plain["smallest_weighed"] == 50
    figures = [figure for line in lines_of(plain) for figure in line]
    assert all(isinstance(figure, int) and figure >= 0 for figure in figures)
    assert all(isinstance(people, int) for people in plain["states"].values())
    for step in plain["steps"]:
        people = sum(sum(line[1:]) for line in step["counts"])
        assert people <= sum(plain["states"].values()) * 1.01


def test_the_weights_of_the_label_are_rounded(plain):
    weights = [weight for term in plain["label"] for line in term["weights"] for weight in line[1:]]
    assert all(weight == round(weight, 2) for weight in weights)
    assert max(map(abs, weights)) < 5


def test_the_profile_knows_all_parties_and_codes_of_the_codebook_only(plain):
    assert plain["states"].keys() == PARTIES.keys()
    for name in ("COW", "SCHL", "MAR", "SEX", "RELP"):
        assert set(plain["variables"][name]["codes"]) <= MEANINGS[name].keys()
    assert set(plain["variables"]["RAC1P"]["codes"]) <= MEANINGS["RAC1P"].keys() | {0}


def test_every_line_can_be_drawn_from():
    for step in read(PROFILE).steps:
        shares = conditional(step.counts)
        torch.testing.assert_close(shares.sum(dim=-1), torch.ones(shares.shape[:-1], dtype=shares.dtype))


def test_a_simulated_federation_says_so():
    federation = SMALL.load()
    assert federation.name == "simulated census"
    assert federation.facts["simulated"] == "yes"
    assert federation.facts["source"].startswith("drawn from a profile, seed 0")


def test_it_looks_like_the_real_task():
    federation = SMALL.load()
    assert federation.schema.shape == (54,)
    assert federation.clients == ("AL", "CA", "VT")
    assert federation.train.sizes == (30, 30, 30)
    assert federation.test.sizes == (60, 60, 60)
    assert federation.schema.groups == ("male", "female")
    assert federation.test.pooled.neighbours is not None


def test_parties_have_as_many_rows_as_the_real_ones(whole):
    sizes = dict(zip(PARTIES, whole.test.sizes, strict=True))
    assert sizes["WY"] == 3060 * 2 // 5
    assert sizes["TX"] == 2000


def test_the_same_seed_draws_the_same_people_and_another_seed_draws_others():
    one = SMALL.load()
    again = SMALL._drawn(lambda *what: None)
    other = replace(SMALL, seed=1).load()
    assert torch.equal(one.train.pooled.inputs, again.train.pooled.inputs)
    assert torch.equal(one.test.pooled.labels, again.test.pooled.labels)
    assert not torch.equal(one.train.pooled.inputs, other.train.pooled.inputs)


def test_race_leaves_california_out_as_in_the_real_data():
    federation = replace(SMALL, sensitive=("RAC1P",)).load()
    assert federation.clients == ("AL", "VT")
    assert federation.facts["left out"].startswith("CA, where RAC1P is unknown in ")


def test_men_and_women_are_as_likely_to_earn_much_as_in_the_real_data(whole):
    labels, groups = whole.test.pooled.labels.double(), whole.test.pooled.groups
    assert whole.schema.groups == ("male", "female")
    assert labels[groups == 0].mean() == pytest.approx(0.425, abs=0.02)
    assert labels[groups == 1].mean() == pytest.approx(0.264, abs=0.02)
    assert (groups == 0).double().mean() == pytest.approx(0.52, abs=0.02)
