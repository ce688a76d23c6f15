"""Multi-Krum (Blanchard et al., 2017).

Symbols: m the number of clients, f ``suspected``, q ``kept``.
"""

from dataclasses import dataclass
from math import floor

import torch
from torch import Tensor

from equfl.aggregation._distances import squared_distances
from equfl.aggregation.base import Aggregated, Aggregation
from equfl.core.arrays import Shares, Updates
from equfl.core.errors import ConfigError
from equfl.core.protocol import RoundContext


@dataclass(frozen=True)
class MultiKrum(Aggregation, name="multi_krum"):
    """Average the q updates that lie nearest to their ``m - f - 2`` nearest others, by the sum of squared distances.

    ``f = floor(suspect_share * m)``, but at least one where the share is not zero. The theory asks for ``m > 2f +
    2``; a run that begins with fewer is refused, and in a round that is left with fewer, f is lowered until it holds.
    Shares are ignored: the rule counts clients, not samples. Of equal scores the earlier client's is taken.

    Where all clients are honest, what it leaves out is the clients that differ most from the others. The record names
    them (``rejected``).
    """

    suspect_share: float = 0.1
    """Share of the clients that are taken to be far off, at most: f of m."""
    keep: int | None = None
    """How many updates are averaged, q; 1 is Krum. None: all but the suspected, m - f."""

    def __post_init__(self) -> None:
        if not 0 <= self.suspect_share < 0.5 or (self.keep is not None and self.keep < 1):
            raise ConfigError(
                f"aggregation.suspect_share = {self.suspect_share}, aggregation.keep = {self.keep}",
                wanted="a share of at least 0 and less than 0.5, and at least one update to keep",
                remedy="The defaults are 0.1 and none",
            )

    def __call__(self, updates: Updates, shares: Shares, context: RoundContext) -> Aggregated:
        clients = len(updates)
        suspected = min(self.suspected_of(clients), max(0, (clients - 3) // 2))
        kept = min(self.keep or clients, clients - suspected)
        nearest_first = scores(updates, max(1, clients - suspected - 2)).argsort(stable=True)
        accepted = torch.zeros(clients, dtype=torch.bool, device=updates.device)
        accepted[nearest_first[:kept]] = True
        mean = updates[accepted].mean(dim=0, dtype=torch.float64).to(updates.dtype)
        return Aggregated(mean, accepted, {"suspected": float(suspected)})

    def suspected_of(self, clients: int) -> int:
        """The formula's f, at least one."""
        # 0.29 * 100 is 28.999...
        return max(1, floor(self.suspect_share * clients + 1e-9)) if self.suspect_share else 0

    def needs(self, clients: int) -> int:
        return 2 * self.suspected_of(clients) + 3


def scores(updates: Updates, neighbours: int) -> Tensor:
    """Per row, the sum of its squared distances to so many nearest others, up to a unit that all rows share."""
    if len(updates) == 1:
        return updates.new_zeros(1, dtype=torch.float64)
    distances = squared_distances(updates).fill_diagonal_(torch.inf)
    if distances.device.type == "cpu":
        distances.numpy().partition(neighbours - 1, axis=1)
    else:
        distances = distances.topk(neighbours, dim=1, largest=False, sorted=False).values
    return distances[:, :neighbours].sum(dim=1, dtype=torch.float64)
