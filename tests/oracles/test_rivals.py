"""Rivals against the libraries in which their methods are best known, where the definitions agree."""

import logging
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator

from equfl.core.random import Seed
from equfl.core.samples import Samples
from equfl.fairness.counts import count
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.fairness.thresholds import best_thresholds
from equfl.methods.reweight import Reweight

SEEDS = range(5)
BINS = 20


def people(seed: int, rows: int = 600) -> Samples:
    """Rows whose only input is a score between 0 and 1, which leans to one group."""
    draws = Seed(seed).generator("people")
    groups = (torch.rand(rows, generator=draws) < 0.4).long()
    merit = torch.randn(rows, generator=draws)
    labels = (torch.rand(rows, generator=draws) < torch.sigmoid(1.5 * merit + 0.7 * groups)).long()
    scores = torch.sigmoid(merit + groups)
    return Samples((scores * BINS).floor().clamp(max=BINS - 1).unsqueeze(1), labels, groups)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_weights_of_reweight_are_those_of_aif360(seed):
    logging.disable(logging.WARNING)
    from aif360.algorithms.preprocessing import Reweighing
    from aif360.datasets import BinaryLabelDataset

    logging.disable(logging.NOTSET)
    samples = people(seed)
    samples = Samples(samples.inputs.double(), samples.labels, samples.groups)
    frame = pd.DataFrame({"group": samples.groups.numpy(), "label": samples.labels.numpy()}, dtype=float)
    data = BinaryLabelDataset(df=frame, label_names=["label"], protected_attribute_names=["group"])
    theirs = Reweighing(unprivileged_groups=[{"group": 0}], privileged_groups=[{"group": 1}]).fit_transform(data)
    ours = Reweight().prepare(samples, {}).importance
    np.testing.assert_allclose(ours.numpy(), theirs.instance_weights, rtol=1e-12)


class Scores(BaseEstimator):
    """A fitted classifier, as fairlearn wants it, whose scores are the input."""

    def fit(self, inputs, labels):
        self.fitted_ = True
        return self

    def predict(self, inputs):
        return np.asarray(inputs)[:, 0]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("notion", "constraint"),
    [(DemographicParity(), "demographic_parity"), (EqualizedOdds(), "equalized_odds")],
    ids=str,
)
def test_thresholds_per_group_are_as_good_as_fairlearns(seed, notion, constraint):
    from fairlearn.postprocessing import ThresholdOptimizer

    samples = people(seed)
    bins = samples.inputs[:, 0].long()
    histograms = torch.stack([count(bins, Samples(samples.inputs, samples.labels, samples.groups, classes=BINS))])
    histograms = histograms[0, :, :2].permute(1, 2, 0)
    chances = best_thresholds(histograms, [notion], allowed=0.0)
    kept = (histograms[1] * chances + histograms[0] * (1 - chances)).sum() / len(samples)

    theirs = ThresholdOptimizer(
        estimator=Scores().fit(None, None),
        constraints=constraint,
        objective="accuracy_score",
        prefit=True,
        predict_method="predict",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(samples.inputs.double().numpy(), samples.labels.numpy(), sensitive_features=samples.groups.numpy())
        chance = theirs._pmf_predict(samples.inputs.double().numpy(), sensitive_features=samples.groups.numpy())[:, 1]
    labels = samples.labels.numpy()
    expected = (labels * chance + (1 - labels) * (1 - chance)).mean()
    # Theirs looks for the best rate on a grid of a thousand; ours is exact.
    assert kept.item() == pytest.approx(expected, abs=2e-3)
    assert kept.item() >= expected - 1e-6
