import pytest
import torch

from equfl.core.errors import DataError
from equfl.core.random import Seed
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.fairness.thresholds import best_thresholds

PARITY, ODDS = DemographicParity(), EqualizedOdds()


def random_histograms(groups: int = 3, bins: int = 12) -> torch.Tensor:
    """Rows whose score says something about the label, more in some groups than in others."""
    draws = Seed(0).generator("histograms")
    towards = torch.linspace(-1, 1, bins) * torch.linspace(0.4, 1.6, groups).unsqueeze(1)
    positive = torch.sigmoid(2 * towards + torch.linspace(-1, 1, groups).unsqueeze(1))
    rows = torch.randint(5, 60, (groups, bins), generator=draws)
    ones = torch.binomial(rows.double(), positive.double(), generator=draws)
    return torch.stack([rows - ones, ones])


def rates(histograms, chances):
    """Of positive predictions, by label and group."""
    return (histograms * chances).sum(-1) / histograms.sum(-1)


def accuracy(histograms, chances):
    return ((histograms[1] * chances).sum() + (histograms[0] * (1 - chances)).sum()) / histograms.sum()


def gaps(histograms, chances, notion):
    found = rates(histograms if notion is ODDS else histograms.sum(0, keepdim=True), chances)
    return (found.amax(-1) - found.amin(-1)).max().item()


def test_without_a_bound_each_group_has_the_threshold_that_errs_least():
    histograms = torch.tensor([[[5.0, 3, 1, 0], [8, 4, 4, 1]], [[0.0, 4, 6, 7], [1, 2, 3, 9]]])
    chances = best_thresholds(histograms, [PARITY], allowed=1.0)
    assert chances.tolist() == [[0, 1, 1, 1], [0, 0, 0, 1]]


@pytest.mark.parametrize("notions", [[PARITY], [ODDS], [PARITY, ODDS]], ids=str)
@pytest.mark.parametrize("allowed", [0.0, 0.05, 0.2])
def test_no_gap_is_larger_than_allowed_and_chances_never_fall_with_the_score(notions, allowed):
    histograms = random_histograms()
    chances = best_thresholds(histograms, notions, allowed=allowed)
    assert all(gaps(histograms, chances, notion) <= allowed + 1e-9 for notion in notions)
    assert (chances.diff(dim=1) >= -1e-12).all()
    assert (chances >= 0).all()
    assert (chances <= 1).all()


def test_the_tighter_the_bound_the_lower_the_accuracy():
    histograms = random_histograms()
    found = [
        accuracy(histograms, best_thresholds(histograms, [ODDS], allowed=a)).item() for a in (1.0, 0.2, 0.1, 0.05, 0.0)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1] + 0.01


def test_among_single_thresholds_that_keep_the_bound_none_is_more_accurate():
    histograms = random_histograms(groups=2, bins=12)
    best = accuracy(histograms, best_thresholds(histograms, [PARITY], allowed=0.1))
    for first in range(13):
        for second in range(13):
            single = (torch.arange(12) >= torch.tensor([[first], [second]])).double()
            if gaps(histograms, single, PARITY) <= 0.1:
                assert accuracy(histograms, single) <= best + 1e-9


def test_an_empty_cell_bounds_nothing():
    histograms = random_histograms()
    histograms[1, 0] = 0
    chances = best_thresholds(histograms, [ODDS], allowed=0.0)
    found = rates(histograms, chances)
    assert found[1, 1].item() == pytest.approx(found[1, 2].item())
    assert (found[0].amax() - found[0].amin()).item() == pytest.approx(0, abs=1e-9)


def test_a_group_without_rows_is_judged_by_what_is_best_for_everybody():
    histograms = torch.tensor([[[5.0, 3, 1, 0], [0, 0, 0, 0]], [[0.0, 2, 6, 7], [0, 0, 0, 0]]])
    assert best_thresholds(histograms, [PARITY], allowed=0.0).tolist() == [[0, 0, 1, 1], [0, 0, 1, 1]]


def test_no_rows_at_all_are_refused():
    with pytest.raises(DataError, match="histograms without rows"):
        best_thresholds(torch.zeros(2, 2, 4), [PARITY], allowed=0.0)
