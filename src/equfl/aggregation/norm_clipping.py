"""Norm clipping (Sun et al., 2019)."""

from dataclasses import dataclass

from equfl.aggregation._distances import row_norms
from equfl.aggregation.base import Aggregated, Aggregation
from equfl.core.arrays import Shares, Updates
from equfl.core.errors import ConfigError
from equfl.core.protocol import RoundContext


@dataclass(frozen=True)
class NormClipping(Aggregation, name="norm_clipping"):
    """Shorten every update to length S at most, then average: ``mean_i g_i min(1, S / ||g_i||)``.

    Nobody is left out, and nobody moves the model by more than S / clients. Differs from Sun et al.: S follows the
    updates unless it is given, as their length falls while the model converges; and shares are ignored, as in all
    rules that distrust clients. With one or two updates, the longer one is shortened to the length halfway between
    them.
    """

    max_norm: float | None = None
    """The length S. None: the median length of the round's updates."""

    def __post_init__(self) -> None:
        if self.max_norm is not None and not self.max_norm > 0:
            raise ConfigError(
                f"aggregation.max_norm = {self.max_norm}", wanted="a length above 0", remedy="None follows the updates"
            )

    def __call__(self, updates: Updates, shares: Shares, context: RoundContext) -> Aggregated:
        norms = row_norms(updates)
        limit = norms.quantile(0.5) if self.max_norm is None else norms.new_tensor(self.max_norm)
        # A length of zero needs no shortening, and is at most any limit.
        factors = (limit / norms).clamp(max=1).nan_to_num(nan=1.0)
        vector = (factors / len(updates)).to(updates.dtype) @ updates
        return Aggregated(vector, diagnostics={"limit": limit.item(), "shortened": float((norms > limit).sum())})

    def needs(self, clients: int) -> int:
        return 3 if self.max_norm is None else 1
