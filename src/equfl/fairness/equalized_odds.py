"""Equalized odds (Hardt et al., 2016)."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Counts, Logits
from equfl.core.samples import Samples
from equfl.fairness.base import GroupNotion
from equfl.fairness.cells import Cells
from equfl.fairness.counts import binary, large_groups, largest, largest_gap, rate
from equfl.fairness.gaps import Gaps, between_groups


@dataclass(frozen=True)
class EqualizedOdds(GroupNotion, name="equalized_odds"):
    """Among rows with the same true label, every group is predicted positive equally often.

    Symbols: ``R[y, a] = P(prediction = 1 | Y = y, A = a)``, ``L[y, a]`` the mean loss of the cell.
    """

    symbol: ClassVar[str] = "EO"

    def bias(self, counts: Counts, *, min_group_share: float = 0.0) -> Float[Tensor, "*batch"]:
        """``max_y (max_a R[y, a] - min_a R[y, a])``: between groups, worst label.

        Empty cells are left out; a label with fewer than two groups is skipped; NaN if no label remains. A maximum
        over many small cells is large by chance (two rates out of 20 rows each differ by .3), so look at the interval.
        """
        rows = binary(counts).sum(dim=-3)
        present = (rows > 0) & large_groups(counts, min_group_share).unsqueeze(-2)
        return largest(largest_gap(rate(counts[..., 1, :, :], rows), present))

    def gaps(self, counts: Counts) -> Gaps:
        """``R[y, h] - R[y, k]`` for both labels and every pair of groups."""
        return between_groups(counts[..., 1, :, :], binary(counts).sum(dim=-3))

    def loss(self, logits: Logits, samples: Samples) -> Tensor:
        """``sum_y sum_{h, k} |L[y, h] - L[y, k]|``, all ordered pairs as the paper writes it: each gap counts twice.

        Equal losses do not mean equal rates. Pairs with an empty cell are skipped.
        """
        return Cells.of(logits, samples).pair_gaps()
