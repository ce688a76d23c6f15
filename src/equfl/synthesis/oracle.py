"""A control: all that a synthesis could ever hope for."""

from dataclasses import dataclass

from equfl.core.arrays import Updates
from equfl.core.protocol import Diagnostics, RoundContext
from equfl.core.samples import Samples
from equfl.synthesis.base import Synthesis, clients_rows


@dataclass(frozen=True)
class Oracle(Synthesis, name="oracle"):
    """A control, no method: the server is given all training rows of all clients, as they are.

    What a method reaches with it is what its calibration can reach; what it loses without it, the synthesis loses. Only
    a simulation can run it, and its result says so.
    """

    takes_real_rows = True

    def __call__(self, collected: Updates, context: RoundContext) -> tuple[Samples, Diagnostics]:
        rows = clients_rows(context, self)
        return rows.pooled, {"synthesis/real_rows": float(len(rows.pooled))}
