"""Many runs: each in a folder of its own named by its config, several at a time, those that are finished only read.

It may be stopped at any moment and in any way; the same call goes on, since every run goes on where it was.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from equfl.config.codec import config_hash
from equfl.config.schema import RunConfig
from equfl.core.errors import EquflError
from equfl.core.protocol import RoundRecord
from equfl.data.base import Dataset, Federation, Progress
from equfl.runs.execute import execute
from equfl.runs.identity import config_of, demand_same, folder_name
from equfl.runs.reading import result_of
from equfl.runs.watcher import Watcher
from equfl.runs.workers import Broken, Tell, Told, at_once


@dataclass(frozen=True)
class Finished:
    """A run's result is there."""

    config: RunConfig
    folder: Path
    result: dict[str, Any]
    """What ``result.json`` says."""
    computed: bool = True
    """``False`` if it was there before."""


@dataclass(frozen=True)
class Failed:
    """A run has none, and why, in one line."""

    config: RunConfig
    folder: Path
    reason: str


@dataclass(frozen=True)
class Advanced:
    """A run is that many rounds far."""

    config: RunConfig
    round: int


@dataclass(frozen=True)
class Warned:
    """A run goes on, but there is something that its reader should know."""

    config: RunConfig
    message: str


Event = Finished | Failed | Advanced | Warned


def cores() -> int:
    """How many processes can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compute(
    configs: Sequence[RunConfig],
    folder: Path,
    *,
    named: Callable[[RunConfig], str] = folder_name,
    processes: int | None = None,
    progress: Progress = lambda task, done, total: None,
) -> Iterator[Event]:
    """Run the configs in folders below ``folder``; first come those that are finished already.

    Data is prepared here, once, before processes read it at the same time; without it there is no run at all, so that
    error is raised. Equal configs are one run. Whoever names the folders otherwise sees to it that no two share one.
    """
    places = {config_hash(config): (config, folder / named(config)) for config in configs}
    missing: list[tuple[RunConfig, Path]] = []
    for config, place in places.values():
        try:
            result = _finished(place, config)
        except EquflError as error:
            yield Failed(config, place, str(error))
            continue
        if result is None:
            missing.append((config, place))
        else:
            yield Finished(config, place, result, computed=False)
    for dataset in {config.data: None for config, _ in missing}:
        dataset.load(progress=progress)
    for event in at_once(_run, missing, processes or cores()):
        config, place = missing[event.job]
        if isinstance(event, Told):
            yield event.what
        elif isinstance(event, Broken):
            yield Failed(config, place, event.reason)
        else:
            result = result_of(place)
            assert result is not None, "a run writes its result last"
            yield Finished(config, place, result)


def _finished(place: Path, config: RunConfig) -> dict[str, Any] | None:
    result = result_of(place)
    if result is not None:
        demand_same(config_of(place), config, place)
    return result


def _run(job: tuple[RunConfig, Path], tell: Tell) -> None:
    """One run, in a process of its own."""
    config, place = job
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *rest, **more: tell(Warned(config, str(message)))
        execute(config, federation=_loaded(config.data), out=place, watcher=_Teller(tell))


@lru_cache(maxsize=1)
def _loaded(dataset: Dataset) -> Federation:
    """Read once per process, as long as its runs are on the same rows."""
    return dataset.load()


class _Teller(Watcher):
    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def round(self, config: RunConfig, record: RoundRecord) -> None:
        self._tell(Advanced(config, record.round))
