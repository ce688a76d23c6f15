"""What a strategy remembers is found, saved as tensors and JSON, and put back."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from flower_clients import STRATEGIES
from flwr.serverapp.strategy import FedAvg, FedAvgM

from equfl.core.errors import RunError
from equfl.flower.inner_memory import InnerMemory, setting


class Accountant:
    """Knows of some releases."""

    def __init__(self, releases: int) -> None:
        self.releases = releases

    def get_privacy_spent(self):
        return SimpleNamespace(num_releases=self.releases)


def private(releases: int) -> FedAvg:
    strategy = FedAvg()
    strategy.accountant = Accountant(releases)
    return strategy


def test_arrays_numbers_and_names_come_back_as_they_were():
    strategy = FedAvg()
    memory = InnerMemory(strategy)
    strategy.momenta = [np.ones(3, np.float32), np.float64(2.0)]
    strategy.moments = {"out/of.weight": np.zeros((2, 2))}
    strategy.norm, strategy.fraction_train = 0.25, 0.5
    arrays, rest = memory.save()
    fresh = FedAvg()
    InnerMemory(fresh).restore(arrays, json.loads(json.dumps(rest)))
    assert [float(part.sum()) for part in fresh.momenta] == [3.0, 2.0]
    assert fresh.momenta[0].dtype == np.float32
    assert list(fresh.moments) == ["out/of.weight"]
    assert (fresh.norm, fresh.fraction_train) == (0.25, 0.5)


def test_settings_that_have_not_changed_are_not_saved_so_a_new_run_may_choose_others():
    memory = InnerMemory(FedAvgM(server_momentum=0.5))
    assert memory.save() == ({}, {})


def test_what_a_wrapped_strategy_remembers_is_kept_apart_from_its_wrappers():
    strategy = STRATEGIES["client-side adaptive clipping"]()
    memory = InnerMemory(strategy)
    strategy.clipping_norm = 3.0
    strategy.strategy.momentum_vector = [np.ones(2)]
    arrays, rest = memory.save()
    assert rest == {"0/clipping_norm": 3.0}
    assert {name: value.tolist() for name, value in arrays.items()} == {"1/momentum_vector/list/000000": [1.0, 1.0]}


def test_what_cannot_be_saved_is_told_once(caplog):
    strategy = FedAvg()
    memory = InnerMemory(strategy)
    strategy.file = object()
    memory.save()
    memory.save()
    assert caplog.text.count("FedAvg.file cannot be saved, and is new after a restart") == 1


def test_an_accountant_that_forgot_earlier_releases_is_refused():
    arrays, rest = InnerMemory(private(3)).save()
    with pytest.raises(RunError, match="an accountant that knows of 0 releases, for a run that has made 3"):
        InnerMemory(private(0)).restore(arrays, rest)
    InnerMemory(private(3)).restore(arrays, rest)


def test_saved_arrays_are_copies():
    strategy = FedAvg()
    memory = InnerMemory(strategy)
    strategy.momenta = [np.ones(2)]
    arrays, _ = memory.save()
    strategy.momenta[0] += 1
    assert torch.equal(*arrays.values(), torch.ones(2, dtype=torch.float64))


def test_a_setting_is_that_of_the_first_link_that_has_it():
    assert setting(STRATEGIES["server-side fixed clipping"](), "weighted_by_key") == "num-examples"
    assert setting(FedAvg(), "train_loss_key") is None
