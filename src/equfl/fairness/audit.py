"""The full view of a model on the test rows: accuracy, every notion, and the table by group, each with its interval."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite, nan

import torch

from equfl.core.arrays import Counts, Groups, Predictions, Shares
from equfl.core.errors import DataError
from equfl.core.samples import Samples, Shards
from equfl.fairness.base import GroupNotion, Notion, RowNotion
from equfl.fairness.counts import correct, count_by_client
from equfl.fairness.estimate import RESAMPLES, Estimate, resample, resampled_means
from equfl.fairness.score import SMALLEST_SHARE

Row = Mapping[str, str | int | float | None]
"""One line of the long table."""


@dataclass(frozen=True)
class Bias:
    """One notion's value on all rows and at the clients."""

    symbol: str
    pooled: Estimate
    by_client: tuple[float, ...]
    """The value at each client; NaN where a client's rows cannot show it."""
    client_mean: float
    """The unweighted mean over the clients that have a value."""
    weighted_client_mean: float
    """The same, each client weighted with its rows."""
    worst_client: int | None
    """The number of the client with the largest value; ``None`` if no client has one."""
    worst: float
    skipped: int
    """How many clients have no value."""


@dataclass(frozen=True)
class GroupRates:
    """What the model does to one group. A rate out of no rows is NaN."""

    name: str
    rows: int
    share: Estimate
    base_rate: Estimate
    """How many of the rows are truly positive."""
    accuracy: Estimate
    positive_rate: Estimate
    """How many are predicted positive."""
    true_positive_rate: Estimate
    false_positive_rate: Estimate
    precision: Estimate
    """How many of those predicted positive are truly positive."""


@dataclass(frozen=True)
class Audit:
    """One model on one division of the rows into groups."""

    rows: int
    accuracy: Estimate
    bias: Mapping[str, Bias]
    """By the notion's name."""
    groups: tuple[GroupRates, ...]
    left_out: Mapping[str, str]
    """Notions that these rows cannot be judged by (their values are NaN), and why."""

    def table(self) -> list[Row]:
        """Everything in long format, one number per row.

        ``scope`` says what the number is about: ``pooled``, ``client_mean``, ``weighted_client_mean``,
        ``worst_client``, ``client`` or ``group``.
        """
        rows = [_row("accuracy", "pooled", self.accuracy)]
        for name, bias in self.bias.items():
            rows.append(_row(name, "pooled", bias.pooled))
            rows.append(_row(name, "client_mean", Estimate(bias.client_mean)))
            rows.append(_row(name, "weighted_client_mean", Estimate(bias.weighted_client_mean)))
            rows.append(_row(name, "worst_client", Estimate(bias.worst), client=bias.worst_client))
            rows += [_row(name, "client", Estimate(value), client=i) for i, value in enumerate(bias.by_client)]
        for group in self.groups:
            rows.append(_row("rows", "group", Estimate(float(group.rows)), group=group.name))
            rates = {name: rate for name, rate in vars(group).items() if isinstance(rate, Estimate)}
            rows += [_row(name, "group", rate, group=group.name) for name, rate in rates.items()]
        return rows

    def plain(self) -> dict[str, dict[str, dict[str, float | None]]]:
        """The biases with their intervals and the rates by group, as JSON can say them: null where nothing is known."""
        return {
            "bias": {
                name: {
                    "pooled": _known(bias.pooled.value),
                    "low": _known(bias.pooled.low),
                    "high": _known(bias.pooled.high),
                    "client_mean": _known(bias.client_mean),
                }
                for name, bias in self.bias.items()
            },
            "groups": {
                group.name: {"rows": group.rows}
                | {name: _known(rate.value) for name, rate in vars(group).items() if isinstance(rate, Estimate)}
                for group in self.groups
            },
        }


