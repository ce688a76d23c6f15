from dataclasses import replace

import pytest
import torch

from equfl.core.errors import ConfigError
from equfl.core.random import Seed
from equfl.core.samples import Samples, concatenate
from equfl.data.toy import Toy
from equfl.models.mlp import MLP
from equfl.synthesis.faithful_matching import FaithfulMatching
from equfl.synthesis.oracle import Oracle
from equfl.synthesis.random_rows import RandomRows
from equfl.synthesis.shuffled_labels import ShuffledLabels
from equfl.synthesis.small_real import SmallReal

TOY = Toy(clients=4, rows=30, spread=2.0).load()


@pytest.fixture
def simulated(context):
    """A context that only a simulation can have: with the clients' rows."""
    return replace(context, network=MLP((4,)).network(TOY.schema.shape, 2), schema=TOY.schema, real_rows=TOY.train)


@pytest.fixture
def collected(simulated):
    return torch.randn(8, simulated.network.layout.size, generator=Seed(0).generator("models"))


def test_the_oracle_gives_all_rows_as_they_are(simulated, collected):
    samples, told = Oracle()(collected, simulated)
    assert samples is TOY.train.pooled
    assert told == {"synthesis/real_rows": len(TOY.train.pooled)}


def clients_of(samples: Samples) -> list[int]:
    """Whose rows these are: the toy's numbers are all different."""
    rows = [{tuple(row) for row in shard.inputs.tolist()} for shard in TOY.train]
    return [next(client for client, own in enumerate(rows) if tuple(row) in own) for row in samples.inputs.tolist()]


def test_a_small_real_set_takes_equally_many_rows_of_each_client_and_none_twice(simulated, collected):
    samples, _ = SmallReal(samples=42)(collected, simulated)
    counts = torch.tensor(clients_of(samples)).bincount()
    assert sorted(counts.tolist()) == [10, 10, 11, 11]
    assert len(samples.inputs.unique(dim=0)) == 42


def test_clients_with_many_rows_make_up_for_one_with_few(simulated, collected):
    assert TOY.train.sizes == (30, 50, 70, 90)
    samples, _ = SmallReal(samples=180)(collected, simulated)
    assert torch.tensor(clients_of(samples)).bincount().tolist() == [30, 50, 50, 50]


def test_a_small_real_set_is_no_larger_than_what_there_is(simulated, collected):
    one = concatenate([TOY.train[0]])
    samples, told = SmallReal(samples=1000)(collected, replace(simulated, real_rows=one))
    assert len(samples) == 30
    assert told == {"synthesis/real_rows": 30.0}


def test_random_rows_are_valid_and_equally_many_in_every_cell(simulated, collected):
    samples, _ = RandomRows(samples=40)(collected, simulated)
    assert torch.equal(samples.inputs[:, 5:].argmax(dim=1), samples.groups)
    for block in (slice(2, 5), slice(5, 7)):
        assert torch.equal(samples.inputs[:, block].sort(dim=1).values[:, -1], torch.ones(40))
        assert torch.equal(samples.inputs[:, block].sum(dim=1), torch.ones(40))
    assert (2 * samples.labels + samples.groups).bincount().tolist() == [10, 10, 10, 10]


def test_random_rows_know_nothing_of_the_collected_models(simulated, collected):
    ours, _ = RandomRows(samples=40)(collected, simulated)
    others, _ = RandomRows(samples=40)(collected + 1, simulated)
    assert torch.equal(ours.inputs, others.inputs)


def test_shuffled_labels_are_the_same_labels_on_other_rows(simulated, collected):
    own = FaithfulMatching(samples=40, iterations=2)
    plain, _ = own(collected, simulated)
    shuffled, _ = ShuffledLabels(own)(collected, simulated)
    assert torch.equal(shuffled.inputs, plain.inputs)
    assert torch.equal(shuffled.groups, plain.groups)
    assert not torch.equal(shuffled.labels, plain.labels)
    assert torch.equal(shuffled.labels.sort(dim=0).values, plain.labels.sort(dim=0).values)


@pytest.mark.parametrize("control", [SmallReal, RandomRows])
def test_a_control_of_no_rows_is_refused(control):
    with pytest.raises(ConfigError, match=r"method\.synthesis\.samples = 0"):
        control(samples=0)
