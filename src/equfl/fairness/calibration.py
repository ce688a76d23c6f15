"""Calibration, in the sense of equally reliable positive predictions (Pleiss et al., 2017)."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Counts, Logits
from equfl.core.samples import Samples
from equfl.fairness.base import GroupNotion
from equfl.fairness.cells import Cells
from equfl.fairness.counts import binary, large_groups, largest, rate
from equfl.fairness.gaps import Gaps, to_everybody


@dataclass(frozen=True)
class Calibration(GroupNotion, name="calibration"):
    """Among rows predicted positive, every group is truly positive as often as all rows are.

    Symbols: ``PPV[a] = P(Y = 1 | prediction = 1, A = a)``, ``PPV`` the same over all groups; ``L[1, a]`` the mean loss
    of the positive rows of the group, ``L[1]`` that of all positive rows. This is parity of the precision, not
    calibration of the scores; the name is the paper's.
    """

    symbol: ClassVar[str] = "CAL"

    def bias(self, counts: Counts, *, min_group_share: float = 0.0) -> Float[Tensor, "*batch"]:
        """``max_a |PPV[a] - PPV|``: to the overall value, not between groups.

        Groups without a positive prediction are left out. NaN if fewer than two remain: one alone is the overall
        value. Groups below ``min_group_share`` are not judged, but their rows stay in the overall value. With many
        small groups the gap is large by chance.
        """
        predicted = binary(counts)[..., 1, :, :].sum(dim=-2)
        true = counts[..., 1, 1, :]
        overall = rate(true.sum(dim=-1, keepdim=True), predicted.sum(dim=-1, keepdim=True))
        present = (predicted > 0) & large_groups(counts, min_group_share)
        gaps = (rate(true, predicted) - overall).abs().where(present, float("nan"))
        return largest(gaps).where(present.sum(dim=-1) >= 2, float("nan"))

    def gaps(self, counts: Counts) -> Gaps:
        """``PPV[a] - PPV`` for every group."""
        return to_everybody(counts[..., 1, 1, :], binary(counts)[..., 1, :, :].sum(dim=-2))

    def loss(self, logits: Logits, samples: Samples) -> Tensor:
        """``sum_a |L[1] - L[1, a]|``; groups without positive rows are skipped.

        It conditions on the label where the metric conditions on the prediction. For two groups it is the ``y = 1``
        part of the loss of equalized odds with each pair counted once.
        """
        positive = Cells.of(logits, samples)[1]
        gaps = (positive.merged().means() - positive.means()).abs()
        return gaps.where(positive.sizes > 0, 0.0).sum()
