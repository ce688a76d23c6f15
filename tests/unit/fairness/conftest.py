"""Rows written down as counts, so that every rate can be read off."""

from collections.abc import Callable

import pytest
import torch

from equfl.core.samples import Samples

Cells = dict[tuple[int, int], tuple[int, int]]
"""(group, true label) -> (rows predicted positive, rows)."""


def rows_of(cells: Cells, groups: int) -> tuple[torch.Tensor, Samples]:
    table = [
        (int(row < positive), label, group) for (group, label), (positive, rows) in cells.items() for row in range(rows)
    ]
    predictions, labels, members = torch.tensor(table).unbind(dim=1)
    return predictions, Samples(torch.zeros(len(table), 1), labels, members, group_count=groups)


@pytest.fixture
def people() -> Callable[..., tuple[torch.Tensor, Samples]]:
    """Predictions and samples with the given cells; as many groups as are named unless told otherwise."""

    def build(cells: Cells, groups: int | None = None) -> tuple[torch.Tensor, Samples]:
        return rows_of(cells, groups or 1 + max(group for group, _ in cells))

    return build


@pytest.fixture
def three_groups(people) -> tuple[torch.Tensor, Samples]:
    """True positive rates .8, .5, .9; false positive rates .1, .3, .2; precisions 8/9, 5/8, 9/13."""
    return people(
        {
            (0, 1): (8, 10),
            (0, 0): (1, 10),
            (1, 1): (5, 10),
            (1, 0): (3, 10),
            (2, 1): (9, 10),
            (2, 0): (4, 20),
        }
    )


@pytest.fixture
def losing() -> Callable[..., tuple[torch.Tensor, Samples]]:
    """Logits and samples out of (label, group, loss), the loss in units of log 2."""

    def build(rows: list[tuple[int, int, float]], groups: int = 2) -> tuple[torch.Tensor, Samples]:
        labels, members, losses = (torch.tensor(column) for column in zip(*rows, strict=True))
        right = torch.pow(2.0, -losses.double())
        logits = torch.stack([torch.where(labels == label, right, 1 - right).log() for label in (0, 1)], dim=1)
        return logits, Samples(torch.zeros(len(rows), 1).double(), labels, members, group_count=groups)

    return build
