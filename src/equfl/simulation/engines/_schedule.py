"""Which rows each client trains on at each step, for many clients at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from equfl.simulation.engines.base import Clients
from equfl.training.sgd import SGD


@dataclass(frozen=True)
class Step:
    """One step of several clients: the batches of those still at work, who are the leading ones."""

    batches: slice
    """Which batches of the schedule."""
    width: int
    """Rows of the largest of them."""
    sizes: Tensor | None
    """Rows of each, if they are not all alike; on the CPU."""

    @property
    def count(self) -> int:
        return self.batches.stop - self.batches.start

    def alike(self) -> Iterator[tuple[slice, int]]:
        """Neighbouring clients whose batches have the same size: who they are, and that size."""
        if self.sizes is None:
            yield slice(0, self.count), self.width
            return
        borders = (self.sizes.diff().nonzero().squeeze(1) + 1).tolist()
        for start, stop in pairwise([0, *borders, self.count]):
            yield slice(start, stop), int(self.sizes[start])


@dataclass(frozen=True)
class Timetable:
    """When each client of a chunk works on which of its batches; the same in every round."""

    steps: tuple[Step, ...]
    chosen: Tensor
    """The numbers of all steps' batches, step by step, when batches are counted client by client."""
    owners: Tensor
    """Whose these batches are."""
    fillings: tuple[Tensor, ...]
    """What fills up the last batch of each client's pass."""


def busiest_first(clients: Clients, training: SGD, ids: Sequence[int]) -> list[int]:
    """Positions in ``ids`` by falling number of steps, then of rows; ties by client, so that order is no choice."""
    sizes = clients.shards.sizes
    return sorted(range(len(ids)), key=lambda at: (-training.steps(sizes[ids[at]]), -sizes[ids[at]], ids[at]))


@lru_cache(maxsize=256)
def timetable(training: SGD, sizes: tuple[int, ...]) -> Timetable:
    """The timetable of clients with so many rows each, who come busiest first."""
    rows = torch.tensor(sizes)
    width = min(training.batch_size, max(sizes))
    steps = torch.tensor([training.steps(size) for size in sizes])
    per_pass = (rows + training.batch_size - 1) // training.batch_size
    batches = ((steps + per_pass - 1) // per_pass * per_pass).tolist()
    step = torch.arange(int(steps.max())).unsqueeze(1)
    working = step < steps
    last = (step + 1) % per_pass == 0
    counts = torch.where(last, rows - (per_pass - 1) * training.batch_size, training.batch_size)
    ends = accumulate(working.sum(dim=1).tolist(), initial=0)
    return Timetable(
        steps=tuple(
            _step(slice(start, stop), counts[number, : stop - start])
            for number, (start, stop) in enumerate(pairwise(ends))
        ),
        chosen=(torch.tensor([0, *accumulate(batches[:-1])]) + step)[working],
        owners=torch.arange(len(sizes)).expand_as(working)[working],
        fillings=tuple(torch.zeros(-size % width, dtype=torch.int64) for size in sizes),
    )


def _step(batches: slice, sizes: Tensor) -> Step:
    width = int(sizes.max())
    return Step(batches, width, None if bool((sizes == width).all()) else sizes)


def shuffled(
    clients: Clients, training: SGD, ids: Sequence[int], *, round: int
) -> tuple[tuple[Step, ...], list[Tensor]]:
    """The batches that ``training.train`` would cut for each client on its own, step by step, and their row numbers.

    The clients come busiest first. A step has as many row numbers per batch as its largest batch has rows; shorter ones
    are filled up with their client's first row. Shuffles are drawn on the CPU whatever the device, so that all agree.
    """
    sizes = tuple(clients.shards.sizes[client] for client in ids)
    table = timetable(training, sizes)
    orders = []
    for client, size, filling in zip(ids, sizes, table.fillings, strict=True):
        for order in training.permutations(size, clients.draws(round, client)):
            orders += [order, filling]
    batches = torch.cat(orders).view(-1, min(training.batch_size, max(sizes))).index_select(0, table.chosen)
    starts = torch.tensor([clients.shards.starts[client] for client in ids])
    batches += starts.index_select(0, table.owners).unsqueeze(1)
    width = batches.shape[1]
    parts = batches.to(clients.shards.pooled.inputs.device).split([step.count for step in table.steps])
    return table.steps, [
        (part if step.width == width else part[:, : step.width]).flatten()
        for step, part in zip(table.steps, parts, strict=True)
    ]
