"""What every aggregation rule must do, today's and later ones."""

import pytest
import torch

from equfl.aggregation.base import Aggregation
from equfl.core.component import known
from equfl.core.random import Seed

RULES = [rule() for rule in known(Aggregation).values()]


def updates(clients: int = 9, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(clients, 6, generator=Seed(0).generator("updates"), dtype=dtype)


def equal_shares(clients: int = 9, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.full((clients,), 1 / clients, dtype=dtype)


@pytest.mark.parametrize("rule", RULES, ids=str)
class TestRule:
    def test_the_order_of_the_clients_does_not_matter(self, rule, context):
        order = torch.randperm(9, generator=Seed(1).generator("order"))
        shares = torch.rand(9, generator=Seed(2).generator("shares"), dtype=torch.float64)
        shares /= shares.sum()
        there, back = rule(updates(), shares, context), rule(updates()[order], shares[order], context)
        torch.testing.assert_close(there, back)

    def test_it_scales_with_its_input(self, rule, context):
        torch.testing.assert_close(
            rule(7 * updates(), equal_shares(), context), 7 * rule(updates(), equal_shares(), context)
        )

    def test_identical_updates_give_that_update(self, rule, context):
        row = updates()[:1]
        torch.testing.assert_close(rule(row.repeat(9, 1), equal_shares(), context), row[0])

    def test_one_client_gives_that_clients_update(self, rule, context):
        torch.testing.assert_close(rule(updates(1), equal_shares(1), context), updates(1)[0])

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_the_precision_of_the_updates_is_kept(self, rule, context, dtype):
        assert rule(updates(dtype=dtype), equal_shares(dtype=dtype), context).dtype == dtype
