"""Many runs at once: what is computed, what is only read, and what becomes of those that fail or are killed."""

import os
import signal
from dataclasses import replace
from multiprocessing import active_children
from time import sleep

import pytest

from equfl.aggregation.multi_krum import MultiKrum
from equfl.config.codec import config_hash
from equfl.core.errors import DataError
from equfl.data.table import Table
from equfl.methods.fedavg import FedAvg
from equfl.runs.execute import execute
from equfl.runs.grid import Advanced, Failed, Finished, compute


@pytest.fixture
def configs(config):
    """EquFL and FedAvg, two seeds each, without FedAvg beside them."""
    alone = replace(config, baseline=False)
    return [replace(alone, seed=seed, method=method) for seed in (0, 1) for method in (FedAvg(), config.method)]


def over(events):
    return [event for event in events if isinstance(event, Finished | Failed)]


def test_a_grid_goes_on_after_a_process_was_killed_and_ends_with_the_numbers_of_single_runs(
    configs, tmp_path, without_seconds
):
    long = [replace(configs[0], rounds=60), *configs[1:]]
    events = []
    for event in compute([*long, long[0]], tmp_path, processes=1):
        events.append(event)
        if isinstance(event, Advanced) and event.config == long[0] and event.round == 10:
            (worker,) = active_children()
            os.kill(worker.pid, signal.SIGKILL)
    (failed,) = [event for event in events if isinstance(event, Failed)]
    assert failed.config == long[0]
    assert "SIGKILL" in failed.reason
    assert len(over(events)) == 4, "equal configs are one run"
    again = over(compute(long, tmp_path, processes=1))
    assert [event.computed for event in again] == [False, False, False, True]
    assert {event.folder.name.rpartition("-")[2] for event in again} == set(map(config_hash, long))
    for event in again:
        assert without_seconds(event.result) == without_seconds(execute(event.config).result)


def test_a_run_that_fails_is_told_in_one_line_and_the_others_go_on(configs, tmp_path):
    hopeless = replace(configs[0], aggregation=MultiKrum())
    events = over(compute([hopeless, configs[2]], tmp_path, processes=1))
    assert [type(event) for event in events] == [Failed, Finished]
    assert "multi_krum" in events[0].reason
    assert "\n" not in events[0].reason


def test_who_stops_looking_leaves_no_process_behind(configs, tmp_path):
    events = compute([replace(configs[0], rounds=100_000)], tmp_path)
    next(events)
    events.close()
    for _ in range(100):
        if not active_children():
            return
        sleep(0.05)
    pytest.fail("a process is left")


def test_data_that_is_not_there_is_told_before_anything_runs(configs, tmp_path):
    table = Table(path=str(tmp_path / "none.csv"), label="a", sensitive=("b",), client="c")
    with pytest.raises(DataError, match=r"none\.csv"):
        list(compute([replace(configs[0], data=table)], tmp_path))


def test_a_damaged_result_fails_that_run_alone(configs, tmp_path):
    (first,) = over(compute(configs[:1], tmp_path, processes=1))
    (first.folder / "result.json").write_text("{")
    (event,) = over(compute(configs[:1], tmp_path))
    assert isinstance(event, Failed)
    assert "result.json is damaged" in event.reason


def test_a_folder_that_holds_another_config_is_not_taken_for_this_one(configs, tmp_path):
    list(compute(configs[:1], tmp_path, named=lambda config: "mine", processes=1))
    (event,) = over(compute(configs[2:3], tmp_path, named=lambda config: "mine"))
    assert isinstance(event, Failed)
    assert "seed is 0 there and 1 here" in event.reason
