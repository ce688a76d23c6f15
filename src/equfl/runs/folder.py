"""A run's folder: who may write in it, what is saved after each round, and from where to go on.

::

    config.toml  environment.json  rounds.jsonl -> rounds.parquet  audit.parquet  synthetic.safetensors  result.json
    checkpoints/round-00040.safetensors  checkpoints/memory-....safetensors  baseline/ (FedAvg's, likewise)

A file appears whole or not at all; only ``rounds.jsonl`` grows line by line, and a checkpoint knows how far it counts.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from time import perf_counter

from equfl.config.files import config_text
from equfl.config.schema import RunConfig
from equfl.core.errors import Damaged, EquflError, RunError
from equfl.core.protocol import RoundRecord, ServerState
from equfl.data import tensor_file
from equfl.data.base import Federation
from equfl.data.replacing import replacing
from equfl.methods.base import takes_real_rows
from equfl.runs.access import owned, writing
from equfl.runs.checkpoint import Checkpoints
from equfl.runs.environment import FORMAT, differences, environment, write_json
from equfl.runs.identity import config_of, demand_same
from equfl.runs.journal import Journal, Mark, read_records, write_records
from equfl.runs.reading import read_json, result_of
from equfl.runs.result import Run
from equfl.runs.store import Progressed, Store
from equfl.runs.tables import audit_table, rounds_table, write_parquet

WRITTEN = (
    "config.toml",
    "environment.json",
    "rounds.jsonl",
    "rounds.parquet",
    "audit.parquet",
    "synthetic.safetensors",
    "result.json",
)
SYNTHETIC = "synthetic/"
"""What the entries of a method's memory begin with that are the server's own data."""

SAFE_EVERY = 1.0
"""Seconds after which the next checkpoint is also made to survive a power cut, which costs milliseconds."""


class RunFolder(Store):
    """The folder of one run, open for writing by this process alone."""

    path: Path

    def __init__(self, path: Path, config: RunConfig) -> None:
        super().__init__()
        self.path = path
        self.config = config
        self.finished = False
        """Whether all was done before, so that there is nothing more to write."""
        self._new = False
        self._checkpoints = Checkpoints(path / "checkpoints")
        self._journal: Journal | None = None
        self._made_safe = perf_counter()

    @classmethod
    @contextmanager
    def opened(cls, path: Path, config: RunConfig) -> Iterator["RunFolder"]:
        """The folder, new or half-finished; a folder of another config is refused."""
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
        with owned(path):
            folder = cls(path, config)
            with writing(path):
                folder._claim()
            try:
                yield folder
            except EquflError:
                folder._vanish_if_nothing_began()
                raise
            finally:
                if folder._journal:
                    folder._journal.close()

    def beside(self, config: RunConfig) -> AbstractContextManager[Store]:
        return RunFolder.opened(self.path / "baseline", config)

    def rows_are(self, federation: Federation) -> None:
        """Write down with which rows and packages the run is computed, or check that they are still the same."""
        path, here = self.path / "environment.json", environment(federation)
        there = read_json(path)
        if there is None:
            with writing(self.path):
                write_json(path, here)
            return
        if there["data"]["fingerprint"] != here["data"]["fingerprint"]:
            raise RunError(
                f"{self.path} was begun on other rows than {federation.name!r} has now",
                wanted="the same data as at its beginning",
                remedy="Restore the data, or run in another folder",
            )
        for difference in differences(there, here):
            warnings.warn(f"{self.path}: {difference}; the last digits may differ.", stacklevel=2)

    def resume(self) -> Progressed:
        """The rounds that are safe and the state after them; none and ``None`` where nothing has begun."""
        damaged: list[str] = []
        with writing(self.path):
            for path in self._checkpoints.newest_first():
                state = self._gone_on_from(path)
                if state:
                    if damaged:
                        lost = f"{' and '.join(damaged)} {'is' if len(damaged) == 1 else 'are'} damaged"
                        warnings.warn(f"{self.path}: {lost}; going on from round {state.round}.", stacklevel=2)
                    return read_records(self._rounds), state
                damaged.append(path.name)
            if damaged or self._rounds_written() > 1:
                raise Damaged(
                    f"{self.path} holds no whole checkpoint" + (f" ({', '.join(damaged)})" if damaged else ""),
                    wanted="at least one as it was written, with the rounds before it",
                    remedy="Run it in another folder, or delete this one and run again",
                )
            self._journal = Journal(self._rounds)
        return (), None

    def begin_at(self, records: Sequence[RoundRecord], state: ServerState) -> None:
        """Take over rounds that were computed elsewhere, unless there are some already."""
        if any(self._checkpoints.newest_first()):
            return
        with writing(self.path):
            self._save(state, write_records(self._rounds, records), safe=True)

    def save(self, record: RoundRecord, state: ServerState) -> None:
        """Keep a round. The line first: a checkpoint never knows more rounds than there are lines."""
        assert self._journal, "resume comes first"
        safe = perf_counter() - self._made_safe > SAFE_EVERY or state.round == self.config.rounds
        with writing(self.path):
            self._journal.append(record)
            if safe:
                self._journal.sync()
            self._save(state, self._journal.mark, safe=safe)
        if safe:
            self._made_safe = perf_counter()

    def finish(self, run: Run) -> None:
        """Write what came out, the result last, so that its being there means that all is."""
        if self.finished:
            return
        synthetic = {
            name.removeprefix(SYNTHETIC): value
            for name, value in run.state.memory.items()
            if name.startswith(SYNTHETIC)
        }
        with writing(self.path):
            write_parquet(self.path / "rounds.parquet", rounds_table(run.records))
            write_parquet(self.path / "audit.parquet", audit_table(run.audits, run.federation.clients))
            # What a control was given are the clients' rows, not the server's.
            if synthetic and not takes_real_rows(run.config.method):
                tensor_file.write(self.path / "synthetic.safetensors", synthetic, {"round": run.state.round})
            write_json(self.path / "result.json", run.result)

    @property
    def _rounds(self) -> Path:
        return self.path / "rounds.jsonl"

    def _gone_on_from(self, checkpoint: Path) -> ServerState | None:
        """The state in a checkpoint, if it is whole and the rounds before it are there, too."""
        found = self._checkpoints.read(checkpoint)
        self._journal = Journal.at(self._rounds, Mark(**found.about["journal"])) if found else None
        return found.state if found and self._journal else None

    def _rounds_written(self) -> int:
        return self._rounds.read_bytes().count(b"\n") if self._rounds.exists() else 0

    def _save(self, state: ServerState, mark: Mark, *, safe: bool) -> None:
        self._checkpoints.save(state, {"format": FORMAT, "journal": asdict(mark)}, safe=safe)

    def _claim(self) -> None:
        """Make the folder this config's, or find that it is already."""
        path = self.path / "config.toml"
        if path.exists():
            demand_same(config_of(self.path), self.config, self.path)
            self.finished = result_of(self.path) is not None
            self._sweep()
            return
        if any(not found.name.startswith(".config.toml.") for found in self.path.iterdir()):
            raise RunError(
                f"{self.path} is not empty and holds no run",
                wanted="a new or an empty folder, or a run's",
                remedy="Choose another folder",
            )
        with replacing(path) as fresh:
            fresh.write_text(config_text(self.config), encoding="utf-8")
        self._new = True
        self._sweep()

    def _sweep(self) -> None:
        """Remove what a process left that was killed while it wrote."""
        for name in WRITTEN:
            for leftover in self.path.glob(f".{name}.*"):
                leftover.unlink()
        for leftover in self._checkpoints.folder.glob(".*.safetensors.*"):
            leftover.unlink()

    def _vanish_if_nothing_began(self) -> None:
        """Leave no trace of a run that could not even begin, as when its data is nowhere to be had."""
        if self._new and not (self.path / "environment.json").exists():
            (self.path / "config.toml").unlink(missing_ok=True)
            with suppress(OSError):
                self.path.rmdir()
