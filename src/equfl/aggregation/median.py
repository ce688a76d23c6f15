"""Coordinate-wise median (Yin et al., 2018)."""

from dataclasses import dataclass

from equfl.aggregation._trimming import trimmed
from equfl.aggregation.base import Aggregated, Aggregation
from equfl.core.arrays import Shares, Updates
from equfl.core.protocol import RoundContext


@dataclass(frozen=True)
class Median(Aggregation, name="median"):
    """Take the median of each coordinate by itself; of an even number of clients, the mean of the two middle values.

    It is wrong only where half of the clients are. Shares are ignored: the rule counts clients, not samples. Where most
    clients do not touch a parameter, as with one label per client, the median does not move it either, and learning may
    stall; that is the rule and no fault. One or two updates are averaged.
    """

    def __call__(self, updates: Updates, shares: Shares, context: RoundContext) -> Aggregated:
        return Aggregated(trimmed(updates, (len(updates) - 1) // 2))

    def needs(self, clients: int) -> int:
        return 3
