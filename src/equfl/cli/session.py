"""A run as a user sees it: where its files go, how far it is, how it can go on, and the table at its end."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from equfl.cli import summary
from equfl.cli.progress import progress
from equfl.cli.screen import Screen
from equfl.config.schema import RunConfig
from equfl.runs.execute import execute
from equfl.runs.identity import config_of, demand_same, folder_name
from equfl.runs.reading import result_of


def go_on(config: RunConfig, out: Path | None, *, began: float, again: Sequence[str] = ()) -> int:
    """Compute what is still to be computed, and show the result; ``again`` is what begins a like run."""
    out = out or Path("runs") / folder_name(config)
    screen = Screen()
    result = result_of(out) if (out / "config.toml").exists() else None
    if result is not None:
        demand_same(config_of(out), config, out)
        screen.line("This run is finished already. To run it again, choose another folder with ", ("--out", "cyan"))
    else:
        with progress(out) as watcher:
            try:
                result = execute(config, out=out, watcher=watcher).result
            except KeyboardInterrupt:
                raise KeyboardInterrupt(watcher.stopped()) from None
    words = again or ("run", str(out / "config.toml"))
    summary.show(screen, result, out, lasted=perf_counter() - began, again=f"equfl {shlex.join(words)}")
    return 0
