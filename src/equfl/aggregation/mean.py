"""The weighted mean of FedAvg (McMahan et al., 2017)."""

from dataclasses import dataclass

from equfl.aggregation.base import Aggregation
from equfl.core.arrays import Shares, Updates, Vector
from equfl.core.protocol import RoundContext


@dataclass(frozen=True)
class Mean(Aggregation, name="mean"):
    """Average the updates, each weighted by its client's share of the samples: ``sum_i alpha_i g_i``."""

    def __call__(self, updates: Updates, shares: Shares, context: RoundContext) -> Vector:
        return shares.to(updates.dtype) @ updates
