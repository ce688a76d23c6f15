"""What changed between two models on the same rows, and whether it is more than chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan

import torch
from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Counts, Predictions, Shares
from equfl.core.errors import DataError
from equfl.core.samples import Shards
from equfl.fairness.base import GroupNotion, Notion, RowNotion
from equfl.fairness.counts import correct, count_jointly
from equfl.fairness.estimate import RESAMPLES, Estimate, resample, resampled_means
from equfl.fairness.score import SMALLEST_SHARE


@dataclass(frozen=True)
class Change:
    """A number of one model, the same of another, and the difference, after minus before."""

    before: float
    after: float
    difference: Estimate

    @property
    def beyond_chance(self) -> bool:
        """Whether the difference is larger than two standard errors; never where that is not known."""
        return abs(self.difference.value) > 2 * self.difference.standard_error


UNKNOWN = Change(nan, nan, Estimate(nan))


@dataclass(frozen=True)
class Comparison:
    """Two models on the same rows; notions by name."""

    accuracy: Change
    pooled: Mapping[str, Change]
    """Uncertain because other rows might have been drawn."""
    client_mean: Mapping[str, Change]
    """Over the clients with a value for both models; uncertain because other clients might have taken part."""


def compare(
    before: Predictions,
    after: Predictions,
    shards: Shards,
    notions: Sequence[Notion],
    *,
    resamples: int = RESAMPLES,
    generator: torch.Generator,
) -> Comparison:
    """Draw rows anew, each with what both models predict for it, and look how the difference moves.

    Two models mostly err on the same rows, so their difference is surer than either number.
    """
    clients = count_jointly(before, after, shards).cpu()
    pooled = clients.sum(dim=0)
    tables = resample(pooled, resamples, generator)
    on_rows, at_clients = {}, {}
    for notion in notions:
        on_rows[notion.name] = at_clients[notion.name] = UNKNOWN
        try:
            if isinstance(notion, GroupNotion):
                on_rows[notion.name] = _change(*map(notion.bias, _apart(pooled)), *map(notion.bias, _apart(tables)))
                values = [notion.bias(side, min_group_share=SMALLEST_SHARE) for side in _apart(clients)]
            else:
                on_rows[notion.name] = _change_of_rows(notion, before, after, shards, resamples, generator)
                values = [notion.by_client(side, shards).cpu() for side in (before, after)]
            at_clients[notion.name] = _change_of_clients(*values)
        except DataError:
            # The audit says why the notion does not apply to these rows.
            continue
    return Comparison(
        accuracy=_change(*map(_accuracy, _apart(pooled)), *map(_accuracy, _apart(tables))),
        pooled=on_rows,
        client_mean=at_clients,
    )


def _apart(joint: Float[Tensor, "*batch before after labels groups"]) -> tuple[Counts, Counts]:
    return joint.sum(dim=-3), joint.sum(dim=-4)


def _accuracy(counts: Counts) -> Float[Tensor, "*batch"]:
    return correct(counts).sum(dim=-1) / counts.sum(dim=(-3, -2, -1))


def _change(before: Tensor, after: Tensor, draws_before: Tensor, draws_after: Tensor) -> Change:
    difference = Estimate.from_draws((after - before).item(), draws_after - draws_before)
    return Change(before.item(), after.item(), difference)


def _change_of_rows(
    notion: Notion,
    before: Predictions,
    after: Predictions,
    shards: Shards,
    resamples: int,
    generator: torch.Generator,
) -> Change:
    first, second = (notion.metric(predictions, shards.pooled) for predictions in (before, after))
    difference = Estimate(second - first)
    if isinstance(notion, RowNotion):
        terms = notion.terms(after, shards.pooled) - notion.terms(before, shards.pooled)
        difference = Estimate.from_draws(difference.value, resampled_means(terms, resamples, generator))
    return Change(first, second, difference)


def _change_of_clients(before: Shares, after: Shares) -> Change:
    both = ~(before.isnan() | after.isnan())
    before, after = before[both], after[both]
    return Change(before.mean().item(), after.mean().item(), Estimate.of_mean(after - before))
