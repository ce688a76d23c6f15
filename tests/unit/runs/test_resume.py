"""A run may be killed at any moment; going on with it ends as if nothing had happened.

The processes here are forked and killed with SIGKILL, which no process can catch: what they leave is what a user's
``kill -9`` leaves.
"""

import os
import random
import signal
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from equfl.methods.equfl import EquFL
from equfl.runs.execute import execute
from equfl.runs.watcher import Watcher
from equfl.synthesis.trajectory_matching import TrajectoryMatching

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def forked(work) -> int:
    """The process that does the work; its exit code is 0 when it came to the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forking beside threads
        process = os.fork()
    if process == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return process


def killed(process: int) -> bool:
    """Wait for its end; whether SIGKILL was it."""
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "it failed by itself"
    return os.WIFSIGNALED(status)


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class KilledAt(Watcher):
    """Kills its process at one moment of the run."""

    def __init__(self, moment):
        self.moment = moment

    def working(self, task, done, total):
        if self.moment == (task, done):
            kill_self()

    def round(self, config, record):
        if self.moment == (config.method.name, record.round):
            kill_self()


MOMENTS = [
    ("equfl", 1),
    ("equfl", 2),
    ("equfl", 3),  # the last round that is FedAvg's, too
    ("synthesising", 1),
    ("synthesising", 4),
    ("equfl", 4),
    ("equfl", 6),
    ("fedavg", 4),
    ("fedavg", 6),
]


@pytest.mark.parametrize("moment", MOMENTS, ids=str)
def test_killed_at_a_moment_of_the_run(config, undisturbed, tmp_path, moment, assert_same):
    assert killed(forked(lambda: execute(config, out=tmp_path / "run", watcher=KilledAt(moment))))
    assert_same(execute(config, out=tmp_path / "run"), undisturbed)


def test_killed_before_every_file_that_is_written(config, tmp_path, monkeypatch, assert_same):
    quick = replace(config, rounds=4)
    expected = execute(quick)
    rename = Path.replace

    def kill_before(number: int) -> None:
        counter = iter(range(10**6))

        def replace_(self, target):
            if next(counter) == number:
                kill_self()
            rename(self, target)

        monkeypatch.setattr(Path, "replace", replace_)

    for number in range(10**6):
        folder = tmp_path / str(number)

        def work(folder=folder, number=number):
            kill_before(number)
            execute(quick, out=folder)

        if not killed(forked(work)):
            break
        assert_same(execute(quick, out=folder), expected)
        assert not list(folder.rglob(".*")), "nothing half-written is left"
    assert number > 15


def test_killed_again_and_again_at_random_moments(config, tmp_path, assert_same):
    slow = replace(
        config, rounds=20, method=EquFL(synthesis=TrajectoryMatching(samples=40, iterations=100, match_steps=3))
    )
    began = time.perf_counter()
    expected = execute(slow)
    lasts = time.perf_counter() - began
    generator, kills, finished = random.Random(0), 0, False
    while not finished:
        process = forked(lambda: execute(slow, out=tmp_path / "run"))
        # Soon at first; later it is left more and more time, so that it comes to an end on a slow machine, too.
        time.sleep(generator.uniform(0, lasts * (0.3 + 0.1 * kills)))
        os.kill(process, signal.SIGKILL)
        finished = not killed(process)
        kills += not finished
    assert kills >= 2
    assert_same(execute(slow, out=tmp_path / "run"), expected)


def test_a_run_that_fails_half_way_can_be_gone_on_with(config, undisturbed, tmp_path, assert_same):
    class FullDisk(Watcher):
        def round(self, config, record):
            if record.round == 5:
                raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        execute(config, out=tmp_path / "run", watcher=FullDisk())
    assert_same(execute(config, out=tmp_path / "run"), undisturbed)


def test_a_finished_run_is_read_and_not_computed_again(config, undisturbed):
    class Nothing(Watcher):
        def round(self, config, record):
            raise AssertionError("a round was computed")

    written = {path: path.stat().st_mtime_ns for path in undisturbed.folder.rglob("*") if path.is_file()}
    again = execute(config, out=undisturbed.folder, watcher=Nothing())
    assert again.records[-1].seconds == undisturbed.records[-1].seconds
    assert {path: path.stat().st_mtime_ns for path in undisturbed.folder.rglob("*") if path.is_file()} == written
