from dataclasses import dataclass, replace
from math import inf

import pytest
from torch import nn

from equfl.core.disclosure import Disclosure
from equfl.core.samples import Shards
from equfl.core.vector import Network
from equfl.data.toy import Toy
from equfl.methods.base import Method
from equfl.methods.equfl import EquFL
from equfl.methods.fedavg import FedAvg
from equfl.models.mlp import MLP
from equfl.privacy.accounting import epsilon
from equfl.privacy.release import Release
from equfl.simulation.guarantee import guarantee
from equfl.synthesis.oracle import Oracle
from equfl.synthesis.random_rows import RandomRows
from equfl.synthesis.shuffled_labels import ShuffledLabels
from equfl.synthesis.small_real import SmallReal
from equfl.training.dp_sgd import DPSGD
from equfl.training.noisy_sgd import NoisySGD
from equfl.training.noisy_update import NoisyUpdate
from equfl.training.sgd import SGD

PRIVATE = [DPSGD(), NoisySGD(), NoisyUpdate()]


# The methods are named without being declared, so that no contract takes them for ours.
@dataclass(frozen=True)
class Telling(Method):
    name = "telling"

    def leaves(self):
        return (*super().leaves(), Disclosure("mean", "mean of the inputs"))

    def report(self, network, vector, buffers, samples, instructions):
        return {"mean": samples.inputs.mean()}


@dataclass(frozen=True)
class Noising(Telling):
    name = "noising"

    def noised(self):
        return {"mean": Release(8.0, 1)}


@dataclass(frozen=True)
class Preparing(Method):
    name = "preparing"

    def prepare(self, samples, totals):
        return replace(samples, inputs=samples.inputs - samples.inputs.mean())


def of(training, **settings):
    train = settings.pop("train", Toy(clients=3, rows=100).load().train)
    network = settings.pop("network", MLP((4,)).network((3,), 2))
    settings = {"method": FedAvg(), "rounds": 20} | settings
    return guarantee(train, network=network, training=training, **settings)


def test_a_training_without_noise_sets_out_to_guarantee_nothing():
    assert of(SGD()) is None


@pytest.mark.parametrize("training", PRIVATE, ids=lambda training: training.name)
class TestEveryPrivateTraining:
    def test_it_is_what_the_accounting_says_of_all_rounds(self, training):
        found = of(training, train=Toy(clients=1, rows=400).load().train)
        protection = training.protection(Toy(clients=1, rows=400).load().train.sizes[0], 20)
        assert (found.epsilon, found.delta) == (epsilon(protection.releases, 1e-5), 1e-5)
        assert (found.unit, found.obstacle) == (protection.unit, "")

    def test_noise_of_zero_is_no_guarantee_and_says_so(self, training):
        found = of(replace(training, noise=0.0))
        assert (found.epsilon, found.obstacle) == (inf, "the training's noise is 0")

    def test_statistics_without_noise_undo_it(self, training):
        found = of(training, method=Telling())
        assert found.epsilon == inf
        assert found.obstacle == "'telling' has the clients send mean of the inputs without noise"

    def test_statistics_of_batches_undo_it(self, training):
        module = nn.Sequential(nn.Flatten(), nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        assert "statistics of its batches" in of(training, network=Network(module)).obstacle


@pytest.mark.parametrize("training", [DPSGD(noise=4.0), NoisyUpdate(noise=4.0)], ids=lambda training: training.name)
def test_statistics_with_noise_are_added_up_with_the_updates_for_the_single_row(training):
    train = Toy(clients=1, rows=400).load().train
    protection = training.protection(train.sizes[0], 20)
    found = of(training, train=train, method=Noising())
    assert found.unit == "row"
    assert found.epsilon == epsilon((*protection.releases, Release(8.0, 1)), 1e-5) > of(training, train=train).epsilon


def test_rows_that_depend_on_each_other_cannot_be_protected_one_by_one():
    assert "by what the other rows are" in of(DPSGD(), method=Preparing()).obstacle
    assert of(NoisyUpdate(noise=4.0), method=Preparing()).epsilon < 20


def test_the_client_with_the_fewest_rows_is_the_one_who_counts():
    train = Toy(clients=1, rows=400).load().train
    rows = train.sizes[0]
    uneven = Shards(train.pooled, (20, rows - 20))
    small = Shards(train.pooled.rows(slice(0, 20)), (20,))
    assert of(DPSGD(noise=4.0), train=uneven) == of(DPSGD(noise=4.0), train=small)
    assert of(DPSGD(noise=4.0), train=uneven).epsilon > of(DPSGD(noise=4.0), train=train).epsilon


def test_only_the_rounds_that_a_client_joins_are_counted_and_the_busiest_client_decides():
    always, rarely = (of(NoisyUpdate(noise=4.0), participation=share) for share in (1.0, 0.34))
    assert rarely.epsilon < always.epsilon
    # Of three clients one takes part in each of twenty rounds: somebody has seven of them or more.
    protection = NoisyUpdate(noise=4.0).protection(1, 7)
    assert rarely.epsilon >= epsilon(protection.releases, 1e-5)


def test_the_papers_hundred_rounds():
    assert of(NoisyUpdate(noise=0.3), rounds=100).epsilon == pytest.approx(696.78, rel=1e-3)


@pytest.mark.parametrize("rows", [Oracle(), SmallReal(), ShuffledLabels(Oracle())], ids=str)
def test_a_control_whose_server_is_given_real_rows_guarantees_nothing_and_says_so(rows):
    found = of(DPSGD(), method=EquFL(synthesis=rows))
    assert (found.epsilon, found.obstacle) == (inf, "the server of this control is given rows of the clients")
    assert of(DPSGD(), method=EquFL(synthesis=RandomRows())).epsilon < inf
