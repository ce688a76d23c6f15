"""Counts of people, and rows drawn from them."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from equfl.core.random import Seed
from equfl.data._census_profile import BORROWED, STATE, Profile, _pick, conditional, read

PLAIN = {
    "source": "made up",
    "smallest": 10,
    "smallest_weighed": 50,
    "states": {"AL": 100, "VT": 40},
    "variables": {
        "SEX": {"codes": [1, 2]},
        "AGEP": {"codes": [17, 18, 40, 41]},
        "life": {"codes": [17, 40], "of": "AGEP", "groups": [0, 0, 1, 1]},
        "MAR": {"codes": [1, 5]},
    },
    "steps": [
        {"draws": "SEX", "given": [], "counts": [[0, 60, 80]], "by_state": [[0, 50, 50], [0, 10, 30]]},
        {"draws": "AGEP", "given": ["SEX"], "counts": [[0, 10, 20, 10, 20], [2, 40, 40]]},
        {"draws": "MAR", "given": ["life", "SEX"], "counts": [[1, 30], [], [0, 20, 10], [0, 60, 20]]},
    ],
    "label": [
        {"of": [], "weights": [[0, -1.0]]},
        {"of": ["SEX"], "weights": [[0, 0.5]]},
        {"of": ["life", "MAR"], "weights": [[], [1, 2.0]]},
    ],
}


@pytest.fixture
def profile(tmp_path) -> Profile:
    (tmp_path / "profile.json").write_text(json.dumps(PLAIN))
    return read(tmp_path / "profile.json")


def by_seed(rows: int, value: int = 0):
    return lambda purpose: torch.rand(rows, dtype=torch.float64, generator=Seed(value).generator(purpose))


def test_lines_are_laid_out_from_their_first_figure(profile):
    sex, age, married = profile.steps
    assert sex.counts.tolist() == [600, 800]
    assert sex.by_state.tolist() == [[500, 500], [100, 300]]
    assert age.counts.tolist() == [[100, 200, 100, 200], [0, 0, 400, 400]]
    assert married.counts.tolist() == [[[0, 300], [0, 0]], [[200, 100], [600, 200]]]
    assert profile.label[0].weights.item() == -1
    assert profile.label[2].weights.tolist() == [[0, 0], [0, 2]]
    assert profile.states == {"AL": 1000, "VT": 400}


def test_a_line_leans_on_the_coarser_table_the_more_the_fewer_people_it_has():
    counts = torch.tensor([[[30.0, 10.0], [0.0, 0.0]], [[5.0, 15.0], [20.0, 0.0]]])
    first = torch.tensor([0.75, 0.25])
    shares = conditional(counts)
    torch.testing.assert_close(shares[0, 1], first, check_dtype=False)
    torch.testing.assert_close(shares[0, 0], (counts[0, 0] + BORROWED * first) / (40 + BORROWED))


@given(st.lists(st.integers(0, 50), min_size=12, max_size=12))
def test_shares_add_up_to_one_wherever_the_first_variable_has_people(figures):
    counts = torch.tensor(figures, dtype=torch.float64).reshape(2, 2, 3)
    shares = conditional(counts)
    for line in range(2):
        if counts[line].sum() > 0:
            torch.testing.assert_close(shares[line].sum(dim=1), torch.ones(2, dtype=torch.float64))


@given(
    st.lists(st.integers(0, 5), min_size=8, max_size=8),
    st.lists(st.sampled_from([0.0, 2.0**-53, 0.5, 1 - 2.0**-53]) | st.floats(0, 1, exclude_max=True), min_size=4),
)
def test_no_code_is_drawn_that_nobody_has(figures, numbers):
    counts = torch.tensor(figures, dtype=torch.float64).reshape(2, 4)
    counts[counts.sum(dim=1) == 0] = 1
    # Many lines before the ones that are drawn from, so that the line's number takes up most of the digits.
    shares = torch.cat([torch.ones(100_000, 4, dtype=torch.float64), counts])
    lines = 100_000 + torch.arange(len(numbers)) % 2
    drawn = _pick(shares, lines, torch.tensor(numbers, dtype=torch.float64))
    assert ((drawn >= 0) & (drawn < 4)).all()
    assert (shares[lines, drawn] > 0).all()


def test_drawn_rows_have_the_shares_of_the_counts(profile):
    rows, _ = profile.draw([20_000, 20_000], by_seed(40_000))
    assert rows[STATE].bincount().tolist() == [20_000, 20_000]
    for state, women in enumerate((0.5, 0.75)):
        assert rows["SEX"][rows[STATE] == state].double().mean() == pytest.approx(women, abs=0.015)
    men = rows["AGEP"][rows["SEX"] == 0].bincount(minlength=4) / (rows["SEX"] == 0).sum()
    torch.testing.assert_close(men, torch.tensor([1.0, 2, 1, 2]) / 6, atol=0.015, rtol=0)
    assert rows["AGEP"][rows["SEX"] == 1].min() == 2, "no woman of the profile is young"
    assert torch.equal(rows["life"], rows["AGEP"] // 2)


def test_labels_follow_the_model(profile):
    rows, labels = profile.draw([30_000, 0], by_seed(30_000))
    unmarried_men_of_40 = (rows["SEX"] == 0) & (rows["life"] == 1) & (rows["MAR"] == 1)
    assert labels[unmarried_men_of_40].double().mean() == pytest.approx(1 / (1 + 2.718281828**-1.5), abs=0.02)
    women = (rows["SEX"] == 1) & (rows["MAR"] == 0)
    assert labels[women].double().mean() == pytest.approx(1 / (1 + 2.718281828), abs=0.02)


def test_the_same_numbers_give_the_same_rows(profile):
    (one, labels), (same, again) = (profile.draw([50, 50], by_seed(100)) for _ in range(2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert torch.equal(labels, again)


def test_a_state_that_lacks_a_code_never_draws_it(profile, tmp_path):
    plain = json.loads(json.dumps(PLAIN))
    plain["steps"][0]["by_state"][1] = [1, 40]
    (tmp_path / "profile.json").write_text(json.dumps(plain))
    rows, _ = read(tmp_path / "profile.json").draw([100, 100], by_seed(200))
    assert (rows["SEX"][100:] == 1).all()
    assert 0 in rows["SEX"][:100]
