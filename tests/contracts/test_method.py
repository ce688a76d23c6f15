"""What every method must do, today's and later ones: a round is a pure function of the state before it."""

import contextlib
from dataclasses import replace

import pytest
import torch

from equfl.aggregation.mean import Mean
from equfl.core.component import known
from equfl.core.errors import ConfigError
from equfl.core.samples import concatenate
from equfl.data.base import Federation
from equfl.data.toy import Toy
from equfl.fairness.base import Notion
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.methods.base import Method
from equfl.methods.equfl import EquFL
from equfl.methods.equfl_feedback import EquFLFeedback
from equfl.methods.fairfed import FairFed
from equfl.methods.fedavg import FedAvg
from equfl.methods.fedfb import FedFB
from equfl.methods.flinear import FLinear
from equfl.methods.reweight import Reweight
from equfl.models.mlp import MLP
from equfl.simulation.engines.base import Engine
from equfl.simulation.engines.batched import Batched
from equfl.simulation.engines.serial import Serial
from equfl.simulation.loop import simulate
from equfl.synthesis.trajectory_matching import TrajectoryMatching
from equfl.training.sgd import SGD

ROUNDS = 8


def quick(method: type[Method]) -> Method:
    """The method as it is, but for a synthesis that takes no time."""
    default = method()
    if hasattr(default, "synthesis"):
        return replace(default, synthesis=TrajectoryMatching(samples=16, iterations=3, match_steps=2))
    return default


METHODS = [quick(method) for method in known(Method).values()]
VARIANTS = [
    Reweight(scope="global"),
    FLinear(scope="global"),
    FedFB(statistic="zero_one"),
    FairFed(form="exp"),
    replace(quick(EquFLFeedback), least_clients=3),
    replace(quick(EquFL), collect="discrete", collect_models=3),
]
"""Settings with which other things leave the client, or other state is kept."""


def run(method: Method, target: Notion | None = None, engine: Engine | None = None, federation=None, **settings):
    return list(
        simulate(
            federation or Toy(clients=3, rows=40, spread=0.5).load(),
            method=method,
            target=target or EqualizedOdds(),
            notions=[EqualizedOdds()],
            model=MLP((4,)),
            training=SGD(batch_size=16),
            aggregation=Mean(),
            engine=engine or Serial(),
            rounds=ROUNDS,
            **settings,
        )
    )


