"""What every notion of fairness must do, today's and later ones."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import one_hot

from equfl.core.component import known
from equfl.core.random import Seed
from equfl.core.samples import Samples, Shards
from equfl.fairness.base import GroupNotion, Notion, RowNotion
from equfl.fairness.counts import count, count_by_client
from equfl.fairness.neighbours import nearest

NOTIONS = [notion() for notion in known(Notion).values()]
GROUP_NOTIONS = [notion for notion in NOTIONS if isinstance(notion, GroupNotion)]
ROW_NOTIONS = [notion for notion in NOTIONS if isinstance(notion, RowNotion)]
GROUPS = 3


def draw(seed: int = 0, rows: int = 150) -> tuple[torch.Tensor, Samples]:
    """Logits and samples in which every cell has rows and no two rows are the same."""
    draws = Seed(seed).generator("rows")
    inputs = torch.randn(rows, 4, generator=draws, dtype=torch.float64)
    groups = torch.arange(rows) % GROUPS
    labels = (inputs[:, 0] + 0.3 * groups + torch.randn(rows, generator=draws) > 0.3).long()
    logits = torch.randn(rows, 2, generator=draws, dtype=torch.float64) + inputs[:, :2]
    return logits, Samples(inputs, labels, groups, group_count=GROUPS, neighbours=nearest(inputs))


def searched(samples: Samples) -> Samples:
    """With neighbours, after rows were moved."""
    return replace(samples, neighbours=nearest(samples.inputs))


def alike() -> tuple[torch.Tensor, Samples]:
    """Four clusters, one per label and prediction; in each, every group has the same rows and the same logits."""
    places = torch.tensor([[0.0, 0.0], [0.0, 50.0], [50.0, 0.0], [50.0, 50.0]], dtype=torch.float64)
    near = torch.arange(5.0).repeat_interleave(GROUPS).repeat(4)
    cluster = torch.arange(4).repeat_interleave(5 * GROUPS)
    inputs = places[cluster] + near.double().unsqueeze(1)
    logits = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)[cluster // 2]
    samples = Samples(inputs, cluster % 2, torch.arange(GROUPS).repeat(20), group_count=GROUPS)
    return logits, searched(samples)


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
class TestNotion:
    def test_it_is_0_when_the_groups_are_alike_and_so_is_its_loss(self, notion):
        logits, samples = alike()
        assert notion.metric(logits.argmax(dim=1), samples) == pytest.approx(0, abs=1e-12)
        assert notion.loss(logits, samples).item() == pytest.approx(0, abs=1e-12)

    @pytest.mark.parametrize("seed", range(20))
    def test_the_metric_lies_between_0_and_1(self, notion, seed):
        logits, samples = draw(seed)
        assert 0 <= notion.metric(logits.argmax(dim=1), samples) <= 1

    def test_a_model_that_looks_at_the_group_and_nothing_else_is_biased(self, notion):
        _, samples = draw()
        assert notion.metric((samples.groups == 1).long() | samples.labels * (samples.groups == 2), samples) > 0.1

    def test_the_names_of_the_groups_do_not_matter(self, notion):
        logits, samples = draw()
        renamed = replace(samples, groups=torch.tensor([2, 0, 1])[samples.groups])
        predictions = logits.argmax(dim=1)
        assert notion.metric(predictions, renamed) == pytest.approx(notion.metric(predictions, samples))
        torch.testing.assert_close(notion.loss(logits, renamed), notion.loss(logits, samples))

    def test_the_order_of_the_rows_does_not_matter(self, notion):
        logits, samples = draw()
        order = torch.randperm(len(samples), generator=Seed(1).generator("order"))
        moved = searched(samples.rows(order))
        predictions = logits.argmax(dim=1)
        assert notion.metric(predictions[order], moved) == pytest.approx(notion.metric(predictions, samples))
        torch.testing.assert_close(notion.loss(logits[order], moved), notion.loss(logits, samples))

    def test_hard_labels_and_groups_agree_with_the_same_as_memberships(self, notion):
        logits, samples = draw()
        soft = replace(
            samples, labels=one_hot(samples.labels, 2).double(), groups=one_hot(samples.groups, GROUPS).double()
        )
        predictions = logits.argmax(dim=1)
        assert notion.metric(predictions, soft) == pytest.approx(notion.metric(predictions, samples))
        torch.testing.assert_close(notion.loss(logits, soft), notion.loss(logits, samples))

    def test_a_declared_group_without_rows_changes_nothing(self, notion):
        logits, samples = draw()
        wider = replace(samples, group_count=GROUPS + 2)
        predictions = logits.argmax(dim=1)
        assert notion.metric(predictions, wider) == pytest.approx(notion.metric(predictions, samples))
        torch.testing.assert_close(notion.loss(logits, wider), notion.loss(logits, samples))

    def test_the_loss_has_a_finite_gradient_that_is_not_zero(self, notion):
        logits, samples = draw()
        logits.requires_grad_()
        notion.loss(logits, samples).backward()
        assert logits.grad.isfinite().all()
        assert logits.grad.abs().max() > 0

    def test_the_gradient_is_finite_with_empty_cells_and_very_sure_models(self, notion):
        logits, samples = draw()
        rows = (samples.groups != 1) | (samples.labels != 1)
        few = searched(samples.rows(rows))
        sure = (200 * logits[rows]).detach().requires_grad_()
        loss = notion.loss(sure, few)
        loss.backward()
        assert loss.isfinite()
        assert sure.grad.isfinite().all()

    @pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
    def test_a_small_step_against_the_gradient_lowers_the_loss(self, notion, soft):
        _, samples = draw()
        if soft:
            draws = Seed(2).generator("memberships")
            labels, groups = (torch.randn(len(samples), n, generator=draws).double().softmax(1) for n in (2, GROUPS))
            samples = replace(samples, labels=labels, groups=groups)
        weights = torch.randn(4, 2, generator=Seed(3).generator("weights"), dtype=torch.float64, requires_grad=True)
        loss = notion.loss(samples.inputs @ weights, samples)
        (slope,) = torch.autograd.grad(loss, weights)
        assert notion.loss(samples.inputs @ (weights - 1e-4 * slope), samples) < loss

    def test_the_clients_values_are_the_metric_of_each_client(self, notion):
        logits, samples = draw()
        predictions, sizes = logits.argmax(dim=1), (70, 50, 30)
        own = torch.cat([nearest(part) for part in samples.inputs.split(sizes)])
        shards = Shards(samples, sizes, own)
        expected = [notion.metric(part, shard) for part, shard in zip(predictions.split(sizes), shards, strict=True)]
        assert notion.by_client(predictions, shards).tolist() == pytest.approx(expected)

    def test_it_has_a_symbol_for_tables(self, notion):
        assert notion.symbol.isupper()
        assert 2 <= len(notion.symbol) <= 4


@pytest.mark.parametrize("notion", GROUP_NOTIONS, ids=str)
class TestGroupNotion:
    def test_rows_of_one_group_show_nothing(self, notion):
        logits, samples = draw()
        alone = samples.rows(samples.groups == 1)
        assert math.isnan(notion.metric(logits.argmax(dim=1)[samples.groups == 1], alone))

    def test_no_rows_show_nothing(self, notion):
        assert math.isnan(notion.bias(torch.zeros(2, 2, GROUPS)).item())

    def test_many_tables_at_once_are_each_judged_alone(self, notion):
        logits, samples = draw()
        predictions = logits.argmax(dim=1)
        tables = count_by_client(predictions, Shards(samples, (60, 50, 40)))
        alone = torch.stack([notion.bias(table, min_group_share=0.3) for table in tables])
        torch.testing.assert_close(notion.bias(tables, min_group_share=0.3), alone, equal_nan=True)

    def test_groups_below_the_smallest_share_are_not_judged(self, notion):
        logits, samples = draw()
        table = count(logits.argmax(dim=1), samples)
        assert math.isnan(notion.bias(table, min_group_share=0.9).item())
        assert notion.bias(table, min_group_share=0.1) == notion.bias(table)


@pytest.mark.parametrize("notion", ROW_NOTIONS, ids=str)
class TestRowNotion:
    def test_the_metric_is_the_mean_of_the_rows_terms(self, notion):
        logits, samples = draw()
        predictions = logits.argmax(dim=1)
        mean = notion.terms(predictions, samples).mean().item()
        assert notion.metric(predictions, samples) == pytest.approx(mean)

    def test_one_row_shows_nothing(self, notion):
        _, samples = draw()
        assert math.isnan(notion.metric(torch.tensor([1]), searched(samples.rows(slice(0, 1)))))
