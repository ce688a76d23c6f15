"""The full view of a model."""

import math
from dataclasses import replace

import pytest
import torch

from equfl.core.component import known
from equfl.core.random import Seed
from equfl.core.samples import Samples, Shards
from equfl.fairness.audit import Audit, audit, divided
from equfl.fairness.base import GroupNotion, Notion
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.fairness.neighbours import nearest
from equfl.fairness.score import SMALLEST_SHARE, score

NOTIONS = [notion() for notion in known(Notion).values() if len(notion().parts()) == 1]
NAMES = ("a", "b", "c")


def federation(rows: int = 600, sizes: tuple[int, ...] = (300, 180, 120)) -> tuple[torch.Tensor, Shards]:
    """Three groups that are predicted positive more or less often, three clients."""
    draws = Seed(0).generator("rows")
    inputs = torch.randn(rows, 2, generator=draws)
    groups = (torch.rand(rows, generator=draws) ** 2 * 3).long()
    labels = (inputs[:, 0] + torch.randn(rows, generator=draws) > 0).long()
    predictions = (inputs[:, 0] + 0.4 * groups + 0.5 * torch.randn(rows, generator=draws) > 0).long()
    samples = Samples(inputs, labels, groups, group_count=3, neighbours=nearest(inputs))
    own = torch.cat([nearest(part) for part in inputs.split(sizes)])
    return predictions, Shards(samples, sizes, own)


def of(predictions: torch.Tensor, shards: Shards, notions=NOTIONS, names=NAMES, **settings) -> Audit:
    return audit(predictions, shards, notions, group_names=names, generator=Seed(0).generator("audit"), **settings)


class Unheard(Notion):
    """A notion of another package that is neither a matter of groups nor a mean over rows."""

    name = "unheard"
    symbol = "UN"

    def metric(self, predictions, samples) -> float:
        return predictions.double().mean().item()

    def loss(self, logits, samples):
        return logits.sum()


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_the_pooled_value_and_the_clients_are_the_metrics(notion: Notion) -> None:
    predictions, shards = federation()
    bias = of(predictions, shards).bias[notion.name]
    parts = list(zip(predictions.split(shards.sizes), shards, strict=True))
    clients = [notion.metric(part, samples) for part, samples in parts]
    assert bias.symbol == notion.symbol
    assert bias.pooled.value == pytest.approx(notion.metric(predictions, shards.pooled))
    assert bias.by_client == pytest.approx(clients)
    assert bias.client_mean == pytest.approx(sum(clients) / 3)
    assert bias.weighted_client_mean == pytest.approx(
        sum(c * n for c, n in zip(clients, shards.sizes, strict=True)) / 600
    )
    assert (bias.worst_client, bias.worst) == (clients.index(max(clients)), pytest.approx(max(clients)))
    assert bias.skipped == 0


def test_the_audit_agrees_with_what_every_round_is_scored() -> None:
    predictions, shards = federation()
    whole, quick = of(predictions, shards), score(predictions, shards, NOTIONS)
    assert whole.accuracy.value == pytest.approx(quick["accuracy"])
    for name, bias in whole.bias.items():
        assert bias.pooled.value == pytest.approx(quick[f"{name}/pooled"])
        assert bias.client_mean == pytest.approx(quick[f"{name}/client_mean"])


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_counts_drawn_anew_vary_as_rows_drawn_anew(notion: Notion) -> None:
    predictions, shards = federation()
    draws = Seed(1).generator("rows drawn anew")
    values = []
    for _ in range(400):
        rows = torch.randint(600, (600,), generator=draws)
        if isinstance(notion, GroupNotion):
            values.append(notion.metric(predictions[rows], shards.pooled.rows(rows)))
        else:
            # Who is near stays as it was: the rows' terms are drawn.
            values.append(notion.terms(predictions, shards.pooled)[rows].mean().item())
    reference = torch.tensor(values).std().item()
    assert of(predictions, shards).bias[notion.name].pooled.standard_error == pytest.approx(reference, rel=0.15)


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_an_interval_holds_its_value_and_stays_between_0_and_1(notion: Notion) -> None:
    predictions, shards = federation()
    pooled = of(predictions, shards).bias[notion.name].pooled
    assert 0 <= pooled.low < pooled.value < pooled.high <= 1


@pytest.mark.parametrize(("positive", "certain"), [(53, False), (90, True)])
def test_the_interval_of_a_gap_that_may_be_chance_holds_zero(people, positive: int, certain: bool) -> None:
    predictions, samples = people({(0, 1): (50, 100), (1, 1): (positive, 100)})
    bias = of(predictions, Shards(samples, (200,)), [DemographicParity()], ("a", "b")).bias["demographic_parity"]
    assert (bias.pooled.low > 0) is certain


def test_the_same_generator_gives_the_same_audit_and_another_one_the_same_values() -> None:
    predictions, shards = federation()
    other = audit(predictions, shards, NOTIONS, group_names=NAMES, generator=Seed(1).generator("audit"))
    first = of(predictions, shards)
    assert first == of(predictions, shards)
    for name, bias in first.bias.items():
        assert bias.pooled.value == other.bias[name].pooled.value
        assert bias.pooled.standard_error != other.bias[name].pooled.standard_error


def test_clients_that_cannot_show_a_bias_are_skipped_and_counted(people) -> None:
    predictions, samples = people({(0, 1): (9, 10), (1, 1): (5, 10), (0, 0): (10, 10)})
    bias = of(predictions, Shards(samples, (20, 10)), [DemographicParity()], ("a", "b")).bias["demographic_parity"]
    assert bias.client_mean == bias.weighted_client_mean == bias.worst == pytest.approx(0.4)
    assert (bias.worst_client, bias.skipped) == (0, 1)
    assert math.isnan(bias.by_client[1])


