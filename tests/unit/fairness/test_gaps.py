"""Signed gaps, by hand; and their errors, by drawing rows anew."""

import math

import pytest
import torch

from equfl.core.component import known
from equfl.core.random import Seed
from equfl.fairness.base import GroupNotion, Notion
from equfl.fairness.counts import count
from equfl.fairness.estimate import resample
from equfl.fairness.gaps import between_groups, split_by_class, to_everybody

NOTIONS = [notion() for notion in known(Notion).values() if issubclass(notion, GroupNotion)]
PART, WHOLE = torch.tensor([8.0, 5.0, 9.0]), torch.tensor([10.0, 10.0, 12.0])


def test_every_pair_of_groups_has_its_gap_with_its_sign():
    gaps = between_groups(PART, WHOLE)
    assert gaps.values.tolist() == pytest.approx([0.8 - 0.5, 0.8 - 0.75, 0.5 - 0.75])
    assert gaps.known.all()


def test_the_error_of_a_gap_is_that_of_two_binomial_rates():
    gaps = between_groups(PART, WHOLE)
    assert gaps.errors[0].item() == pytest.approx(math.sqrt(0.8 * 0.2 / 10 + 0.5 * 0.5 / 10))


def test_each_group_has_its_gap_to_everybody():
    gaps = to_everybody(PART, WHOLE)
    assert gaps.values.tolist() == pytest.approx([0.8 - 22 / 32, 0.5 - 22 / 32, 0.75 - 22 / 32])


def test_two_groups_lie_on_either_side_of_everybody():
    part, whole = torch.tensor([6.0, 2.0]), torch.tensor([10.0, 30.0])
    gaps = to_everybody(part, whole)
    assert gaps.values[0] > 0 > gaps.values[1]
    assert (gaps.values * whole).sum().item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("kind", [between_groups, to_everybody])
def test_a_group_without_rows_has_no_gap_and_nobody_has_one_to_it(kind):
    gaps = kind(torch.tensor([3.0, 0.0, 4.0]), torch.tensor([5.0, 0.0, 5.0]))
    without = kind(torch.tensor([3.0, 4.0]), torch.tensor([5.0, 5.0]))
    assert gaps.values[gaps.known].tolist() == pytest.approx(without.values.tolist())
    assert not gaps.known.all()
    assert gaps.values[~gaps.known].eq(0).all()
    assert gaps.errors[~gaps.known].eq(0).all()


@pytest.mark.parametrize("kind", [between_groups, to_everybody])
def test_one_group_alone_has_no_gap(kind):
    gaps = kind(torch.tensor([3.0, 0.0]), torch.tensor([5.0, 0.0]))
    assert not gaps.known.any()
    assert math.isnan(gaps.largest())


def test_several_tables_at_once_are_gaps_one_after_another():
    both = between_groups(torch.stack([PART, PART.flip(0)]), torch.stack([WHOLE, WHOLE.flip(0)]))
    assert len(both.values) == 6
    assert torch.equal(both.values[:3], between_groups(PART, WHOLE).values)


@pytest.mark.parametrize("kind", [between_groups, to_everybody])
def test_gaps_have_a_gradient_that_stays_finite_beside_an_empty_group(kind):
    part = torch.tensor([3.0, 0.0, 4.0], requires_grad=True)
    gaps = kind(part, torch.tensor([5.0, 0.0, 8.0]))
    (gradient,) = torch.autograd.grad(gaps.values[gaps.values > 0].sum(), part)
    assert gradient.isfinite().all()
    assert gradient[0] > 0 > gradient[2]
    assert not gaps.errors.requires_grad


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_the_largest_gap_of_a_notion_is_its_metric(notion, three_groups):
    assert notion.gaps(count(*three_groups)).largest() == pytest.approx(notion.metric(*three_groups))


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_the_errors_are_those_of_rows_drawn_anew(notion, people):
    # Rates alike in all groups: that of a group and everybody's then vary together as the formula says.
    cells = {(group, label): (rows * 3 // 10, rows) for group, rows in enumerate((400, 900, 700)) for label in (0, 1)}
    counts = count(*people(cells))
    drawn = resample(counts, 4000, Seed(0).generator("tables"))
    spread = notion.gaps(drawn).values.reshape(4000, -1).std(dim=0)
    torch.testing.assert_close(notion.gaps(counts).errors, spread, rtol=0.06, atol=0)


def test_a_table_of_three_classes_is_three_tables_of_a_class_against_the_rest():
    counts = torch.arange(9.0).reshape(3, 3, 1)  # predicted, true
    tables = split_by_class(counts)
    assert tables.shape == (3, 2, 2, 1)
    assert tables[1].squeeze(-1).tolist() == [[0 + 2 + 6 + 8, 1 + 7], [3 + 5, 4]]


def test_a_binary_table_is_left_as_it_is(three_groups):
    counts = count(*three_groups)
    assert torch.equal(split_by_class(counts), counts.unsqueeze(0))
