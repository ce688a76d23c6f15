from dataclasses import replace

import pytest
import torch

from equfl.core.errors import ConfigError
from equfl.core.losses import cross_entropy
from equfl.core.random import Seed
from equfl.fairness.consistency import Consistency
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.fairness.neighbours import nearest
from equfl.methods.regular import Regular


def logits_for(samples):
    return torch.randn(len(samples), 2, generator=Seed(2).generator("logits"))


def fairness(samples, target, method=None):
    """What the method adds to the mean cross-entropy."""
    method, logits = method or Regular(weight=1.0), logits_for(samples)
    return method.objective(logits, samples, {}, target) - cross_entropy(logits, samples).mean()


@pytest.mark.parametrize("target", [EqualizedOdds(), DemographicParity()], ids=str)
def test_it_adds_the_targets_loss_on_the_batch(rows, target):
    samples = rows([[4, 3], [2, 5]])
    expected = target.loss(logits_for(samples), samples)
    assert expected > 0.1
    torch.testing.assert_close(fairness(samples, target), expected)
    torch.testing.assert_close(fairness(samples, target, Regular(weight=0.5)), 0.5 * expected)


def test_a_batch_with_one_group_is_trained_as_in_fedavg(rows):
    assert fairness(rows([[4, 0], [3, 0]]), EqualizedOdds()) == 0


def test_a_row_that_is_alone_in_its_cell_says_nothing_of_its_group(rows):
    samples = rows([[4, 1], [3, 4]])
    others = samples.rows(~((samples.labels == 0) & (samples.groups == 1)))
    kept = torch.tensor([row for row in range(12) if row != 4])
    expected = EqualizedOdds().loss(logits_for(samples)[kept], others)
    torch.testing.assert_close(fairness(samples, EqualizedOdds()), expected)


def test_for_consistency_near_rows_are_searched_within_the_batch(rows):
    samples = rows([[4, 6], [7, 5]])
    expected = Consistency().loss(logits_for(samples), replace(samples, neighbours=nearest(samples.inputs)))
    torch.testing.assert_close(fairness(samples, Consistency()), expected)


def test_a_negative_weight_is_refused():
    with pytest.raises(ConfigError, match=r"method\.weight"):
        Regular(weight=-1.0)