def test_where_no_client_shows_a_bias_there_is_no_worst_one(people) -> None:
    predictions, samples = people({(0, 1): (9, 10), (1, 1): (5, 10)})
    bias = of(predictions, Shards(samples, (10, 10)), [DemographicParity()], ("a", "b")).bias["demographic_parity"]
    assert bias.pooled.value == pytest.approx(0.4)
    assert (bias.worst_client, bias.skipped) == (None, 2)
    assert all(map(math.isnan, (bias.client_mean, bias.weighted_client_mean, bias.worst)))


def test_small_groups_are_not_judged_at_the_clients(people) -> None:
    predictions, samples = people({(0, 1): (50, 100), (1, 1): (60, 99), (2, 1): (0, 1)})
    assert SMALLEST_SHARE > 1 / 200
    bias = of(predictions, Shards(samples, (200,)), [DemographicParity()]).bias["demographic_parity"]
    assert bias.pooled.value == pytest.approx(60 / 99)
    assert bias.client_mean == pytest.approx(60 / 99 - 0.5)


def test_the_table_by_group_by_hand(three_groups) -> None:
    predictions, samples = three_groups
    group = of(predictions, Shards(samples, (70,)), [], NAMES).groups[2]
    assert (group.name, group.rows) == ("c", 30)
    values = {
        "share": 30 / 70,
        "base_rate": 10 / 30,
        "accuracy": (9 + 16) / 30,
        "positive_rate": 13 / 30,
        "true_positive_rate": 9 / 10,
        "false_positive_rate": 4 / 20,
        "precision": 9 / 13,
    }
    assert {name: getattr(group, name).value for name in values} == pytest.approx(values)
    assert group.true_positive_rate.standard_error == pytest.approx(math.sqrt(0.9 * 0.1 / 10))


def test_a_rate_out_of_no_rows_is_unknown_and_not_zero(people) -> None:
    predictions, samples = people({(0, 1): (5, 10), (1, 0): (0, 10)}, groups=3)
    first, second, third = of(predictions, Shards(samples, (20,)), [], NAMES).groups
    assert first.true_positive_rate.value == 0.5
    assert math.isnan(first.false_positive_rate.value)
    assert math.isnan(second.precision.value)
    assert (third.rows, third.share.value) == (0, 0.0)
    assert math.isnan(third.accuracy.value)


def test_the_same_rows_can_be_divided_into_other_groups() -> None:
    predictions, shards = federation()
    halves = (shards.pooled.groups > 0).long()
    alone = of(predictions, divided(shards, halves, group_count=2), names=("a", "not a"))
    merged = replace(shards.pooled, groups=halves, group_count=2)
    assert alone.bias["equalized_odds"].pooled.value == EqualizedOdds().metric(predictions, merged)
    assert [group.rows for group in alone.groups] == torch.bincount(halves).tolist()
    assert alone.bias["consistency"].pooled == of(predictions, shards).bias["consistency"].pooled


def test_more_than_two_labels_are_audited_as_far_as_they_can_be() -> None:
    predictions, shards = federation()
    digits = replace(shards, pooled=replace(shards.pooled, classes=10))
    audited = of(predictions, digits)
    assert audited.left_out == {notion.name: "10 labels" for notion in NOTIONS}
    assert all(math.isnan(bias.pooled.value) and bias.skipped == 3 for bias in audited.bias.values())
    assert audited.accuracy == of(predictions, shards).accuracy
    assert audited.groups[0].accuracy == of(predictions, shards).groups[0].accuracy
    assert math.isnan(audited.groups[0].positive_rate.value)


def test_consistency_is_left_out_where_neighbours_were_not_searched() -> None:
    predictions, shards = federation()
    blind = Shards(replace(shards.pooled, neighbours=None), shards.sizes)
    audited = of(predictions, blind)
    assert audited.left_out == {"consistency": "samples without neighbours"}
    assert audited.bias["equalized_odds"] == of(predictions, shards).bias["equalized_odds"]


def test_a_notion_of_any_other_kind_has_values_but_no_interval() -> None:
    predictions, shards = federation()
    bias = of(predictions, shards, [Unheard()]).bias["unheard"]
    assert bias.pooled.value == pytest.approx(predictions.double().mean().item())
    assert bias.by_client == pytest.approx([part.double().mean().item() for part in predictions.split(shards.sizes)])
    assert math.isnan(bias.pooled.standard_error)


def test_the_long_table_has_every_number_once() -> None:
    predictions, shards = federation()
    audited = of(predictions, shards)
    table = audited.table()
    found = {(row["measure"], row["scope"], row["client"], row["group"]): row["value"] for row in table}
    assert len(found) == len(table) == 1 + 4 * (4 + 3) + 3 * 8
    assert found["accuracy", "pooled", None, None] == audited.accuracy.value
    assert found["equalized_odds", "client", 2, None] == audited.bias["equalized_odds"].by_client[2]
    worst = audited.bias["calibration"]
    assert found["calibration", "worst_client", worst.worst_client, None] == worst.worst
    assert found["precision", "group", None, "b"] == audited.groups[1].precision.value
    assert found["rows", "group", None, "c"] == audited.groups[2].rows
    interval = next(row for row in table if row["measure"] == "consistency" and row["scope"] == "pooled")
    pooled = audited.bias["consistency"].pooled
    assert (interval["low"], interval["high"]) == (pooled.low, pooled.high)
