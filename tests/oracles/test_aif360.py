"""Equalized odds, demographic parity and consistency against AIF360, where the definitions agree."""

import logging
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import torch

from equfl.core.random import Seed
from equfl.core.samples import Samples
from equfl.fairness.consistency import Consistency
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.fairness.neighbours import nearest

SEEDS = range(20)


@pytest.fixture(scope="module")
def aif360() -> Iterator[ModuleType]:
    """The package, which takes seconds to load and complains in the root log about what else could be installed."""
    logging.disable(logging.WARNING)
    import aif360.datasets
    import aif360.metrics
    import aif360.sklearn.metrics

    logging.disable(logging.NOTSET)
    return aif360


def draw(seed: int, rows: int = 200) -> tuple[torch.Tensor, Samples]:
    draws = Seed(seed).generator("rows")
    predictions, labels, groups = (torch.rand(3, rows, generator=draws) < 0.5).long()
    inputs = torch.randn(rows, 4, generator=draws, dtype=torch.float64)
    return predictions, Samples(inputs, labels, groups, neighbours=nearest(inputs))


def metric(aif360: ModuleType, predictions: torch.Tensor, samples: Samples):
    frame = pd.DataFrame({"group": samples.groups.numpy(), "label": samples.labels.numpy()}, dtype=float)

    def data(frame: pd.DataFrame):
        return aif360.datasets.BinaryLabelDataset(df=frame, label_names=["label"], protected_attribute_names=["group"])

    return aif360.metrics.ClassificationMetric(
        data(frame),
        data(frame.assign(label=predictions.double().numpy())),
        unprivileged_groups=[{"group": 0}],
        privileged_groups=[{"group": 1}],
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_equalized_odds_and_the_absolute_statistical_parity_difference_agree(aif360: ModuleType, seed: int) -> None:
    drawn = draw(seed)
    theirs = metric(aif360, *drawn)
    assert EqualizedOdds().metric(*drawn) == pytest.approx(theirs.equalized_odds_difference())
    # Theirs has a sign: the unprivileged group's rate minus the privileged one's.
    assert DemographicParity().metric(*drawn) == pytest.approx(abs(theirs.statistical_parity_difference()))


def test_averages_of_the_odds_are_another_notion(aif360: ModuleType) -> None:
    drawn = draw(0)
    theirs = metric(aif360, *drawn)
    assert EqualizedOdds().metric(*drawn) > theirs.average_abs_odds_difference() + 1e-3
    assert EqualizedOdds().metric(*drawn) >= abs(theirs.equal_opportunity_difference())


@pytest.mark.parametrize("seed", SEEDS)
def test_consistency_is_what_is_missing_to_one_in_their_score(aif360: ModuleType, seed: int) -> None:
    predictions, samples = draw(seed)
    theirs = aif360.sklearn.metrics.consistency_score(
        samples.inputs.numpy(), predictions.numpy().astype(np.float64), n_neighbors=5
    )
    assert Consistency().metric(predictions, samples) == pytest.approx(1 - theirs)
