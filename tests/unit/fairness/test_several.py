"""Several notions as one target."""

import pytest
import torch

from equfl.core.errors import ConfigError
from equfl.core.samples import Samples
from equfl.fairness.calibration import Calibration
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.fairness.several import Several

EO, DP, CAL = EqualizedOdds(), DemographicParity(), Calibration()


def rows() -> tuple[torch.Tensor, Samples]:
    draws = torch.Generator().manual_seed(0)
    logits = torch.randn(200, 2, generator=draws)
    labels, groups = torch.randint(2, (2, 200), generator=draws)
    return logits, Samples(torch.randn(200, 3, generator=draws), labels, groups)


def test_its_metric_is_that_of_the_worst_and_its_loss_the_sum():
    logits, samples = rows()
    both = Several((EO, DP))
    predictions = logits.argmax(dim=1)
    worst = max(one.metric(predictions, samples) for one in (EO, DP))
    assert both.metric(predictions, samples) == pytest.approx(worst)
    assert both.loss(logits, samples).item() == pytest.approx(sum(one.loss(logits, samples).item() for one in (EO, DP)))


def test_its_parts_are_the_single_notions_also_of_those_within():
    assert Several((EO, Several((DP, CAL)))).parts() == (EO, DP, CAL)


@pytest.mark.parametrize("notions", [(), (EO,), (EO, EO), (EO, Several((EO, DP)))], ids=len)
def test_one_notion_is_not_several_and_none_stands_twice(notions):
    with pytest.raises(ConfigError, match="each once"):
        Several(notions)
