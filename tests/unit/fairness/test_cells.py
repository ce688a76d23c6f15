"""Mean losses of cells, with hard and with soft memberships."""

import pytest
import torch

from equfl.core.losses import cross_entropy
from equfl.core.samples import Samples
from equfl.fairness.cells import Cells


def test_memberships_weigh_the_losses() -> None:
    logits = torch.tensor([[0.0, 1.0], [2.0, 0.0]], dtype=torch.float64)
    labels = torch.tensor([[0.25, 0.75], [0.5, 0.5]], dtype=torch.float64)
    groups = torch.tensor([[0.1, 0.9], [0.6, 0.4]], dtype=torch.float64)
    samples = Samples(torch.zeros(2, 1).double(), labels, groups)
    cells, losses = Cells.of(logits, samples), cross_entropy(logits, samples)
    assert cells.sizes[1, 0].item() == pytest.approx(0.75 * 0.1 + 0.5 * 0.6)
    assert cells.totals[1, 0].item() == pytest.approx((0.75 * 0.1 * losses[0] + 0.5 * 0.6 * losses[1]).item())
    torch.testing.assert_close(cells.merged().sizes, groups.sum(dim=0))


def test_an_empty_cell_has_mean_zero_and_a_finite_gradient(losing) -> None:
    logits, samples = losing([(1, 0, 1), (0, 1, 2)])
    logits.requires_grad_()
    means = Cells.of(logits, samples).means()
    assert means[1, 1] == means[0, 0] == 0
    means.sum().backward()
    assert logits.grad.isfinite().all()


def test_pairs_with_an_empty_cell_have_no_gap() -> None:
    cells = Cells(torch.tensor([4.0, 0.0, 3.0]), torch.tensor([2.0, 0.0, 3.0]))
    assert cells.pair_gaps() == 2 * (2 - 1)
