"""How many rows fall into each cell (predicted label, true label, group): all that a group notion needs.

A table is an exact summary, so whatever is computed from it costs nothing, however many rows there were: one table
per client scores the clients, a thousand resampled tables give an interval.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from equfl.core.arrays import Counts, Predictions
from equfl.core.errors import DataError
from equfl.core.samples import Samples, Shards


def count(predictions: Predictions, samples: Samples) -> Counts:
    """The table of the samples; soft labels and groups count with their memberships."""
    if samples.labels.is_floating_point() or samples.groups.is_floating_point():
        predicted = one_hot(predictions, samples.classes).double()
        return torch.einsum(
            "np,nl,ng->plg", predicted, samples.label_weights().double(), samples.group_weights().double()
        )
    return count_by_client(predictions, Shards(samples, (len(samples),)))[0]


def count_by_client(predictions: Predictions, shards: Shards) -> Counts:
    """One table per client, counted in one pass over all rows; labels and groups are numbers."""
    return _count_by_client([predictions], shards)


def count_jointly(
    before: Predictions, after: Predictions, shards: Shards
) -> Float[Tensor, "clients b a labels groups"]:
    """One table per client of what two models predict for the same rows; summed over one model it is the other's."""
    return _count_by_client([before, after], shards)


def _count_by_client(predictions: Sequence[Predictions], shards: Shards) -> Float[Tensor, "clients ..."]:
    samples = shards.pooled
    columns = (*predictions, samples.labels, samples.groups)
    shape = (len(shards), *[samples.classes] * (len(predictions) + 1), samples.group_count)
    cells = client_of_row(shards)
    for values, size in zip(columns, shape[1:], strict=True):
        cells = cells.mul_(size).add_(values)
    tables = torch.bincount(cells, minlength=torch.Size(shape).numel())
    return tables.reshape(shape).double()


def client_of_row(shards: Shards) -> Int[Tensor, " samples"]:
    """The number of the client that each row belongs to."""
    device = shards.pooled.inputs.device
    sizes = torch.tensor(shards.sizes, device=device)
    return torch.arange(len(shards), device=device).repeat_interleave(sizes, output_size=len(shards.pooled))


def correct(counts: Counts) -> Float[Tensor, "*batch groups"]:
    """How many rows of each group are predicted rightly."""
    return counts.diagonal(dim1=-3, dim2=-2).sum(dim=-1)


def binary(counts: Counts) -> Counts:
    """The same tables, once it is sure that they have two labels."""
    demand_two_labels(counts.shape[-2])
    return counts


def demand_two_labels(classes: int) -> None:
    """Refuse what only makes sense where one label is the favourable one."""
    if classes != 2:
        raise DataError(
            f"{classes} label{'s' if classes != 1 else ''}",
            wanted="two, of which 1 is the favourable one",
            remedy="Make the label binary, or leave this notion out",
        )


def large_groups(counts: Counts, min_group_share: float) -> Bool[Tensor, "*batch groups"]:
    """Which groups have at least that share of their table's rows."""
    rows = counts.sum(dim=(-3, -2))
    return rows >= min_group_share * rows.sum(dim=-1, keepdim=True)


def rate(part: Float[Tensor, "*cells"], whole: Float[Tensor, "*cells"]) -> Float[Tensor, "*cells"]:
    """``part / whole``; 0, with a finite gradient, where there is nothing: the caller must not look there."""
    return part / whole.where(whole > 0, 1.0)


def largest_gap(
    rates: Float[Tensor, "*batch groups"], present: Bool[Tensor, "*batch groups"]
) -> Float[Tensor, "*batch"]:
    """Largest minus smallest rate among the groups present, NaN if fewer than two are.

    It equals the largest absolute difference of any pair.
    """
    highest = rates.where(present, -torch.inf).max(dim=-1).values
    # Among equal rates the maximum takes the first group; turned round, the minimum takes the last, so that a gap
    # of zero still lies between two groups and has their standard error.
    lowest = rates.where(present, torch.inf).flip(-1).min(dim=-1).values
    return (highest - lowest).where(present.sum(dim=-1) >= 2, torch.nan)


def largest(values: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """The largest value that is not NaN; NaN if there is none."""
    known = ~values.isnan()
    return values.where(known, -torch.inf).max(dim=-1).values.where(known.any(dim=-1), torch.nan)
