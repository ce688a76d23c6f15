"""The weighted mean of FedAvg (McMahan et al., 2017)."""

from dataclasses import dataclass
from typing import ClassVar

from equfl.aggregation.base import Aggregated, Aggregation
from equfl.core.arrays import Shares, Updates
from equfl.core.protocol import RoundContext


@dataclass(frozen=True)
class Mean(Aggregation, name="mean"):
    """Average the updates, each weighted by its client's share of the samples: ``sum_i alpha_i g_i``."""

    sums_only: ClassVar[bool] = True
    uses_shares: ClassVar[bool] = True

    def __call__(self, updates: Updates, shares: Shares, context: RoundContext) -> Aggregated:
        return Aggregated(shares.to(updates.dtype) @ updates)
