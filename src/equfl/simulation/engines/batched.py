"""All clients at once: the default engine. Its reference is ``serial``, with which it agrees to rounding.

One call of batched linear algebra trains the model of every participant. How general that call can be depends on what
is trained, so there is a ladder of rungs, and the fastest one that applies is taken:

==========  ==============================  ====================================  =========================
rung        models                          objectives                            training
==========  ==============================  ====================================  =========================
``packed``  linear layers with ReLU         the plain one, with or without        ``sgd`` and ``dp_sgd``,
            between                         importance weights                    hard labels
``vmap``    whatever ``torch.func.vmap``    whatever ``torch.func.vmap`` can map  ``sgd`` and ``noisy_sgd``
            can map, batch norm included
``serial``  any                             any                                   any
==========  ==============================  ====================================  =========================

``vmap`` cannot map what looks into its tensors (``.item()``, ``if loss > 1``) or draws random numbers (dropout); that
shows in a trial step before the first round, and such a run is trained by ``serial``. With ``noisy_update``, the
training inside chooses the rung, and all clients' updates are clipped and noised together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Literal

import torch

from equfl.core.errors import ConfigError
from equfl.core.protocol import ServerState
from equfl.methods.base import Tensors
from equfl.simulation.engines._clipped import Clipped
from equfl.simulation.engines._packed import Packed
from equfl.simulation.engines._schedule import busiest_first
from equfl.simulation.engines.base import Answers, Clients, Engine, Trainer
from equfl.simulation.engines.serial import Serial
from equfl.training.dp_sgd import DPSGD
from equfl.training.noisy_update import NoisyUpdate
from equfl.training.sgd import SGD

if TYPE_CHECKING:
    from equfl.simulation.engines._vmapped import Vmapped


@dataclass(frozen=True)
class Batched(Engine, name="batched"):
    """Train many clients at once, by the fastest rung of the ladder that applies."""

    rung: Literal["auto", "packed", "vmap", "serial"] = "auto"
    """The rung to use; ``auto`` takes the fastest that applies."""
    memory_mb: int = 256
    """Budget for what training needs beside the rows and the answers; clients are trained in chunks that fit it."""

    def load(self, clients: Clients) -> Trainer:
        if isinstance(clients.training, NoisyUpdate):
            return released(clients, self.load(replace(clients, training=clients.training.local)))
        memory = self.memory_mb * 2**20
        if self.rung in ("auto", "packed"):
            packed = Clipped if isinstance(clients.training, DPSGD) else Packed
            obstacle = packed.obstacle(clients)
            if not obstacle:
                return in_chunks(clients, packed(clients, memory))
            self._demand("packed", obstacle)
        if self.rung in ("auto", "vmap"):
            # Loading what 'vmap' needs takes a second, which most runs can do without.
            from equfl.simulation.engines._vmapped import Vmapped

            obstacle = Vmapped.obstacle(clients)
            if not obstacle:
                return self._tried(clients, Vmapped(clients, memory))
            self._demand("vmap", obstacle)
        return Serial().load(clients)

    def _tried(self, clients: Clients, rung: "Vmapped") -> Trainer:
        """Train by ``vmap`` if a trial step works, which takes a state and instructions; by ``serial`` if not."""
        trainer: Trainer | None = None

        def train(state: ServerState, ids: Sequence[int], instructions: Tensors) -> Answers:
            nonlocal trainer
            if trainer is None:
                obstacle = rung.trial(state, instructions)
                if obstacle:
                    self._demand("vmap", obstacle)
                trainer = Serial().load(clients) if obstacle else in_chunks(clients, rung)
            return trainer(state, ids, instructions)

        return train

    def _demand(self, rung: str, obstacle: str) -> None:
        if self.rung == rung:
            raise ConfigError(
                f"engine.rung = {rung!r} with {obstacle}",
                wanted="a rung that can train this",
                remedy="'auto' takes the fastest that can",
            )


def released(clients: Clients, train: Trainer) -> Trainer:
    """Train, then let out what ``noisy_update`` lets out."""

    def train_and_release(state: ServerState, ids: Sequence[int], instructions: Tensors) -> Answers:
        assert isinstance(clients.training, NoisyUpdate)
        answers = train(state, ids, instructions)
        draws = [clients.draws(state.round + 1, client) for client in ids]
        return replace(answers, vectors=clients.training.release(state.vector, answers.vectors, draws))

    return train_and_release


def in_chunks(clients: Clients, rung: "Clipped | Packed | Vmapped") -> Trainer:
    """Train as many at a time as the rung says fit, the busiest first."""

    def train(state: ServerState, ids: Sequence[int], instructions: Tensors) -> Answers:
        assert isinstance(clients.training, SGD)
        rung.weigh(instructions)
        order = busiest_first(clients, clients.training, ids)
        answers = Answers(
            state.vector.new_empty(len(ids), len(state.vector)),
            {name: value.new_empty(len(ids), *value.shape) for name, value in state.buffers.items()},
        )
        size = ceil(len(ids) / ceil(len(ids) / rung.at_once))
        for first in range(0, len(ids), size):
            part = slice(first, first + size)
            rung(state, [ids[at] for at in order[part]], instructions, out=answers.rows(part))
        return answers if order == sorted(order) else answers.rows(torch.tensor(order).argsort())

    return train
