"""What every aggregation rule must do, today's and later ones."""

from pathlib import Path

import pytest
import torch

import equfl
from equfl.aggregation.base import Aggregation
from equfl.core.component import known
from equfl.core.errors import ConfigError
from equfl.core.random import Seed
from equfl.models.mlp import MLP

RULES = [rule() for rule in known(Aggregation).values()]
CLIENTS = 11

NETWORK = MLP((4,)).network((3,), 2)
PARAMETERS = NETWORK.layout.size

MOVES = [rule for rule in RULES if rule.name not in ("norm_clipping", "deepsight")]
"""Rules that follow a shift of all updates; those that bound lengths cannot."""
SCALES = [rule for rule in RULES if rule.name != "deepsight"]
"""Rules that follow a change of unit; one that runs the clients' models sees other models then."""
ROBUST = [rule for rule in RULES if rule.name != "mean"]


def updates(clients: int = CLIENTS, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    common = torch.randn(PARAMETERS, generator=Seed(0).generator("common"), dtype=dtype)
    return common + 0.5 * torch.randn(clients, PARAMETERS, generator=Seed(0).generator("updates"), dtype=dtype)


def equal_shares(clients: int = CLIENTS, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.full((clients,), 1 / clients, dtype=dtype)


def unequal_shares(clients: int = CLIENTS) -> torch.Tensor:
    shares = torch.rand(clients, generator=Seed(2).generator("shares"), dtype=torch.float64)
    return shares / shares.sum()


@pytest.mark.parametrize("rule", RULES, ids=str)
class TestRule:
    def test_the_order_of_the_clients_does_not_matter(self, rule, context):
        order = torch.randperm(CLIENTS, generator=Seed(1).generator("order"))
        shares = unequal_shares()
        there, back = rule(updates(), shares, context), rule(updates()[order], shares[order], context)
        torch.testing.assert_close(there.vector, back.vector)
        if there.accepted is not None:
            assert torch.equal(there.accepted[order], back.accepted)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_identical_updates_give_that_update(self, rule, context, dtype):
        row = updates(1, dtype)
        found = rule(row.repeat(CLIENTS, 1), equal_shares(dtype=dtype), context).vector
        torch.testing.assert_close(found, row[0])

    @pytest.mark.parametrize("clients", [1, 2, 3, 4])
    def test_few_clients_give_an_update_between_theirs(self, rule, context, clients):
        rows = updates(clients)
        found = rule(rows, equal_shares(clients), context).vector
        assert (found.abs() <= rows.abs().amax(dim=0) + 1e-12).all()
        if clients == 1:
            torch.testing.assert_close(found, rows[0])

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_the_precision_of_the_updates_is_kept(self, rule, context, dtype):
        assert rule(updates(dtype=dtype), equal_shares(dtype=dtype), context).vector.dtype == dtype

    def test_single_precision_says_what_double_precision_says(self, rule, context):
        single = rule(updates().float(), equal_shares().float(), context)
        double = rule(updates().float().double(), equal_shares(), context)
        torch.testing.assert_close(single.vector.double(), double.vector, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("value", [0.0, 1e-30, 1e15])
    def test_updates_of_any_size_give_a_finite_update(self, rule, context, value):
        rows = torch.full((CLIENTS, PARAMETERS), value) + value * updates().float()
        assert rule(rows, equal_shares(dtype=torch.float32), context).vector.isfinite().all()

    def test_the_updates_are_left_as_they_are(self, rule, context):
        rows, shares = updates(), unequal_shares()
        rule(rows, shares, context)
        assert torch.equal(rows, updates())
        assert torch.equal(shares, unequal_shares())

    def test_the_same_round_gives_the_same_bits(self, rule, context):
        first, again = (rule(updates(), unequal_shares(), context) for _ in range(2))
        assert torch.equal(first.vector, again.vector)
        assert first.diagnostics == again.diagnostics

    def test_it_uses_the_shares_if_it_says_so_and_only_then(self, rule, context):
        equal, unequal = (rule(updates(), shares, context).vector for shares in (equal_shares(), unequal_shares()))
        assert torch.allclose(equal, unequal) != rule.uses_shares

    def test_what_it_tells_are_numbers_and_who_was_accepted(self, rule, context):
        told = rule(updates(), equal_shares(), context)
        assert all(isinstance(value, float) for value in told.diagnostics.values())
        assert told.accepted is None or (told.accepted.dtype, told.accepted.shape) == (torch.bool, (CLIENTS,))

    def test_a_rule_that_needs_sums_only_is_a_sum_over_the_clients(self, rule, context):
        if not rule.sums_only:
            pytest.skip("needs single updates")
        whole = rule(updates(), unequal_shares(), context).vector
        halves = [rule(updates()[part], unequal_shares()[part], context).vector for part in (slice(5), slice(5, None))]
        torch.testing.assert_close(whole, sum(halves))

    def test_it_is_content_with_many_clients_and_refuses_too_few_before_the_start(self, rule):
        rule.check(100, NETWORK)
        if rule.needs(1) > 1:
            with pytest.raises(ConfigError, match="with 1 participant in a round; wanted at least"):
                rule.check(1, NETWORK)


@pytest.mark.parametrize("rule", SCALES, ids=str)
def test_it_scales_with_its_input(rule, context):
    torch.testing.assert_close(
        rule(7 * updates(), unequal_shares(), context).vector, 7 * rule(updates(), unequal_shares(), context).vector
    )


@pytest.mark.parametrize("rule", MOVES, ids=str)
def test_it_moves_with_its_input(rule, context):
    torch.testing.assert_close(
        rule(updates() + 3, unequal_shares(), context).vector, rule(updates(), unequal_shares(), context).vector + 3
    )


@pytest.mark.parametrize("liars", [1, 2])
@pytest.mark.parametrize("times", [100.0, -100.0, 1e30])
@pytest.mark.parametrize("rule", ROBUST, ids=str)
def test_a_client_that_is_far_off_is_outvoted(rule, context, times, liars):
    if liars > 1 and not rule.needs(CLIENTS) <= CLIENTS:
        pytest.skip("one is all that it can bear")
    rows = updates(31).float()
    honest = rule(rows[liars:], equal_shares(31 - liars).float(), context).vector
    rows[:liars] = times * (1 + rows[:liars])
    found = rule(rows, equal_shares(31).float(), context).vector
    assert (found - honest).norm() < 0.3 * honest.norm()


def test_the_mean_is_not_robust(context):
    rows = updates(31)
    rows[0] *= 100
    (mean,) = (rule for rule in RULES if rule.name == "mean")
    assert (mean(rows, equal_shares(31), context).vector - rows[1:].mean(dim=0)).norm() > rows[1].norm()


def test_the_readme_names_every_rule():
    readme = (Path(equfl.__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert all(f"| `{rule.name}` |" in readme for rule in RULES)
