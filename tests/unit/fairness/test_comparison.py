"""Two models on the same rows."""

import math
from dataclasses import replace

import pytest
import torch

from equfl.core.component import known
from equfl.core.random import Seed
from equfl.core.samples import Samples, Shards
from equfl.fairness.audit import audit
from equfl.fairness.base import GroupNotion, Notion
from equfl.fairness.comparison import Change, Comparison, compare
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.estimate import Estimate
from equfl.fairness.neighbours import nearest

NOTIONS = [notion() for notion in known(Notion).values() if len(notion().parts()) == 1]
ROWS = 900


def two_models(changed: float = 0.1) -> tuple[torch.Tensor, torch.Tensor, Shards]:
    """The second model predicts as the first one, but for some rows of the second group, which it favours."""
    draws = Seed(0).generator("rows")
    inputs = torch.randn(ROWS, 2, generator=draws)
    groups = (torch.rand(ROWS, generator=draws) < 0.4).long()
    labels = (inputs[:, 0] + torch.randn(ROWS, generator=draws) > 0).long()
    before = (inputs[:, 0] + 0.5 * groups + 0.5 * torch.randn(ROWS, generator=draws) > 0).long()
    after = before | ((groups == 1) & (torch.rand(ROWS, generator=draws) < changed)).long()
    sizes = (400, 300, 200)
    own = torch.cat([nearest(part) for part in inputs.split(sizes)])
    return before, after, Shards(Samples(inputs, labels, groups, neighbours=nearest(inputs)), sizes, own)


def of(before: torch.Tensor, after: torch.Tensor, shards: Shards, **settings) -> Comparison:
    return compare(before, after, shards, NOTIONS, generator=Seed(0).generator("comparison"), **settings)


def test_a_difference_is_after_minus_before() -> None:
    before, after, shards = two_models()
    change = of(before, after, shards)
    right = [(side == shards.pooled.labels).double().mean().item() for side in (before, after)]
    assert (change.accuracy.before, change.accuracy.after) == pytest.approx(right)
    assert change.accuracy.difference.value == pytest.approx(right[1] - right[0])
    for notion in NOTIONS:
        values = [notion.metric(side, shards.pooled) for side in (before, after)]
        assert (change.pooled[notion.name].before, change.pooled[notion.name].after) == pytest.approx(values)
        assert change.pooled[notion.name].difference.value == pytest.approx(values[1] - values[0])


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_counts_drawn_anew_vary_as_rows_drawn_anew_for_both_models(notion: Notion) -> None:
    before, after, shards = two_models(0.3)
    draws = Seed(1).generator("rows drawn anew")
    values = []
    for _ in range(400):
        rows = torch.randint(ROWS, (ROWS,), generator=draws)
        if isinstance(notion, GroupNotion):
            first, second = (notion.metric(side[rows], shards.pooled.rows(rows)) for side in (before, after))
        else:
            first, second = (notion.terms(side, shards.pooled)[rows].mean().item() for side in (before, after))
        values.append(second - first)
    reference = torch.tensor(values).std().item()
    error = of(before, after, shards).pooled[notion.name].difference.standard_error
    assert error == pytest.approx(reference, rel=0.15)


def test_models_that_err_on_the_same_rows_are_compared_more_surely_than_each_is_known() -> None:
    before, after, shards = two_models()
    change = of(before, after, shards)
    alone = audit(after, shards, NOTIONS, group_names=("a", "b"), generator=Seed(0).generator("audit"))
    assert change.accuracy.difference.standard_error < alone.accuracy.standard_error
    for name, bias in alone.bias.items():
        assert change.pooled[name].difference.standard_error < bias.pooled.standard_error


def test_the_same_model_twice_has_not_changed() -> None:
    before, _, shards = two_models()
    change = of(before, before, shards)
    for one in (change.accuracy, *change.pooled.values(), *change.client_mean.values()):
        assert one.difference == Estimate(0.0, 0.0, 0.0, 0.0)
        assert not one.beyond_chance


def test_a_planted_change_is_beyond_chance_and_its_undoing_has_the_other_sign() -> None:
    before, after, shards = two_models()
    there = of(before, after, shards).pooled["demographic_parity"]
    back = of(after, before, shards).pooled["demographic_parity"]
    assert there.beyond_chance
    assert there.difference.value == pytest.approx(-back.difference.value)


@pytest.mark.parametrize(
    ("difference", "error", "beyond"), [(0.05, 0.02, True), (-0.05, 0.02, True), (0.04, 0.02, False)]
)
def test_beyond_chance_means_beyond_two_standard_errors(difference: float, error: float, beyond: bool) -> None:
    assert Change(0.1, 0.1 + difference, Estimate(difference, standard_error=error)).beyond_chance is beyond


def test_a_difference_of_unknown_error_is_never_beyond_chance() -> None:
    assert not Change(0.0, 1.0, Estimate(1.0)).beyond_chance


def test_the_clients_means_are_compared_client_by_client() -> None:
    before, after, shards = two_models()
    change = of(before, after, shards).client_mean["demographic_parity"]
    sides = [DemographicParity().by_client(side, shards) for side in (before, after)]
    differences = sides[1] - sides[0]
    assert change.before == pytest.approx(sides[0].mean().item())
    assert change.difference.value == pytest.approx(differences.mean().item())
    assert change.difference.standard_error == pytest.approx(differences.std().item() / math.sqrt(3))


def test_only_clients_with_a_value_for_both_models_are_compared(people) -> None:
    predictions, samples = people({(0, 1): (9, 10), (1, 1): (5, 10), (0, 0): (10, 10)})
    change = of(predictions, 1 - predictions, Shards(samples, (20, 10)))
    assert change.client_mean["demographic_parity"].before == pytest.approx(0.4)
    assert math.isnan(change.client_mean["demographic_parity"].difference.standard_error)


def test_what_does_not_apply_to_the_rows_is_unknown() -> None:
    before, after, shards = two_models()
    blind = Shards(replace(shards.pooled, neighbours=None), shards.sizes)
    change = of(before, after, blind)
    assert math.isnan(change.pooled["consistency"].before)
    assert math.isnan(change.client_mean["consistency"].difference.value)
    assert not change.pooled["consistency"].beyond_chance
    assert change.pooled["equalized_odds"] == of(before, after, shards).pooled["equalized_odds"]