def audit(
    predictions: Predictions,
    shards: Shards,
    notions: Sequence[Notion],
    *,
    group_names: Sequence[str],
    resamples: int = RESAMPLES,
    generator: torch.Generator,
) -> Audit:
    """Count the rows once; everything else follows from the counts, and for consistency from its terms.

    What does not apply to the rows (more than two labels, no neighbours) is NaN and named in ``left_out``.
    """
    counts = count_by_client(predictions, shards).cpu()
    pooled = counts.sum(dim=0)
    tables = resample(pooled, resamples, generator)
    bias, left_out = {}, {}
    for notion in notions:
        clients = torch.full((len(shards),), nan, dtype=torch.float64)
        estimate = Estimate(nan)
        try:
            if isinstance(notion, GroupNotion):
                estimate = Estimate.from_draws(notion.bias(pooled).item(), notion.bias(tables), within=(0.0, 1.0))
                clients = notion.bias(counts, min_group_share=SMALLEST_SHARE)
            else:
                estimate = _on_rows(notion, predictions, shards.pooled, resamples, generator)
                clients = notion.by_client(predictions, shards).cpu()
        except DataError as error:
            left_out[notion.name] = error.found
        bias[notion.name] = _bias(notion.symbol, estimate, clients, shards.sizes)
    return Audit(
        rows=len(shards.pooled),
        accuracy=Estimate.of_proportion(correct(pooled).sum().item(), pooled.sum().item()),
        bias=bias,
        groups=tuple(_rates(name, pooled[..., [group]], len(shards.pooled)) for group, name in enumerate(group_names)),
        left_out=left_out,
    )


def divided(shards: Shards, groups: Groups, *, group_count: int) -> Shards:
    """The same rows divided into other groups (one sensitive column alone, say), to be audited likewise."""
    return replace(shards, pooled=replace(shards.pooled, groups=groups, group_count=group_count))


def _on_rows(
    notion: Notion, predictions: Predictions, samples: Samples, resamples: int, generator: torch.Generator
) -> Estimate:
    value = notion.metric(predictions, samples)
    if not isinstance(notion, RowNotion):
        return Estimate(value)
    draws = resampled_means(notion.terms(predictions, samples), resamples, generator)
    return Estimate.from_draws(value, draws, within=(0.0, 1.0))


def _bias(symbol: str, pooled: Estimate, clients: Shares, sizes: Sequence[int]) -> Bias:
    known = ~clients.isnan()
    weights = torch.tensor(sizes, dtype=torch.float64) * known
    worst = int(clients.nan_to_num(nan=-1.0).argmax()) if known.any() else None
    return Bias(
        symbol=symbol,
        pooled=pooled,
        by_client=tuple(clients.tolist()),
        client_mean=clients.nanmean().item(),
        weighted_client_mean=(clients.nan_to_num() @ weights / weights.sum()).item(),
        worst_client=worst,
        worst=nan if worst is None else clients[worst].item(),
        skipped=int((~known).sum()),
    )


def _rates(name: str, counts: Counts, total: int) -> GroupRates:
    rows = counts.sum().item()
    # Among more than two labels none is the positive one.
    (tn, fn), (fp, tp) = counts.squeeze(-1).tolist() if len(counts) == 2 else ((0.0, 0.0), (0.0, 0.0))
    of = Estimate.of_proportion
    return GroupRates(
        name=name,
        rows=round(rows),
        share=of(rows, float(total)),
        base_rate=of(tp + fn, tn + fn + fp + tp),
        accuracy=of(correct(counts).item(), rows),
        positive_rate=of(tp + fp, tn + fn + fp + tp),
        true_positive_rate=of(tp, tp + fn),
        false_positive_rate=of(fp, fp + tn),
        precision=of(tp, tp + fp),
    )


def _known(value: float) -> float | None:
    return value if isfinite(value) else None


def _row(measure: str, scope: str, estimate: Estimate, *, client: int | None = None, group: str | None = None) -> Row:
    return {"measure": measure, "scope": scope, "client": client, "group": group, **asdict(estimate)}
