from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import pytest
import torch

from equfl.aggregation.base import Aggregated, Aggregation
from equfl.aggregation.mean import Mean
from equfl.core.errors import CohortError, ConfigError
from equfl.core.random import Seed
from equfl.core.samples import concatenate
from equfl.data.toy import Toy
from equfl.fairness.demographic_parity import DemographicParity
from equfl.methods.fedavg import FedAvg
from equfl.models.mlp import MLP
from equfl.simulation.engines.serial import Serial
from equfl.simulation.loop import participants, simulate
from equfl.training.sgd import SGD


def run(federation=None, **settings):
    defaults = {
        "method": FedAvg(),
        "target": DemographicParity(),
        "notions": [DemographicParity()],
        "model": MLP((4,)),
        "training": SGD(batch_size=16),
        "aggregation": Mean(),
        "engine": Serial(),
        "rounds": 4,
    }
    return list(simulate(federation or Toy(clients=3, rows=40, spread=1.0).load(), **(defaults | settings)))


def test_with_the_mean_a_round_is_the_weighted_average_of_the_local_models():
    federation = Toy(clients=3, rows=40, spread=1.0).load()
    (_, before), (_, after) = run(federation, rounds=2)
    network = MLP((4,)).network(federation.schema.shape, 2)
    locals_ = [
        SGD(batch_size=16).train(
            before.vector,
            {},
            samples,
            network=network,
            objective=lambda logits, batch: FedAvg().objective(logits, batch, {}, DemographicParity()),
            generator=partial(Seed(0).generator, round=2, client=client),
        )[0]
        for client, samples in enumerate(federation.train)
    ]
    shares = torch.tensor(federation.train.sizes) / sum(federation.train.sizes)
    torch.testing.assert_close(after.vector, shares @ torch.stack(locals_), rtol=1e-5, atol=1e-6)


def test_training_finds_the_planted_law_and_its_planted_bias():
    last, _ = run(Toy().load(), rounds=30)[-1]
    assert last.evaluation["accuracy"] > 0.8
    assert last.evaluation["demographic_parity/pooled"] > 0.2


def test_a_share_of_the_clients_is_another_one_each_round_and_known_from_the_seed():
    chosen = [participants(20, 0.3, Seed(0).generator("participants", round=number)) for number in range(4)]
    assert all(len(ids) == 6 and list(ids) == sorted(set(ids)) for ids in chosen)
    assert len(set(chosen)) == 4
    assert chosen[2] == participants(20, 0.3, Seed(0).generator("participants", round=2))


@pytest.mark.parametrize(("participation", "expected"), [(1.0, 3), (0.5, 2), (0.01, 1)])
def test_the_number_of_participants_is_recorded_and_never_nobody(participation, expected):
    assert {record.participants for record, _ in run(participation=participation)} == {expected}


def test_evaluation_can_be_rarer_but_the_last_round_always_has_it():
    records = [record for record, _ in run(rounds=5, evaluate_every=2)]
    assert [bool(record.evaluation) for record in records] == [False, True, False, True, True]


def test_with_secure_sums_fedavg_is_what_it_was_and_a_rule_that_judges_clients_is_refused():
    plain, secret = run(), run(secure_sum=True)
    torch.testing.assert_close(secret[-1][1].vector, plain[-1][1].vector, rtol=1e-6, atol=1e-7)
    assert [record.participants for record, _ in secret] == [record.participants for record, _ in plain]

    with pytest.raises(ConfigError, match="secure_sum with aggregation = judging, which must see each client's update"):
        run(aggregation=Judging(), secure_sum=True)


@dataclass(frozen=True)
class Judging(Mean):
    name = "judging"
    sums_only = False


def test_the_loop_yields_each_round_before_it_computes_the_next():
    rounds = simulate(
        Toy(clients=2, rows=20).load(),
        method=FedAvg(),
        target=DemographicParity(),
        notions=[],
        model=MLP(()),
        training=SGD(),
        aggregation=Mean(),
        engine=Serial(),
        rounds=10**9,
    )
    record, state = next(rounds)
    assert (record.round, state.round) == (1, 1)


@dataclass(frozen=True)
class Breaking(SGD):
    """Gives back NaN from the clients with this many rows, as a broken client would."""

    sizes: tuple[int, ...] = ()

    def train(self, vector, buffers, samples, **rest):
        trained, after = super().train(vector, buffers, samples, **rest)
        return (torch.full_like(trained, float("nan")) if len(samples) in self.sizes else trained), after


@dataclass(frozen=True)
class Nobody(Aggregation):
    """Accepts no update."""

    name = "nobody"

    def __call__(self, updates, shares, context):
        return Aggregated(torch.zeros_like(updates[0]), torch.zeros(len(updates), dtype=torch.bool))


