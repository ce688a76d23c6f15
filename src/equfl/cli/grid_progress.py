"""How far many runs are: one bar over all their rounds on a terminal, now and then a plain line elsewhere."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from equfl.cli.screen import Screen
from equfl.config.schema import RunConfig
from equfl.runs.grid import Event, Failed, Finished, Warned, compute, cores
from equfl.runs.identity import folder_name
from equfl.runs.remaining import Remaining

EVERY = 30.0
"""Seconds between two lines where there is no terminal."""


def computed(
    configs: Sequence[RunConfig],
    folder: Path,
    *,
    named: Callable[[RunConfig], str] = folder_name,
    processes: int | None = None,
) -> tuple[dict[RunConfig, Finished], list[Failed]]:
    """Compute the grid while showing how far it is; what is finished by config, and what failed."""
    processes = processes or cores()
    finished: dict[RunConfig, Finished] = {}
    failed: list[Failed] = []
    with _progress(configs, processes) as progress:
        try:
            for event in compute(configs, folder, named=named, processes=processes, progress=progress.working):
                progress.see(event)
                if isinstance(event, Finished):
                    finished[event.config] = event
                elif isinstance(event, Failed):
                    failed.append(event)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"Stopped after {progress.runs}. The same command goes on.") from None
    return finished, failed


@contextmanager
def _progress(configs: Sequence[RunConfig], processes: int) -> Iterator["GridLines"]:
    """Who is to be told of the grid's events for as long as the block takes; it writes on stderr."""
    screen = Screen(stderr=True)
    if not screen.console.is_terminal:
        yield GridLines(screen, configs, processes)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[left]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen.console, transient=True, redirect_stdout=False) as bars:
        yield GridBar(screen, configs, processes, bars)


class GridLines:
    """Counts runs, and prints a line every half minute."""

    def __init__(self, screen: Screen, configs: Sequence[RunConfig], processes: int) -> None:
        self.screen = screen
        self.remaining = Remaining(configs, processes)
        self._all = len(configs)
        self._over = 0
        self._told: set[str] = set()
        self._next = perf_counter()
        self._work = ""

    def working(self, task: str, done: int, total: int) -> None:
        """Data is being prepared."""
        if task != self._work:
            self._work = task
            self.screen.line(task)

    def see(self, event: Event) -> None:
        """Something has happened in the grid; what went wrong is told at once, and once only."""
        self.remaining.see(event)
        if isinstance(event, Finished | Failed):
            self._over += 1
        if isinstance(event, Failed):
            self._say(f"{event.config.method.name}, seed {event.config.seed}, failed: {event.reason}")
        elif isinstance(event, Warned):
            self._say(f"{event.config.method.name}, seed {event.config.seed}: {event.message}")
        self.show()

    def show(self) -> None:
        """Say how far all is."""
        if perf_counter() >= self._next:
            self.screen.line(f"{self.runs}  {self.left}")
            self._next = perf_counter() + EVERY

    @property
    def runs(self) -> str:
        return f"{self._over} of {self._all} runs"

    @property
    def left(self) -> str:
        """The estimate in words."""
        seconds = self.remaining.seconds
        return "" if seconds is None else f"about {duration(seconds)} left"

    def _say(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self.screen.line((" ".join(line.split()), "yellow"))


class GridBar(GridLines):
    """One bar, by rounds, since runs may differ in length."""

    def __init__(self, screen: Screen, configs: Sequence[RunConfig], processes: int, bars: Progress) -> None:
        super().__init__(screen, configs, processes)
        self._bars = bars
        self._task = bars.add_task("", total=self.remaining.rounds, left="")

    def working(self, task: str, done: int, total: int) -> None:
        self._bars.update(self._task, description=task)

    def show(self) -> None:
        self._bars.update(self._task, description=self.runs, completed=self.remaining.done, left=self.left)


def duration(seconds: float) -> str:
    """In the unit in which people would say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
