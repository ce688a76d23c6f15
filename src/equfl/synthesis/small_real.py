"""A control: a small data set of the server's own, as earlier work supposes it to have."""

from dataclasses import dataclass

import torch

from equfl.core.arrays import Updates
from equfl.core.errors import ConfigError
from equfl.core.protocol import Diagnostics, RoundContext
from equfl.core.samples import Samples
from equfl.synthesis.base import Synthesis, clients_rows


@dataclass(frozen=True)
class SmallReal(Synthesis, name="small_real"):
    """A control, no method: the server is given a few real rows, equally many of each client, drawn at random.

    It tells how many real rows the synthetic ones are worth. The rows are copies of training rows, which their clients
    keep. Only a simulation can run it, and its result says so.
    """

    takes_real_rows = True

    samples: int = 1000
    """Rows in all. A client that has fewer than its part gives all it has; the others make up for it."""

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ConfigError(
                f"method.synthesis.samples = {self.samples}", wanted="1 or more", remedy="The default is 1000"
            )

    def __call__(self, collected: Updates, context: RoundContext) -> tuple[Samples, Diagnostics]:
        rows, generator = clients_rows(context, self), context.generator("synthesis")
        seats = torch.randperm(len(rows), generator=generator)
        orders, turns = [], []
        for start, size, seat in zip(rows.starts, rows.sizes, seats, strict=False):  # starts has one more
            orders.append(start + torch.randperm(size, generator=generator))
            turns.append(torch.arange(size) * len(rows) + seat)
        # Clients give in turn, so that wherever it ends nobody has given two rows more than another who had them.
        chosen = torch.cat(orders)[torch.cat(turns).argsort()[: self.samples]]
        given = rows.pooled.rows(chosen.to(rows.pooled.inputs.device))
        return given, {"synthesis/real_rows": float(len(given))}
