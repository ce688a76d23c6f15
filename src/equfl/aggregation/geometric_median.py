"""Geometric median (Weiszfeld, 1937; for federated learning Pillutla, Kakade and Harchaoui, 2022)."""

from dataclasses import dataclass

from equfl.aggregation._distances import row_norms
from equfl.aggregation._trimming import trimmed
from equfl.aggregation.base import Aggregated, Aggregation
from equfl.core.arrays import Shares, Updates
from equfl.core.errors import ConfigError
from equfl.core.protocol import RoundContext

SMALLEST = 1e-6
"""Least distance that counts, in typical ones: an update on the very spot would otherwise weigh infinitely much."""


@dataclass(frozen=True)
class GeometricMedian(Aggregation, name="geometric_median"):
    """Find the point with the smallest sum of distances to the updates: ``argmin_v sum_i ||g_i - v||``.

    By Weiszfeld's iteration, ``v <- sum_i b_i g_i / sum_i b_i`` with ``b_i = 1 / ||g_i - v||``, from the
    coordinate-wise median, until a step is shorter than ``tolerance`` of the median distance. It is wrong only where
    half of the clients are, and does not look at coordinates one by one. Differs from Pillutla et al.: shares are
    ignored, as in all rules that distrust clients. One or two updates are averaged.
    """

    iterations: int = 100
    """Most steps of a round."""
    tolerance: float = 1e-5
    """Length of a step, in median distances, below which it is done."""

    def __post_init__(self) -> None:
        if self.iterations < 1 or self.tolerance < 0:
            raise ConfigError(
                f"aggregation.iterations = {self.iterations}, aggregation.tolerance = {self.tolerance}",
                wanted="at least one iteration, and a tolerance of 0 or more",
                remedy="The defaults are 100 and 1e-5",
            )

    def __call__(self, updates: Updates, shares: Shares, context: RoundContext) -> Aggregated:
        point = trimmed(updates, (len(updates) - 1) // 2)
        done = 0
        for done in range(1, self.iterations + 1):  # noqa: B007 (what it stopped at is told)
            distances = row_norms(updates - point)
            typical = distances.quantile(0.5)
            if typical == 0:  # half of the updates lie here, so here is the minimum
                break
            weights = 1 / distances.clamp(min=SMALLEST * typical)
            before, point = point, (weights / weights.sum()).to(updates.dtype) @ updates
            if row_norms((point - before)[None]) <= self.tolerance * typical:
                break
        return Aggregated(point, diagnostics={"iterations": float(done)})

    def needs(self, clients: int) -> int:
        return 3
