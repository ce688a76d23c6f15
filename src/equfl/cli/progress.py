"""How far a run is: a bar on a terminal, a few plain lines elsewhere."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from equfl.cli.screen import Screen
from equfl.cli.words import bias, percent
from equfl.config.schema import RunConfig
from equfl.core.protocol import RoundRecord
from equfl.data.base import Federation
from equfl.runs.watcher import Watcher

LINES = 10
"""How many lines a run takes where there is no terminal."""

PATIENCE = 2.0
"""Seconds after which long work is worth a line of its own."""


@contextmanager
def progress(out: Path | None = None) -> Iterator["Looker"]:
    """The watcher for a run in that folder, or for other work, for as long as the block takes; it writes on stderr."""
    screen = Screen(stderr=True)
    if not screen.console.is_terminal:
        yield Lines(screen, out)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TextColumn("{task.fields[numbers]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen.console, transient=True, redirect_stdout=False) as bars:
        yield Bars(screen, out, bars)


class Looker(Watcher):
    """Tells where the files go and what the data is, and remembers where the run is, for whoever stops it."""

    def __init__(self, screen: Screen, out: Path | None) -> None:
        self.screen = screen
        self.out = out
        self._now = ""

    def loaded(self, federation: Federation) -> None:
        self.screen.line(f"Files: {self.out}")
        train, test = len(federation.train.pooled), len(federation.test.pooled)
        self.screen.line(
            f"Data: {federation.name}, {len(federation.clients)} clients, "
            f"{train:,} rows to train on, {test:,} to test on, groups {', '.join(federation.schema.groups)}"
        )
        self.screen.pairs(federation.facts.items(), style="dim")

    def round(self, config: RunConfig, record: RoundRecord) -> None:
        self._now = f" after round {record.round} of {config.rounds} of {config.method.name}"
        self.show(config, record)

    def show(self, config: RunConfig, record: RoundRecord) -> None:
        """Say that a round is done."""

    def stopped(self) -> str:
        """Where it was stopped, and how it goes on."""
        return f"Stopped{self._now or ' before the first round'}. To go on: equfl resume {shlex.quote(str(self.out))}"


class Lines(Looker):
    """Plain lines, about ten for a run, however many rounds it has."""

    def __init__(self, screen: Screen, out: Path | None) -> None:
        super().__init__(screen, out)
        self._work, self._next = "", 0.0

    def working(self, task: str, done: int, total: int) -> None:
        now = perf_counter()
        if task != self._work:
            self._work, self._next = task, now + PATIENCE
        elif now >= self._next and done < total:
            self.screen.line(f"{task} ({done:,} of {total:,})")
            self._next = now + 5 * PATIENCE

    def show(self, config: RunConfig, record: RoundRecord) -> None:
        before, now = ((record.round - past) * LINES // config.rounds for past in (1, 0))
        if now > before:
            self.screen.line(f"{config.method.name}: round {record.round} of {config.rounds}{numbers(config, record)}")


class Bars(Looker):
    """One bar for the rounds, another one below it while there is long work."""

    def __init__(self, screen: Screen, out: Path | None, bars: Progress) -> None:
        super().__init__(screen, out)
        self._bars = bars
        self._rounds: dict[str, TaskID] = {}
        self._work: tuple[str, TaskID] | None = None

    def working(self, task: str, done: int, total: int) -> None:
        if self._work is None or self._work[0] != task:
            self._end_work()
            self._work = task, self._bars.add_task(task, numbers="")
        self._bars.update(self._work[1], completed=done, total=total)
        if done >= total:
            self._end_work()

    def show(self, config: RunConfig, record: RoundRecord) -> None:
        self._end_work()
        name = config.method.name
        if name not in self._rounds:
            self._rounds[name] = self._bars.add_task(name, total=config.rounds, numbers="")
        if record.evaluation:
            self._bars.update(self._rounds[name], numbers=numbers(config, record))
        self._bars.update(self._rounds[name], completed=record.round)

    def _end_work(self) -> None:
        if self._work is not None:
            self._bars.remove_task(self._work[1])
            self._work = None


def numbers(config: RunConfig, record: RoundRecord) -> str:
    """Accuracy and target bias of a round, if it was evaluated."""
    if not record.evaluation:
        return ""
    parts = {part.symbol: record.evaluation[f"{part.name}/pooled"] for part in config.target.parts()}
    unfair = "  ".join(f"{symbol} {bias(value)}" for symbol, value in parts.items())
    return f"  accuracy {percent(record.evaluation['accuracy'])}  {unfair}"
