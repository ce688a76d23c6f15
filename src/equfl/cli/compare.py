"""``equfl compare``: methods side by side, over several seeds; or runs that are there already."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

from tyro.conf import Positional, UseAppendAction

from equfl.cli.parsing import option


def compare(
    what: Annotated[Positional[tuple[str, ...]], option("[PRESET|CONFIG|TABLE] | DIR...")],
    /,
    *,
    methods: Annotated[str | None, option("all|NAME,...")] = None,
    targets: Annotated[str | None, option("NOTION,...")] = None,
    seeds: Annotated[str | None, option("N|FROM-TO|N,...")] = None,
    split_by_seed: bool = False,
    processes: Annotated[str | None, option("N")] = None,
    runs: Annotated[str, option("DIR")] = "runs",
    out: Annotated[str | None, option("DIR")] = None,
    set: Annotated[UseAppendAction[tuple[str, ...]], option("PATH=VALUE")] = (),
    label: Annotated[str | None, option("COLUMN")] = None,
    sensitive: Annotated[UseAppendAction[tuple[str, ...]], option("COLUMN")] = (),
    client: Annotated[str | None, option("COLUMN")] = None,
) -> int:
    """Run methods with several seeds and show them side by side, or show finished runs.

    Runs are computed in parallel, one process per core, each in a folder of its own. Those that are finished are read;
    whatever stops the command, the same command goes on.

    Args:
        what: A preset, a config file or a table, as in 'equfl run'; or the folders of finished runs.
        methods: Which methods, FedAvg always among them; without it, all.
        targets: The notions whose bias should fall, each with a table of its own: EO, DP, CAL, CON. Without it, the
            preset's.
        seeds: How many, or which: 5 (that is 0 to 4), 2001-2005, 3,7,9. Without it, 5.
        split_by_seed: Also divide the rows anew with each seed, into those to train and those to test on.
        processes: How many runs at once; without it, one per core.
        runs: The folder below which the runs' folders are.
        out: The folder for the table as JSON and CSV and for the picture; without it, one under comparisons/, named
            after what is compared.
        set: Any other setting, as rounds=20; one of a method, as method.gamma=0.5, is for the methods that have it.
        label: Of a table: the column to predict.
        sensitive: Of a table: the column that makes the groups; once more for another one.
        client: Of a table: the column that says whose row it is.
    """
    began = perf_counter()
    from equfl.core.errors import ConfigError

    asked = (methods, targets, seeds, processes, out, label, client, *set, *sensitive)
    if not what:
        raise ConfigError(
            "nothing to compare",
            wanted="a preset, a config file or a table, or the folders of finished runs",
            remedy="Write for instance 'equfl compare quickstart --methods equfl_feedback --seeds 3'",
        )
    if split_by_seed or any(asked) or (len(what) == 1 and _begins_runs(what[0])):
        if len(what) > 1:
            raise ConfigError(
                f"{len(what)} words before the options",
                wanted="one preset, config file or table, for options say what to run with it",
                remedy="To show finished runs, give their folders and no options",
            )
        from equfl.cli import tournament
        from equfl.config.request import started

        return tournament.play(
            started(what[0], label=label, sensitive=sensitive, client=client),
            methods=methods or "all",
            targets=targets,
            seeds=seeds or "5",
            settings=set,
            split_by_seed=split_by_seed,
            processes=processes,
            runs=Path(runs).expanduser(),
            out=Path(out).expanduser() if out else None,
            began=began,
        )
    from equfl.cli.side_by_side import show

    return show(what)


def _begins_runs(word: str) -> bool:
    """Whether runs can begin from it: a file, or a preset where no folder has its name."""
    path = Path(word).expanduser()
    if path.is_dir():
        return False
    from equfl.config.presets import presets

    return path.is_file() or word in presets()
