"""Coordinate-wise trimmed mean (Yin et al., 2018)."""

from dataclasses import dataclass
from math import floor

from equfl.aggregation._trimming import trimmed
from equfl.aggregation.base import Aggregated, Aggregation
from equfl.core.arrays import Shares, Updates
from equfl.core.errors import ConfigError
from equfl.core.protocol import RoundContext


@dataclass(frozen=True)
class TrimmedMean(Aggregation, name="trimmed_mean"):
    """Average each coordinate without its b largest and its b smallest values, ``b = floor(trim_share * clients)``.

    Shares are ignored: the rule counts clients, not samples. With fewer than ``1 / trim_share`` clients the formula
    would trim nobody and the rule be the mean; it then trims one at each end, as far as that leaves somebody. One or
    two updates are averaged.
    """

    trim_share: float = 0.1
    """Share of the clients' values that is dropped at each end, the paper's β; 0 gives the unweighted mean."""

    def __post_init__(self) -> None:
        if not 0 <= self.trim_share < 0.5:
            raise ConfigError(
                f"aggregation.trim_share = {self.trim_share}",
                wanted="a share of at least 0 and less than 0.5",
                remedy="With half of the values dropped at each end, use the median",
            )

    def __call__(self, updates: Updates, shares: Shares, context: RoundContext) -> Aggregated:
        drop = min(self.trimmed_of(len(updates)), (len(updates) - 1) // 2)
        return Aggregated(trimmed(updates, drop), diagnostics={"trimmed": 2.0 * drop})

    def trimmed_of(self, clients: int) -> int:
        """The formula's b, at least one."""
        # 0.29 * 100 is 28.999...
        return max(1, floor(self.trim_share * clients + 1e-9)) if self.trim_share else 0

    def needs(self, clients: int) -> int:
        return 2 * self.trimmed_of(clients) + 1
