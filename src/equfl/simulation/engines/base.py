"""What an engine is: it trains the participants of a round."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from equfl.core.arrays import Updates
from equfl.core.component import Component
from equfl.core.protocol import ServerState
from equfl.core.random import Draws, Seed
from equfl.core.samples import Shards
from equfl.core.vector import Buffers, Network
from equfl.fairness.base import Notion
from equfl.methods.base import Method, Tensors
from equfl.training.base import Training


@dataclass(frozen=True)
class Answers:
    """What the participants return, one row per participant, in the order asked for."""

    vectors: Updates
    """The local models."""
    buffers: Mapping[str, Tensor]

    def rows(self, index: Tensor | slice) -> "Answers":
        """The answers of some: views for a slice, copies for numbers."""
        return Answers(self.vectors[index], {name: value[index] for name, value in self.buffers.items()})


@dataclass(frozen=True)
class Clients:
    """All that training needs to know and that stays the same in every round."""

    shards: Shards
    network: Network
    training: Training
    method: Method
    seed: Seed
    target: Notion

    def draws(self, round: int, client: int) -> Draws:
        """The generators of a client in a round: the same for every engine."""
        return partial(self.seed.generator, round=round, client=client)


Trainer = Callable[[ServerState, Sequence[int], Tensors], Answers]
"""A loaded engine: trains the given clients from the state, in round ``state.round + 1``."""


class Engine(Component, kind="engine"):
    """One way to train many clients on one machine. All agree with ``serial``."""

    @abstractmethod
    def load(self, clients: Clients) -> Trainer:
        """Lay the clients out for training; done once per run."""


def stack(buffers: Sequence[Buffers]) -> dict[str, Tensor]:
    """One tensor per buffer out of one mapping per client."""
    return {name: torch.stack([one[name] for one in buffers]) for name in buffers[0]}
