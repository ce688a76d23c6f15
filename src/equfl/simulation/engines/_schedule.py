"""Which rows each client trains on at each step, for many clients at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil

import torch
from torch import Tensor

from equfl.simulation.engines.base import Clients
from equfl.training.sgd import SGD


@dataclass(frozen=True)
class Schedule:
    """The batches of some clients, step by step: all first batches, then all second ones, and so on.

    The busiest client comes first, so the clients still at work at a step are the leading ones.
    """

    rows: Tensor
    """Per batch, its row numbers in the pooled block; short batches are filled up with their client's first row."""
    sizes: Tensor
    """Per batch, how many of its rows count; on the CPU."""
    spans: tuple[slice, ...]
    """Per step, its batches."""

    def alike(self) -> Iterator[tuple[slice, Tensor]]:
        """Step by step, neighbouring clients whose batches have the same size: who they are, and their rows."""
        for span in self.spans:
            sizes = self.sizes[span]
            borders = (sizes.diff().nonzero().squeeze(1) + 1).tolist()
            for start, stop in pairwise([0, *borders, len(sizes)]):
                yield slice(start, stop), self.rows[span][start:stop, : int(sizes[start])]


def busiest_first(clients: Clients, training: SGD, ids: Sequence[int]) -> list[int]:
    """Positions in ``ids`` by falling number of steps, then of rows; ties by client, so that order is no choice."""
    sizes = clients.shards.sizes
    return sorted(range(len(ids)), key=lambda at: (-training.steps(sizes[ids[at]]), -sizes[ids[at]], ids[at]))


def schedule(clients: Clients, training: SGD, ids: Sequence[int], *, round: int) -> Schedule:
    """The batches that ``training.train`` would cut for each client on its own, in the same order.

    The clients come busiest first. Shuffles are drawn on the CPU whatever the device, so that all devices agree.
    """
    sizes = [clients.shards.sizes[client] for client in ids]
    width = min(training.batch_size, max(sizes))
    orders = []
    firsts = [0]
    for client, size in zip(ids, sizes, strict=True):
        batches = ceil(size / training.batch_size)
        filling = torch.zeros(batches * width - size, dtype=torch.int64)
        firsts.append(firsts[-1])
        for order in training.permutations(size, clients.shuffler(round, client)):
            orders += [order, filling]
            firsts[-1] += batches

    rows = torch.tensor(sizes)
    per_epoch = (rows + training.batch_size - 1) // training.batch_size
    steps = torch.tensor([training.steps(size) for size in sizes])
    step = torch.arange(int(steps.max())).unsqueeze(1)
    working = step < steps
    last = (step + 1) % per_epoch == 0
    counts = torch.where(last, rows - (per_epoch - 1) * training.batch_size, width)
    starts = torch.tensor([clients.shards.starts[client] for client in ids])
    chosen = (torch.tensor(firsts[:-1]) + step)[working]
    ends = accumulate(working.sum(dim=1).tolist(), initial=0)
    return Schedule(
        rows=torch.cat(orders)
        .view(-1, width)[chosen]
        .add_(starts.expand(len(step), -1)[working].unsqueeze(1))
        .to(clients.shards.pooled.inputs.device),
        sizes=counts[working],
        spans=tuple(slice(start, stop) for start, stop in pairwise(ends)),
    )
