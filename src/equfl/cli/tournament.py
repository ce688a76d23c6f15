"""Methods against each other: the grid of runs as a user sees it, and the tables at its end."""

import shlex
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from time import perf_counter

from equfl.cli import standings as tables
from equfl.cli.grid_progress import computed, duration
from equfl.cli.screen import Screen
from equfl.cli.words import spaced
from equfl.config.codec import Plain, config_hash, from_dict
from equfl.config.schema import RunConfig
from equfl.config.variants import variants
from equfl.core.errors import ConfigError, RunError
from equfl.runs.access import writing
from equfl.runs.grid import cores
from equfl.runs.standings import Standing, standings
from equfl.runs.summary import write_summary


def play(
    plain: Plain,
    *,
    methods: str,
    targets: str | None,
    seeds: str,
    settings: Sequence[str],
    split_by_seed: bool,
    processes: str | None,
    runs: Path,
    out: Path | None,
    began: float,
) -> int:
    """Compute what is missing, and show one table per target; 1 if a run failed."""
    by_target, refused = variants(
        plain,
        methods=methods,
        targets=targets or from_dict(plain).target.name,
        seeds=seeds,
        settings=settings,
        split_by_seed=split_by_seed,
    )
    configs = list(dict.fromkeys(config for those in by_target.values() for config in those))
    configs.sort(key=lambda config: config.seed)  # so that a grid cut short has something of everybody
    finished, failed = computed(configs, runs, processes=_count(processes))
    if not finished:
        raise RunError(
            f"all {len(failed)} runs failed, the first with: {failed[0].reason}",
            wanted="at least one that ends well",
            remedy=f"Try one alone: equfl run {shlex.quote(str(failed[0].folder / 'config.toml'))}",
        )
    found = {
        target: standings([finished[config] for config in those if config in finished])
        for target, those in by_target.items()
    }
    screen = Screen()
    symbols = next(iter(finished.values())).result["symbols"]
    for target, rows in found.items():
        tables.show(screen, rows, target, symbols)
    screen.blank()
    tables.show_missing(screen, refused, failed)
    out = out or Path("comparisons") / f"{configs[0].preset or 'runs'}-{_name(configs)}"
    write_summary(out, found, refused, failed)
    _draw(screen, out, found, symbols)
    screen.line(f"Runs:     {len(finished)} in {runs}; this command took {duration(perf_counter() - began)}")
    screen.line(f"Files:    {out}")
    return 1 if failed else 0


def _draw(screen: Screen, out: Path, by_target: Mapping[str, Sequence[Standing]], symbols: Mapping[str, str]) -> None:
    """One picture per target, where there is something that draws."""
    try:
        from equfl.plots.frontier import Point, draw
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        screen.line("The picture needs matplotlib: pip install 'equfl[plots]', and the same command draws it.")
        return
    for target, rows in by_target.items():
        shown = [(row, row.bias(target)) for row in rows if row.bias(target).values]
        points = [
            Point(
                row.label,
                bias.mean,
                row.accuracy.mean,
                bias.deviation,
                row.accuracy.deviation,
                row.method.uses_group_at_prediction,
            )
            for row, bias in shown
        ]
        name = "frontier" if len(by_target) == 1 else f"frontier-{symbols[target]}"
        files = [out / f"{name}.{format_}" for format_ in ("svg", "png")]
        with writing(out):
            draw(points, files, title=tables.title(rows, target), bias_name=spaced(target))


def _count(processes: str | None) -> int:
    if processes is None:
        return cores()
    if not processes.isdigit() or int(processes) < 1:
        raise ConfigError(f"--processes {processes}", wanted="a whole number of at least 1", remedy="Leave it out")
    return int(processes)


def _name(configs: Sequence[RunConfig]) -> str:
    return blake2b("".join(sorted(map(config_hash, configs))).encode(), digest_size=4).hexdigest()
