"""Clients one after another: slow, obvious, and the reference for every other engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch

from equfl.core.protocol import ServerState
from equfl.methods.base import Tensors, weighed
from equfl.simulation.engines.base import Answers, Clients, Engine, Trainer, stack


@dataclass(frozen=True)
class Serial(Engine, name="serial"):
    """Train each client by the plain loop of ``training.train``."""

    def load(self, clients: Clients) -> Trainer:
        def train(state: ServerState, ids: Sequence[int], instructions: Tensors) -> Answers:
            objective = partial(clients.method.objective, instructions=instructions, target=clients.target)
            answers = [
                clients.training.train(
                    state.vector,
                    state.buffers,
                    weighed(clients.method, clients.shards[client], instructions),
                    network=clients.network,
                    objective=objective,
                    generator=clients.draws(state.round + 1, client),
                )
                for client in ids
            ]
            return Answers(torch.stack([vector for vector, _ in answers]), stack([buffers for _, buffers in answers]))

        return train
