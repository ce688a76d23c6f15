"""All clients at once: the default engine. Its reference is ``serial``, with which it agrees to rounding.

Batched linear algebra trains the model of every participant in the same call. How general that call can be depends on
what is trained, so there is a ladder of rungs, and the fastest one that applies is taken:

===========  ===============================  ==============================================================
rung         models                           objectives
===========  ===============================  ==============================================================
``packed``   linear layers with ReLU between  the plain one, with or without importance weights
``serial``   any                              any, and any training
===========  ===============================  ==============================================================
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from equfl.core.errors import ConfigError
from equfl.core.protocol import ServerState
from equfl.methods.base import Tensors
from equfl.simulation.engines._packed import Packed
from equfl.simulation.engines._schedule import busiest_first
from equfl.simulation.engines.base import Answers, Clients, Engine, Trainer
from equfl.simulation.engines.serial import Serial
from equfl.training.sgd import SGD


@dataclass(frozen=True)
class Batched(Engine, name="batched"):
    """Train many clients at once, by the fastest rung of the ladder that applies."""

    rung: Literal["auto", "packed", "serial"] = "auto"
    """The rung to use; ``auto`` takes the fastest that applies."""
    memory_mb: int = 256
    """Budget for what training needs beside the rows and the answers; clients are trained in chunks that fit it."""

    def load(self, clients: Clients) -> Trainer:
        obstacle = Packed.obstacle(clients)
        if self.rung == "serial" or (self.rung == "auto" and obstacle):
            return Serial().load(clients)
        if obstacle:
            raise ConfigError(
                f"engine.rung = {self.rung!r} with {obstacle}",
                wanted="a rung that can train this",
                remedy="'auto' takes the fastest that can",
            )
        packed = Packed(clients)
        chunk = max(1, int(self.memory_mb * 2**20 / packed.bytes_per_client()))

        def train(state: ServerState, ids: Sequence[int], instructions: Tensors) -> Answers:
            assert isinstance(clients.training, SGD)
            order = busiest_first(clients, clients.training, ids)
            vectors = state.vector.new_empty(len(ids), len(state.vector))
            for part in torch.tensor(order).split(chunk):
                vectors[part] = packed(state, [ids[at] for at in part.tolist()])
            return Answers(vectors, {})

        return train
