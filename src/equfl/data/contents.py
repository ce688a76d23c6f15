"""What a federation holds, counted: rows by client, label and group; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from equfl.core.samples import Shards
from equfl.data.base import Federation

Cells = Int[Tensor, "*clients labels groups"]


@dataclass(frozen=True)
class Division:
    """Rows by label and group."""

    groups: tuple[str, ...]
    rows: Cells
    tested: bool
    """Whether only the test rows are divided so."""


def by_client(federation: Federation) -> Cells:
    """How many rows of each client have which label and belong to which group, whether they train or test."""
    return _cells(federation.train) + _cells(federation.test)


def divisions(federation: Federation) -> Mapping[str, Division]:
    """The rows by the groups of the run and, where these are intersections of several columns, by each column alone."""
    schema, test = federation.schema, federation.test
    alone = {
        name: replace(test, pooled=replace(test.pooled, groups=grouping.groups, group_count=len(grouping.names)))
        for name, grouping in federation.groupings.items()
    }
    return {" x ".join(schema.sensitive): Division(schema.groups, by_client(federation).sum(dim=0), tested=False)} | {
        name: Division(federation.groupings[name].names, _cells(shards).sum(dim=0), tested=True)
        for name, shards in alone.items()
    }


def _cells(shards: Shards) -> Cells:
    samples = shards.pooled
    shape = torch.Size((len(shards), samples.classes, samples.group_count))
    owners = torch.arange(len(shards)).repeat_interleave(torch.tensor(shards.sizes))
    cells = (owners * samples.classes + samples.labels) * samples.group_count + samples.groups
    return torch.bincount(cells, minlength=shape.numel()).reshape(shape)
