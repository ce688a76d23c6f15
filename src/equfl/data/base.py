"""What the simulator needs to know of data: a federation."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch

from equfl.core.arrays import Groups
from equfl.core.component import Component
from equfl.core.samples import Shards
from equfl.core.schema import Schema

Progress = Callable[[str, int, int], None]
"""Called by long work: what is being done, how far it is, how far it goes."""


@dataclass(frozen=True)
class Grouping:
    """Another way to divide the pooled test rows into groups, audited beside the main one."""

    names: tuple[str, ...]
    groups: Groups


@dataclass(frozen=True)
class Federation:
    """The clients' rows, and what is known of them."""

    name: str
    clients: tuple[str, ...]
    """Names of the parties, in the order of the shards."""
    train: Shards
    test: Shards
    schema: Schema
    groupings: Mapping[str, Grouping] = field(default_factory=dict)
    """Each sensitive column alone, where the groups are intersections of several."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Source, licence, whether simulated, what was dropped or imputed: shown wherever results are."""

    def to(self, device: torch.device | str) -> "Federation":
        """The same federation on another device."""
        return replace(
            self,
            train=self.train.to(device),
            test=self.test.to(device),
            groupings={
                name: Grouping(grouping.names, grouping.groups.to(device)) for name, grouping in self.groupings.items()
            },
        )


class Dataset(Component, kind="data"):
    """A recipe for a federation. Its fields say which task, which groups, which split."""

    @abstractmethod
    def load(self, *, progress: Progress = lambda task, done, total: None) -> Federation:
        """Read, split and encode the rows; prepared once, then read from the cache."""

    def whereabouts(self) -> str:
        """Where the rows come from on this machine; nothing is read for it."""
        return "comes with equfl"
