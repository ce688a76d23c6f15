"""The only data type the mathematics sees."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from equfl.core.arrays import Groups, Inputs, Labels, Losses, Neighbours, SoftGroups, SoftLabels


@dataclass(frozen=True)
class Samples:
    """Rows of data: inputs, labels and the group of each row.

    Labels and groups are numbers (real rows) or memberships that sum to one (synthetic rows, whose labels and groups
    are being optimised). ``label_weights`` and ``group_weights`` give either kind as memberships.
    """

    inputs: Inputs
    labels: Labels | SoftLabels
    groups: Groups | SoftGroups
    classes: int = 2
    """How many labels there are, seen here or not."""
    group_count: int = 2
    """How many groups are declared, seen here or not."""
    importance: Losses | None = None
    """Weight of each row in the training loss; ``None`` means one each."""
    neighbours: Neighbours | None = None
    """Row numbers of each row's nearest rows; needed by consistency only."""

    def __len__(self) -> int:
        return len(self.inputs)

    def label_weights(self) -> SoftLabels:
        """Membership of each row in each label."""
        return _memberships(self.labels, self.classes, self.inputs.dtype)

    def group_weights(self) -> SoftGroups:
        """Membership of each row in each group."""
        return _memberships(self.groups, self.group_count, self.inputs.dtype)

    def rows(self, index: Tensor | slice) -> "Samples":
        """The chosen rows. Neighbours point at row numbers, so they do not survive and are dropped."""
        return replace(
            self,
            inputs=self.inputs[index],
            labels=self.labels[index],
            groups=self.groups[index],
            importance=None if self.importance is None else self.importance[index],
            neighbours=None,
        )

    def to(self, device: torch.device | str) -> "Samples":
        """The same rows on another device."""
        return replace(
            self,
            inputs=self.inputs.to(device),
            labels=self.labels.to(device),
            groups=self.groups.to(device),
            importance=None if self.importance is None else self.importance.to(device),
            neighbours=None if self.neighbours is None else self.neighbours.to(device),
        )


@dataclass(frozen=True)
class Shards:
    """The rows of all clients, one client after another in one block, so that nothing is copied.

    ``pooled`` is the union (its neighbours are found among all rows); ``shards[i]`` is client i's part as a view (its
    neighbours are found among the client's own rows).
    """

    pooled: Samples
    sizes: tuple[int, ...]
    own_neighbours: Neighbours | None = None
    """As ``Samples.neighbours``, but each client on its own: row numbers count from the client's first row."""

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each client's rows begin, and where the last one's end."""
        starts = [0]
        for size in self.sizes:
            starts.append(starts[-1] + size)
        return tuple(starts)

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, client: int) -> Samples:
        span = slice(self.starts[client], self.starts[client] + self.sizes[client])
        shard = self.pooled.rows(span)
        return shard if self.own_neighbours is None else replace(shard, neighbours=self.own_neighbours[span])

    def __iter__(self) -> Iterator[Samples]:
        return (self[client] for client in range(len(self)))

    def to(self, device: torch.device | str) -> "Shards":
        """The same rows on another device."""
        own = None if self.own_neighbours is None else self.own_neighbours.to(device)
        return Shards(self.pooled.to(device), self.sizes, own)


def concatenate(parts: list[Samples]) -> Shards:
    """One block out of the clients' own samples, which all declare the same classes and groups."""
    first = parts[0]
    weighted = any(part.importance is not None for part in parts)
    return Shards(
        replace(
            first,
            inputs=torch.cat([part.inputs for part in parts]),
            labels=torch.cat([part.labels for part in parts]),
            groups=torch.cat([part.groups for part in parts]),
            importance=torch.cat([_weights(part) for part in parts]) if weighted else None,
            neighbours=None,
        ),
        tuple(len(part) for part in parts),
    )


def _weights(samples: Samples) -> Losses:
    return samples.inputs.new_ones(len(samples)) if samples.importance is None else samples.importance


def _memberships(values: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    if values.is_floating_point():
        return values
    # Not torch's one_hot: that looks for the largest value, which no engine could map over clients.
    return (values.unsqueeze(-1) == torch.arange(count, device=values.device)).to(dtype)
