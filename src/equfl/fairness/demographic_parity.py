"""Demographic parity (Dwork et al., 2012)."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Counts, Logits
from equfl.core.samples import Samples
from equfl.fairness.base import GroupNotion
from equfl.fairness.cells import Cells
from equfl.fairness.counts import binary, large_groups, largest_gap, rate
from equfl.fairness.gaps import Gaps, between_groups


@dataclass(frozen=True)
class DemographicParity(GroupNotion, name="demographic_parity"):
    """Every group is predicted positive equally often.

    Symbols: ``PR[a] = P(prediction = 1 | A = a)``, ``L[a]`` the mean loss of the group.
    """

    symbol: ClassVar[str] = "DP"

    def bias(self, counts: Counts, *, min_group_share: float = 0.0) -> Float[Tensor, "*batch"]:
        """``max_a PR[a] - min_a PR[a]``. Groups without rows are left out; NaN if fewer than two remain.

        With many small groups the gap is large by chance.
        """
        rows = binary(counts).sum(dim=(-3, -2))
        present = (rows > 0) & large_groups(counts, min_group_share)
        return largest_gap(rate(counts[..., 1, :, :].sum(dim=-2), rows), present)

    def gaps(self, counts: Counts) -> Gaps:
        """``PR[h] - PR[k]`` for every pair of groups."""
        return between_groups(counts[..., 1, :, :].sum(dim=-2), binary(counts).sum(dim=(-3, -2)))

    def loss(self, logits: Logits, samples: Samples) -> Tensor:
        """``sum_{h, k} |L[h] - L[k]|``, all ordered pairs as the paper writes it: each gap counts twice.

        It uses the labels, which the metric does not: a perfect classifier has loss 0 whatever the base rates, so this
        is parity of the loss rather than of the predictions. Pairs with an empty group are skipped.
        """
        return Cells.of(logits, samples).merged().pair_gaps()
