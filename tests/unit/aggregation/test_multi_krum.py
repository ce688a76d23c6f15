"""Multi-Krum against Krum as one would write it down, and its distances against the definition."""

import pytest
import torch

from equfl.aggregation._distances import BLOCK, squared_distances, squared_distances_one_by_one
from equfl.aggregation.multi_krum import MultiKrum
from equfl.core.errors import ConfigError
from equfl.core.random import Seed


def rows(clients: int, parameters: int = 40, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(clients, parameters, generator=Seed(clients).generator("rows"), dtype=dtype)


def equal(clients: int) -> torch.Tensor:
    return torch.full((clients,), 1 / clients)


def krum_selection(updates: torch.Tensor, suspected: int, kept: int) -> set[int]:
    """Blanchard et al., line by line."""
    scored = []
    for i, own in enumerate(updates.double()):
        distances = [((own - other) ** 2).sum().item() for j, other in enumerate(updates.double()) if j != i]
        scored.append((sum(sorted(distances)[: len(updates) - suspected - 2]), i))
    return {i for _, i in sorted(scored)[:kept]}


@pytest.mark.parametrize(("clients", "share"), [(5, 0.1), (10, 0.2), (23, 0.3), (51, 0.1), (60, 0.45)])
def test_it_keeps_whom_the_definition_keeps(clients, share, context):
    rule, updates = MultiKrum(share), rows(clients)
    suspected = rule.suspected_of(clients)
    expected = krum_selection(updates, suspected, clients - suspected)
    found = rule(updates, equal(clients), context)
    assert {i for i, kept in enumerate(found.accepted.tolist()) if kept} == expected
    torch.testing.assert_close(found.vector, updates[sorted(expected)].mean(dim=0))


def test_keeping_one_is_krum(context):
    updates = rows(12)
    found = MultiKrum(0.25, keep=1)(updates, equal(12), context)
    (chosen,) = krum_selection(updates, 3, 1)
    assert torch.equal(found.vector, updates[chosen])


@pytest.mark.parametrize("clients", [2, 51, BLOCK + 30])
@pytest.mark.parametrize("common", [0.0, 1000.0])
def test_distances_by_products_agree_with_distances_one_by_one(clients, common):
    updates = rows(clients) + common
    fast, slow = squared_distances(updates).double(), squared_distances_one_by_one(updates)
    unit = slow.sum() / fast.sum()
    torch.testing.assert_close(fast * unit, slow, rtol=1e-4, atol=1e-6 * slow.max().item())


def test_a_row_that_is_too_far_off_to_say_is_infinitely_far_and_spoils_no_other_distance():
    updates = rows(9)
    spoilt = torch.cat([updates, torch.full((1, 40), 1e30), torch.full((1, 40), -1e30)])
    alone, beside = squared_distances(updates), squared_distances(spoilt)
    assert not beside.isnan().any()
    assert beside[9, :9].isinf().all()
    torch.testing.assert_close(beside[:9, :9] / beside[0, 1], alone / alone[0, 1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("clients", "suspected"), [(51, 5), (9, 1), (10, 1), (100, 10)])
def test_the_formula_suspects_a_tenth_and_at_least_one(clients, suspected):
    assert MultiKrum().suspected_of(clients) == suspected
    assert MultiKrum().needs(clients) == 2 * suspected + 3


@pytest.mark.parametrize(("clients", "lowered"), [(1, 0), (2, 0), (3, 0), (4, 0), (5, 1), (8, 2)])
def test_with_fewer_clients_than_it_needs_it_suspects_fewer_and_says_how_many(clients, lowered, context):
    rule = MultiKrum(0.4)
    found = rule(rows(clients), equal(clients), context)
    assert found.diagnostics == {"suspected": min(lowered, rule.suspected_of(clients))}
    assert found.accepted.sum() == clients - found.diagnostics["suspected"]


@pytest.mark.parametrize("settings", [{"suspect_share": 0.5}, {"suspect_share": -0.1}, {"keep": 0}])
def test_settings_outside_their_range_are_refused(settings):
    with pytest.raises(ConfigError, match=f"aggregation.{next(iter(settings))}"):
        MultiKrum(**settings)
