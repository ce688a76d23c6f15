"""Equalized odds, demographic parity and calibration against fairlearn, where the definitions agree."""

import numpy as np
import pytest
import torch
from fairlearn.metrics import MetricFrame, demographic_parity_difference, equalized_odds_difference
from sklearn.metrics import precision_score

from equfl.core.random import Seed
from equfl.core.samples import Samples
from equfl.fairness.calibration import Calibration
from equfl.fairness.counts import count
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds

SEEDS = range(200)


def draw(seed: int) -> tuple[torch.Tensor, Samples]:
    """Two to five groups, every cell filled."""
    draws = Seed(seed).generator("rows")
    groups = int(torch.randint(2, 6, (), generator=draws))
    filled = torch.cartesian_prod(torch.arange(2), torch.arange(2), torch.arange(groups))
    odds = torch.rand(4 * groups, generator=draws)
    rows = torch.cat([filled, filled[torch.multinomial(odds, 150, replacement=True, generator=draws)]])
    predictions, labels, members = rows.unbind(dim=1)
    return predictions, Samples(torch.zeros(len(rows), 1), labels, members, group_count=groups)


def arrays(predictions: torch.Tensor, samples: Samples) -> dict[str, np.ndarray]:
    return {
        "y_true": samples.labels.numpy(),
        "y_pred": predictions.numpy(),
        "sensitive_features": samples.groups.numpy(),
    }


def test_equalized_odds_agrees() -> None:
    for seed in SEEDS:
        drawn = draw(seed)
        theirs = equalized_odds_difference(**arrays(*drawn), method="between_groups", agg="worst_case")
        assert EqualizedOdds().metric(*drawn) == pytest.approx(theirs, abs=1e-12), f"seed {seed}"


def test_demographic_parity_agrees() -> None:
    for seed in SEEDS:
        drawn = draw(seed)
        theirs = demographic_parity_difference(**arrays(*drawn))
        assert DemographicParity().metric(*drawn) == pytest.approx(theirs, abs=1e-12), f"seed {seed}"


def test_calibration_agrees_with_the_precisions_distance_to_the_overall_one() -> None:
    for seed in SEEDS:
        drawn = draw(seed)
        frame = MetricFrame(metrics=precision_score, **arrays(*drawn))
        theirs = frame.difference(method="to_overall")
        assert Calibration().metric(*drawn) == pytest.approx(theirs, abs=1e-12), f"seed {seed}"


def test_an_empty_cell_is_a_rate_of_zero_for_them_and_no_rate_for_us() -> None:
    predictions = torch.tensor([1, 1, 0, 1, 1, 0, 0, 0])
    labels = torch.tensor([1, 1, 0, 1, 1, 0, 0, 0])
    groups = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2])
    samples = Samples(torch.zeros(8, 1), labels, groups, group_count=3)
    assert count(predictions, samples)[:, 1, 2].sum() == 0
    theirs = equalized_odds_difference(**arrays(predictions, samples), method="between_groups", agg="worst_case")
    assert theirs == 1
    assert EqualizedOdds().metric(predictions, samples) == 0


def test_a_group_without_positive_predictions_is_left_out_as_theirs_is_when_told_so() -> None:
    predictions = torch.tensor([1, 1, 1, 1, 1, 0, 0])
    labels = torch.tensor([1, 0, 1, 1, 1, 1, 0])
    groups = torch.tensor([0, 0, 1, 1, 1, 2, 2])
    samples = Samples(torch.zeros(7, 1), labels, groups, group_count=3)
    frame = MetricFrame(
        metrics=lambda t, p: precision_score(t, p, zero_division=np.nan), **arrays(predictions, samples)
    )
    theirs = (frame.by_group - frame.overall).abs().max()
    assert np.isnan(frame.by_group[2])
    assert Calibration().metric(predictions, samples) == pytest.approx(theirs)
