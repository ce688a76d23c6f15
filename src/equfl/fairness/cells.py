"""Mean losses of groups and of (label, group) cells: what the paper's surrogate losses compare."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Logits
from equfl.core.losses import cross_entropy
from equfl.core.samples import Samples
from equfl.fairness.counts import rate


@dataclass(frozen=True)
class Cells:
    """Added-up losses and memberships; cells may be added to give larger ones.

    With memberships m of a row in a label and u in a group, ``sizes[y, a] = sum m_y u_a`` and
    ``totals[y, a] = sum m_y u_a l``. A cell without rows has no mean: every sum over cells leaves it out.
    """

    totals: Float[Tensor, "*cells"]
    sizes: Float[Tensor, "*cells"]

    @classmethod
    def of(cls, logits: Logits, samples: Samples) -> "Cells":
        """One cell per label and group, with the cross-entropy as the loss."""
        labels, groups = samples.label_weights(), samples.group_weights()
        losses = cross_entropy(logits, samples)
        return cls(torch.einsum("n,ny,na->ya", losses, labels, groups), torch.einsum("ny,na->ya", labels, groups))

    def __getitem__(self, label: int) -> "Cells":
        return Cells(self.totals[label], self.sizes[label])

    def merged(self) -> "Cells":
        """The cells of the first dimension added up."""
        return Cells(self.totals.sum(dim=0), self.sizes.sum(dim=0))

    def means(self) -> Float[Tensor, "*cells"]:
        """Mean loss of each cell; 0 where there is none."""
        return rate(self.totals, self.sizes)

    def pair_gaps(self) -> Float[Tensor, ""]:
        """``sum |L_h - L_k|`` over all ordered pairs of the last dimension, so every gap counts twice."""
        means, present = self.means(), self.sizes > 0
        gaps = (means.unsqueeze(-1) - means.unsqueeze(-2)).abs()
        return gaps.where(present.unsqueeze(-1) & present.unsqueeze(-2), 0.0).sum()
