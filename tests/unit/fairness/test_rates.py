"""Count tables of probabilities."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import one_hot

from equfl.core.random import Seed
from equfl.core.samples import Samples
from equfl.fairness.counts import count
from equfl.fairness.gaps import split_by_class
from equfl.fairness.rates import margins, soft_tables


def draw(classes: int, rows: int = 60) -> tuple[torch.Tensor, Samples]:
    draws = Seed(0).generator("rates")
    labels, groups = (torch.randint(count, (rows,), generator=draws) for count in (classes, 3))
    logits = torch.randn(rows, classes, generator=draws, dtype=torch.float64)
    return logits, Samples(torch.zeros(rows, 1).double(), labels, groups, classes=classes, group_count=3)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_sigmoid_of_a_margin_is_the_softmax_of_its_class(classes):
    logits, _ = draw(classes)
    expected = logits.softmax(dim=1)[:, 1:] if classes == 2 else logits.softmax(dim=1)
    torch.testing.assert_close(margins(logits).sigmoid(), expected)


def test_a_row_counts_as_the_share_of_a_prediction_that_it_is_sure_of():
    samples = Samples(torch.zeros(1, 1), torch.tensor([1]), torch.tensor([0]))
    (table,) = soft_tables(torch.tensor([[1.0]]), samples, sharpness=2.0)
    sure = torch.sigmoid(torch.tensor(2.0)).item()
    assert table[1, 1, 0].item() == pytest.approx(sure)
    assert table[0, 1, 0].item() == pytest.approx(1 - sure)
    assert table.sum().item() == pytest.approx(1)


@pytest.mark.parametrize("classes", [2, 4])
def test_sharp_rates_are_the_counts_of_hard_predictions(classes):
    logits, samples = draw(classes)
    # Of several classes a row may be sure of none; then it is predicted as one and counted as none.
    logits = logits + 20 * one_hot(logits.argmax(dim=1), classes)
    hard = split_by_class(count(logits.argmax(dim=1), samples))
    torch.testing.assert_close(soft_tables(margins(logits), samples, sharpness=50.0), hard)


def test_soft_labels_and_groups_count_with_their_memberships():
    logits, samples = draw(2)
    spelled = replace(samples, labels=samples.label_weights(), groups=samples.group_weights())
    torch.testing.assert_close(
        soft_tables(margins(logits), spelled, sharpness=1.0), soft_tables(margins(logits), samples, sharpness=1.0)
    )


def test_the_table_has_a_gradient_where_hard_predictions_have_none():
    logits, samples = draw(2)
    logits.requires_grad_()
    (table,) = soft_tables(margins(logits), samples, sharpness=4.0)
    (gradient,) = torch.autograd.grad(table[1].sum(), logits)
    assert (gradient[:, 1] > 0).all()
    torch.testing.assert_close(gradient[:, 0], -gradient[:, 1])
