"""A tiny federation with a planted, known bias: for tests, documentation and trying things out."""

from dataclasses import dataclass

import torch
from torch.nn.functional import one_hot

from equfl.core.errors import ConfigError
from equfl.core.random import Seed
from equfl.core.samples import Samples, Shards, concatenate
from equfl.core.schema import Column, Schema
from equfl.data.base import Dataset, Federation, Progress

TRADES = ("farm", "shop", "office")


@dataclass(frozen=True)
class Toy(Dataset, name="toy"):
    """Rows drawn from a known law, in milliseconds.

    ``skill`` and ``effort`` are standard normal and know nothing of the group; ``trade`` depends on it a little; the
    label is a coin of probability ``sigmoid(2 skill + effort + bias * (+1 for a man, -1 for a woman))``. With
    ``bias = 0`` a model that finds this law is fair; with the default it favours men by about 0.35 (demographic parity)
    and 0.2 (equalized odds).
    """

    clients: int = 5
    rows: int = 200
    """Training rows of the smallest client; every client has as many test rows as training rows."""
    spread: float = 0.0
    """How much larger the largest client is: it has ``rows * (1 + spread)`` training rows."""
    bias: float = 1.0
    """By how much being a man raises, and being a woman lowers, the log-odds of a positive label."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.clients < 1 or self.rows < 1 or self.spread < 0:
            raise ConfigError(
                f"data.clients = {self.clients}, data.rows = {self.rows}, data.spread = {self.spread}",
                wanted="at least one client, one row, and a spread of 0 or more",
                remedy="The defaults are 5, 200 and 0",
            )

    def load(self, *, progress: Progress = lambda task, done, total: None) -> Federation:
        sizes = [
            round(self.rows * (1 + self.spread * client / max(1, self.clients - 1))) for client in range(self.clients)
        ]
        return Federation(
            name="toy",
            clients=tuple(f"client {number}" for number in range(self.clients)),
            train=self._rows("train", sizes),
            test=self._rows("test", sizes),
            schema=SCHEMA,
            facts={"source": f"drawn from a known law with bias {self.bias:g}, seed {self.seed}", "simulated": "yes"},
        )

    def _rows(self, purpose: str, sizes: list[int]) -> Shards:
        return concatenate([self._draw(purpose, client, size) for client, size in enumerate(sizes)])

    def _draw(self, purpose: str, client: int, size: int) -> Samples:
        generator = Seed(self.seed).generator(f"toy {purpose}", client=client)
        # The share of men runs from 0.35 to 0.65 over the clients, so that they differ.
        men = 0.35 + 0.3 * client / max(1, self.clients - 1)
        groups = (torch.rand(size, generator=generator) < men).long()
        numbers = torch.randn(size, 2, generator=generator)
        trades = (torch.rand(size, generator=generator) * (2.2 + 0.8 * groups)).long()
        odds = 2 * numbers[:, 0] + numbers[:, 1] + self.bias * (2 * groups - 1)
        labels = (torch.rand(size, generator=generator) < torch.sigmoid(odds)).long()
        inputs = torch.cat([numbers, one_hot(trades, len(TRADES)), one_hot(groups, 2)], dim=1)
        return Samples(inputs, labels, groups)


SCHEMA = Schema(
    shape=(7,),
    classes=("no", "yes"),
    groups=("woman", "man"),
    sensitive=("sex",),
    columns=(
        Column("skill", 0),
        Column("effort", 1),
        Column("trade", 2, TRADES, off=(0.0,) * 3, on=(1.0,) * 3),
        Column("sex", 5, ("woman", "man"), off=(0.0,) * 2, on=(1.0,) * 2),
    ),
    group_codes=((5,), (6,)),
)
