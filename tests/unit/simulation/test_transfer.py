from dataclasses import replace
from math import isnan

import pytest
import torch

from equfl.core.protocol import ServerState
from equfl.core.random import Seed
from equfl.core.samples import Samples
from equfl.data.toy import Toy
from equfl.fairness.consistency import Consistency
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.models.mlp import MLP
from equfl.simulation.transfer import NEAR, Transfer, transfer

TOY = Toy(clients=2, rows=300).load()
REAL = TOY.train.pooled
NETWORK = MLP(()).network((7,), 2)


def state(weights: list[float], rows: Samples | None = None) -> ServerState:
    """A linear model with these weights for the positive class, on a server that remembers these rows."""
    vector = torch.cat([torch.zeros(7), torch.tensor(weights), torch.zeros(2)])
    memory = (
        {} if rows is None else {f"synthetic/{name}": getattr(rows, name) for name in ("inputs", "labels", "groups")}
    )
    return ServerState(10, vector, {}, memory)


UNFAIR = [2.0, 1.0, 0.0, 0.0, 0.0, -1.0, 1.0]
FAIRER = [2.0, 1.0, 0.0, 0.0, 0.0, -0.2, 0.2]


def measured(rows, target=None, after=FAIRER, real=REAL):
    return transfer(
        NETWORK,
        state(UNFAIR),
        state(after, rows),
        real,
        target or DemographicParity(),
        TOY.schema,
        Seed(0).generator("transfer"),
    )


@pytest.mark.parametrize("target", [EqualizedOdds(), DemographicParity()], ids=str)
def test_the_clients_own_rows_transfer_everything(target):
    found = measured(REAL, target)[target.name]
    assert found.synthetic_before == found.real_before > found.real_after == found.synthetic_after
    assert found.ratio == 1
    assert found.cosine_of_losses == pytest.approx(1, abs=1e-5)
    assert found.cosine_of_rates == pytest.approx(1, abs=1e-5)


def test_rows_on_which_the_other_group_is_favoured_pull_the_other_way():
    unskilled = REAL.inputs.clone()
    unskilled[:, 0] -= 3.0 * REAL.groups
    assert measured(replace(REAL, inputs=unskilled))["demographic_parity"].cosine_of_rates < 0


def test_the_biases_are_the_notions_own_on_both_kinds_of_rows():
    few = REAL.rows(slice(0, 100))
    found = measured(few)["demographic_parity"]
    for vector, name in ((UNFAIR, "before"), (FAIRER, "after")):
        for rows, kind in ((few, "synthetic"), (REAL, "real")):
            predictions = (rows.inputs @ torch.tensor(vector) > 0).long()
            assert getattr(found, f"{kind}_{name}") == pytest.approx(DemographicParity().metric(predictions, rows))
    expected = (found.real_before - found.real_after) / (found.synthetic_before - found.synthetic_after)
    assert found.ratio == expected


def test_where_nothing_was_closed_there_is_no_ratio():
    assert isnan(measured(REAL, after=UNFAIR)["demographic_parity"].ratio)
    assert isnan(Transfer(0.2, 0.1995, 0.2, 0.1, 1.0, 1.0).ratio)
    assert Transfer(0.2, 0.1, 0.2, 0.15, 1.0, 1.0).ratio == pytest.approx(0.5)


def test_consistency_is_measured_among_as_many_rows_as_can_be_searched():
    many = Toy(clients=2, rows=NEAR).load().train.pooled
    assert len(many) > NEAR
    found = measured(REAL, Consistency(), real=many)["consistency"]
    assert 0 < found.real_before < 1
    assert -1 <= found.cosine_of_losses <= 1
    assert isnan(found.cosine_of_rates)


def test_a_server_without_rows_has_nothing_to_transfer():
    assert measured(None) == {}


def test_a_notion_that_the_rows_cannot_show_is_unknown():
    one = replace(REAL, groups=torch.zeros_like(REAL.groups))
    found = measured(REAL, real=one)["demographic_parity"]
    assert isnan(found.real_before)
    assert isnan(found.ratio)
    assert isnan(found.cosine_of_rates)
