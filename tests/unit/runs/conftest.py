"""One small run, to be stopped, damaged and gone on with in every way."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from equfl.config.schema import RunConfig
from equfl.core.protocol import RoundRecord
from equfl.data.toy import Toy
from equfl.methods.equfl import EquFL
from equfl.models.mlp import MLP
from equfl.runs.execute import execute
from equfl.runs.result import Run
from equfl.simulation.engines.serial import Serial
from equfl.synthesis.trajectory_matching import TrajectoryMatching
from equfl.training.sgd import SGD


@pytest.fixture(scope="session")
def config() -> RunConfig:
    """EquFL on a handful of rows: three rounds to collect in, three to calibrate in, and FedAvg beside it."""
    return RunConfig(
        data=Toy(clients=2, rows=30),
        method=EquFL(synthesis=TrajectoryMatching(samples=8, iterations=6, match_steps=1)),
        model=MLP((3,)),
        training=SGD(batch_size=4, learning_rate=0.3),
        engine=Serial(),
        rounds=6,
    )


@pytest.fixture(scope="session")
def undisturbed(config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run that nobody stopped."""
    return execute(config, out=tmp_path_factory.mktemp("undisturbed") / "run")


@pytest.fixture
def assert_same() -> Callable[[Run, Run], None]:
    """Fails unless two runs are the same in every bit but for the seconds."""
    return same


@pytest.fixture
def without_seconds() -> Callable[[Any], Any]:
    """Takes the seconds out of a result."""
    return timeless


def same(a: Run, b: Run) -> None:
    """The same model, the same memory, the same records and the same result."""
    assert torch.equal(a.state.vector, b.state.vector)
    assert a.state.memory.keys() == b.state.memory.keys()
    assert all(torch.equal(value, b.state.memory[name]) for name, value in a.state.memory.items())
    assert torch.equal(a.predictions, b.predictions)
    assert list(map(spelled, a.records)) == list(map(spelled, b.records))
    assert timeless(a.result) == timeless(b.result)
    assert (a.baseline is None) == (b.baseline is None)
    if a.baseline and b.baseline and a.baseline is not a:
        same(a.baseline, b.baseline)


def spelled(record: RoundRecord) -> str:
    """A record without its seconds, as text: a NaN is then equal to itself."""
    return repr(replace(record, seconds={}))


def timeless(result: Any) -> Any:
    """A result without its seconds."""
    if isinstance(result, dict):
        return {name: timeless(value) for name, value in result.items() if name != "seconds"}
    return result
