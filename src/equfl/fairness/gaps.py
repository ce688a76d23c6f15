"""Signed gaps between groups, each with its standard error: a notion taken apart into what can be moved and weighed.

A metric keeps the largest gap only, and drops its sign. Whoever wants to close the gaps needs all of them, which way
each one points, and how far it would be from zero by chance.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from equfl.core.arrays import Counts
from equfl.fairness.counts import rate


@dataclass(frozen=True)
class Gaps:
    """One entry per comparison. Where a cell is empty there is no gap and no evidence: value and error are 0."""

    values: Float[Tensor, " gaps"]
    errors: Float[Tensor, " gaps"]
    """Standard errors, from the number of rows in the two cells that are compared."""
    known: Bool[Tensor, " gaps"]

    def largest(self) -> float:
        """The largest gap in size; NaN if none is known."""
        return self.values[self.known].abs().max().item() if self.known.any() else float("nan")


def between_groups(part: Float[Tensor, "*batch groups"], whole: Float[Tensor, "*batch groups"]) -> Gaps:
    """``part[h] / whole[h] - part[k] / whole[k]`` for every pair of groups h < k, batch after batch."""
    rates, variances, present = _binomial(part, whole)
    first, second = torch.triu_indices(whole.shape[-1], whole.shape[-1], offset=1, device=whole.device)
    return _gaps(
        rates[..., first] - rates[..., second],
        variances[..., first] + variances[..., second],
        present[..., first] & present[..., second],
    )


def to_everybody(part: Float[Tensor, "*batch groups"], whole: Float[Tensor, "*batch groups"]) -> Gaps:
    """``part[a] / whole[a] - part / whole``, the latter over all groups, for every group a."""
    rates, variances, present = _binomial(part, whole)
    overall = rate(part.sum(dim=-1, keepdim=True), whole.sum(dim=-1, keepdim=True))
    several = present.sum(dim=-1, keepdim=True) >= 2
    # The group is a part of everybody, so the two vary together.
    everybody = whole.sum(dim=-1, keepdim=True)
    apart = 1 - rate(whole, everybody.expand_as(whole))
    return _gaps(rates - overall, variances * apart, present & several)


def split_by_class(counts: Counts) -> Float[Tensor, "tables 2 2 groups"]:
    """One table of two labels per class, that class against the rest; a binary table is one such table already."""
    classes = counts.shape[-2]
    if classes == 2:
        return counts.unsqueeze(0)
    hit = torch.eye(classes, dtype=counts.dtype, device=counts.device)
    sides = torch.stack([1 - hit, hit], dim=1)  # class, side, label
    return torch.einsum("csp,ctl,plg->cstg", sides, sides, counts)


def _binomial(part: Tensor, whole: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rates = rate(part, whole)
    return rates, rate(rates * (1 - rates), whole).detach().clamp(min=0), whole > 0


def _gaps(values: Tensor, variances: Tensor, known: Tensor) -> Gaps:
    return Gaps(
        values.where(known, 0.0).flatten(),
        variances.where(known, 0.0).sqrt().flatten(),
        known.expand_as(values).flatten(),
    )
