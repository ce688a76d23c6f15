"""Every method on top of every rule: the rule sees the clients' updates, all of them, and nothing else."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from equfl.aggregation.base import Aggregated, Aggregation
from equfl.aggregation.mean import Mean
from equfl.core.component import known
from equfl.core.errors import ConfigError
from equfl.data.toy import Toy
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.methods.base import Method, check_pair
from equfl.models.mlp import MLP
from equfl.simulation import loop
from equfl.simulation.engines.serial import Serial
from equfl.synthesis.trajectory_matching import TrajectoryMatching
from equfl.training.sgd import SGD

ROUNDS, ROWS = 4, 24
METHODS = list(known(Method).values())
RULES = [rule() for rule in known(Aggregation).values()]


def quick(cls: type[Method]) -> Method:
    """The method as it is, but for a synthesis that takes no time."""
    method = cls()
    if hasattr(method, "synthesis"):
        return replace(method, synthesis=TrajectoryMatching(samples=16, iterations=3, match_steps=1))
    return method


@dataclass(frozen=True)
class Watched(Aggregation):
    """A rule, and all that it was ever given."""

    rule: Aggregation
    seen: Any

    name = "watched"

    def __call__(self, updates, shares, context) -> Aggregated:
        self.seen.append(updates.clone())
        return self.rule(updates, shares, context)


@dataclass(frozen=True)
class Nobody(Aggregation):
    """A rule that accepts no update."""

    name = "nobody"

    def __call__(self, updates, shares, context) -> Aggregated:
        return Aggregated(torch.zeros_like(updates[0]), torch.zeros(len(updates), dtype=torch.bool))


@dataclass(frozen=True)
class OneBroken(SGD):
    """Training after which the smallest client's model is NaN."""

    def train(self, vector, buffers, samples, **rest):
        trained, after = super().train(vector, buffers, samples, **rest)
        return (torch.full_like(trained, torch.nan) if len(samples) == ROWS else trained), after


def run(method: Method, rule: Aggregation, **settings: Any) -> list[Any]:
    return list(
        loop.simulate(
            Toy(clients=6, rows=ROWS, spread=0.5).load(),
            method=method,
            target=EqualizedOdds(),
            notions=[],
            model=MLP((3,)),
            aggregation=rule,
            engine=Serial(),
            rounds=ROUNDS,
            **{"training": SGD(batch_size=12), **settings},
        )
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("cls", METHODS, ids=lambda cls: cls.name)
def test_the_rule_is_given_exactly_the_clients_updates(cls, rule, monkeypatch):
    sent, seen = [], []

    def gather(*given, **more):
        cohort = gathering(*given, **more)
        sent.append(cohort.updates)
        return cohort

    gathering = loop.gather
    monkeypatch.setattr(loop, "gather", gather)
    method = quick(cls)
    if method.aggregates_itself:
        if rule.name != "mean":
            with pytest.raises(ConfigError, match="itself one"):
                check_pair(method, rule)
            return
        monkeypatch.setattr(type(rule), "__call__", lambda *given: seen.append(given))
        run(method, rule)
        assert seen == [], "a method that is itself a rule asks no other"
        return
    rounds = run(method, Watched(rule, seen))
    assert len(sent) == len(seen) == ROUNDS
    assert all(torch.equal(a, b) for a, b in zip(sent, seen, strict=True))
    assert rounds[-1][1].vector.isfinite().all()


@pytest.mark.parametrize("cls", METHODS, ids=lambda cls: cls.name)
def test_every_method_goes_on_without_a_client_whose_update_is_not_finite(cls):
    rounds = run(quick(cls), Mean(), training=OneBroken(batch_size=12))
    assert all(record.clients["not_finite"] == 1 and record.rejected == (0,) for record, _ in rounds)
    assert rounds[-1][1].vector.isfinite().all()


@pytest.mark.parametrize("cls", [cls for cls in METHODS if not cls.aggregates_itself], ids=lambda cls: cls.name)
def test_every_method_bears_a_rule_that_accepts_nobody(cls):
    rounds = run(quick(cls), Nobody())
    assert all(record.clients["rejected"] == 6 and record.clients["idle"] == 1 for record, _ in rounds)
    assert torch.equal(rounds[0][1].vector, rounds[1][1].vector), "before anything is calibrated, nothing moves"
    assert rounds[-1][1].vector.isfinite().all()