@pytest.mark.parametrize("method", [*METHODS, *VARIANTS], ids=str)
class TestMethod:
    def test_the_same_seed_gives_the_same_run_and_another_seed_another(self, method):
        first, again, other = run(method), run(method), run(method, seed=1)
        assert torch.equal(first[-1][1].vector, again[-1][1].vector)
        assert [record for record, _ in first] == [record for record, _ in again]
        assert not torch.equal(first[-1][1].vector, other[-1][1].vector)

    def test_going_on_from_any_round_ends_where_the_undisturbed_run_ended(self, method):
        undisturbed = run(method)
        for stop in range(ROUNDS):
            rest = run(method, state=undisturbed[stop][1])
            assert [record for record, _ in rest] == [record for record, _ in undisturbed[stop + 1 :]]
            final = (rest or undisturbed)[-1][1]
            assert torch.equal(final.vector, undisturbed[-1][1].vector)
            assert all(torch.equal(value, undisturbed[-1][1].memory[name]) for name, value in final.memory.items())

    def test_the_rounds_it_shares_with_fedavg_are_fedavgs(self, method):
        shared = method.shared_rounds(ROUNDS)
        ours, fedavg = run(method)[:shared], run(FedAvg())[:shared]
        assert all(torch.equal(a.vector, b.vector) for (_, a), (_, b) in zip(ours, fedavg, strict=True))

    def test_the_run_ends_with_a_finite_model(self, method):
        assert run(method)[-1][1].vector.isfinite().all()

    @pytest.mark.parametrize("alone", [{1}, {0, 1, 2}], ids=["one client", "every client"])
    def test_clients_without_the_second_group_are_borne_and_counted(self, method, alone):
        federation = without_second_group(alone)
        records = run(method, federation=federation)
        assert records[-1][1].vector.isfinite().all()
        assert {record.clients["one_group"] for record, _ in records} == {len(alone)}
        nobody = len(alone) == len(federation.train)
        assert {record.clients.get("groups_without_rows", 0) for record, _ in records} == {float(nobody)}

    @pytest.mark.parametrize("target", [notion() for notion in known(Notion).values()], ids=str)
    def test_every_notion_can_be_its_target_or_is_refused_with_the_reason(self, method, target):
        if has_form(method, target):
            assert run(method, target)[-1][1].vector.isfinite().all()
        else:
            with pytest.raises(ConfigError, match=f"method = {method.name} with target = {target.name}; wanted .*"):
                run(method, target)

    def test_it_can_be_trained_by_the_fast_engine_as_by_the_readable_one(self, method):
        fast, plain = run(method, engine=Batched())[-1][1], run(method)[-1][1]
        torch.testing.assert_close(fast.vector, plain.vector, rtol=1e-3, atol=1e-4)

    def test_nothing_leaves_a_client_but_what_is_declared(self, method, monkeypatch):
        surveys, reports = Watched(type(method).survey), Watched(type(method).report)
        monkeypatch.setattr(type(method), "survey", surveys)
        monkeypatch.setattr(type(method), "report", reports)
        vector = run(method)[-1][1].vector
        sizes = {"parameters": len(vector), "inputs": 7, "labels": 2, "groups": 2}
        sizes |= {name: value for name, value in vars(method).items() if isinstance(value, int)}
        declared = {one.name: one for one in method.leaves()}
        assert len(declared) == len(method.leaves())
        assert declared.pop("update").dimensions(sizes) == vector.shape
        assert declared.pop("rows").dimensions(sizes) == ()
        for answers, when in ((surveys.answers, ("once",)), (reports.answers, ("each round", "when asked"))):
            wanted = {one.name: one.dimensions(sizes) for one in declared.values() if one.when in when}
            sent = {name: tuple(value.shape) for answer in answers for name, value in answer.items()}
            assert sent == wanted
        constant = {one.name for one in declared.values() if one.when == "each round"}
        assert all(constant <= set(answer) for answer in reports.answers)

    def test_where_the_server_sees_only_sums_it_ends_with_the_same_model_or_is_refused_with_the_reason(self, method):
        if all(one.only_sum for one in method.leaves()):
            secret, plain = run(method, secure_sum=True)[-1][1], run(method)[-1][1]
            torch.testing.assert_close(secret.vector, plain.vector, rtol=1e-4, atol=1e-5)
        else:
            with pytest.raises(ConfigError, match=f"secure_sum with method = {method.name}, which must see each"):
                run(method, secure_sum=True)

    def test_what_needs_only_sums_is_given_nothing_else(self, method, monkeypatch):
        if not all(one.only_sum for one in method.leaves()):
            return
        seen = []
        step = type(method).step
        monkeypatch.setattr(type(method), "step", lambda self, *given: (seen.append(given[1]), step(self, *given))[1])
        run(method, secure_sum=True)
        assert len(seen) == ROUNDS
        for cohort in seen:
            assert len(cohort.updates) == len(cohort.shares) == 1
            assert all(len(values) == 1 for values in cohort.reports.values())


def without_second_group(alone: set[int]) -> Federation:
    """The federation, where the training rows of these clients are all of the first group."""
    federation = Toy(clients=3, rows=40, spread=0.5).load()
    clients = [
        replace(samples, groups=torch.zeros_like(samples.groups)) if client in alone else samples
        for client, samples in enumerate(federation.train)
    ]
    return replace(federation, train=concatenate(clients))


def has_form(method: Method, target: Notion) -> bool:
    with contextlib.suppress(ConfigError):
        method.check(target)
        return True
    return False


class Watched:
    """A hook that keeps what it returned."""

    def __init__(self, hook):
        self.hook, self.answers = hook, []

    def __get__(self, method, kind=None):
        def call(*given, **named):
            self.answers.append(self.hook(method, *given, **named))
            return self.answers[-1]

        return call