@dataclass(frozen=True)
class Choosy(Aggregation):
    """Accepts the first update only, and needs four clients."""

    name = "choosy"

    def __call__(self, updates, shares, context):
        return Aggregated(updates[0], torch.arange(len(updates)) == 0, {"how_much": 2.0})

    def needs(self, clients):
        return 4


@dataclass(frozen=True)
class Itself(FedAvg):
    """A method that is a rule of its own."""

    name = "itself"
    aggregates_itself: ClassVar[bool] = True


SIZES = (40, 60, 80)
"""Rows of the three clients of the toy federation below."""


def test_a_client_whose_update_is_not_finite_is_left_out_counted_and_named():
    broken = run(training=Breaking(batch_size=16, sizes=SIZES[1:2]))
    assert all(record.clients == {"not_finite": 1.0} and record.rejected == (1,) for record, _ in broken)
    assert all(record.participants == 3 for record, _ in broken)
    assert broken[-1][1].vector.isfinite().all()


def test_a_broken_client_is_as_good_as_absent():
    federation = Toy(clients=3, rows=40, spread=1.0).load()
    without = replace(
        federation,
        train=concatenate([federation.train[0], federation.train[1]]),
        test=concatenate([federation.test[0], federation.test[1]]),
        clients=federation.clients[:2],
    )
    broken, absent = run(federation, training=Breaking(batch_size=16, sizes=SIZES[2:])), run(without)
    torch.testing.assert_close(broken[-1][1].vector, absent[-1][1].vector)


def test_a_round_without_a_usable_update_leaves_the_model_unchanged_and_is_counted():
    rounds = run(training=Breaking(batch_size=16, sizes=SIZES))
    first, last = rounds[0][1], rounds[-1][1]
    assert torch.equal(first.vector, last.vector)
    assert [state.idle for _, state in rounds] == [1, 2, 3, 4]
    assert all(record.clients == {"not_finite": 3.0, "too_few": 1.0, "idle": 1.0} for record, _ in rounds)


def test_a_round_in_which_the_rule_rejects_everybody_leaves_the_model_unchanged_and_is_counted():
    rounds = run(aggregation=Nobody())
    assert torch.equal(rounds[0][1].vector, rounds[-1][1].vector)
    assert all(record.clients == {"rejected": 3.0, "idle": 1.0} for record, _ in rounds)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"training": Breaking(batch_size=16, sizes=SIZES)}, "3 of 3 were not finite.*Lower training.learning_rate"),
        ({"aggregation": Nobody()}, "0 of 3 were not finite and the rule nobody rejected the others.*choose another"),
    ],
)
def test_nothing_but_unusable_updates_ends_the_run_wherever_it_was_resumed(settings, complaint):
    with pytest.raises(CohortError, match=f"in 10 rounds in a row: in round 10, {complaint}"):
        run(rounds=20, **settings)
    stopped = run(rounds=7, **settings)[-1][1]
    with pytest.raises(CohortError, match="in 10 rounds in a row: in round 10,"):
        run(rounds=20, state=stopped, **settings)


def test_one_usable_round_in_between_starts_the_count_anew():
    stopped = run(rounds=3, aggregation=Nobody())[-1][1]
    assert stopped.idle == 3
    assert run(rounds=4, state=stopped)[-1][1].idle == 0


def test_whom_the_rule_left_out_stands_in_the_record_without_the_methods_help():
    record, _ = run(Toy(clients=5, rows=20).load(), aggregation=Choosy(), rounds=1)[0]
    assert record.clients == {"rejected": 4.0, "choosy/how_much": 2.0}
    assert record.rejected == (1, 2, 3, 4)


def test_a_rule_that_needs_more_participants_than_there_are_is_refused_before_the_first_round():
    with pytest.raises(ConfigError, match="aggregation = choosy with 3 participants in a round; wanted at least 4"):
        run(aggregation=Choosy())
    with pytest.raises(ConfigError, match="aggregation = choosy with 2 participants"):
        run(Toy(clients=8, rows=20).load(), aggregation=Choosy(), participation=0.25)


def test_a_method_that_is_itself_a_rule_is_refused_beside_another_and_told_why():
    assert len(run(method=Itself())) == 4
    with pytest.raises(ConfigError, match=r"method = itself with aggregation = nobody.*is itself one"):
        run(method=Itself(), aggregation=Nobody())


def test_a_client_without_the_second_group_takes_part_and_is_counted():
    federation = Toy(clients=3, rows=40, spread=1.0).load()
    shards = list(federation.train)
    shards[1] = replace(shards[1], groups=torch.zeros_like(shards[1].groups))
    records = [record for record, _ in run(replace(federation, train=concatenate(shards)))]
    assert all(record.clients == {"one_group": 1.0} and record.rejected == () for record in records)
