"""``equfl data``: what a federation holds, and where it lies; prepares it on the way."""

from time import perf_counter
from typing import Annotated

from tyro.conf import Positional, UseAppendAction

from equfl.cli.parsing import option, spelled


def data(
    source: Annotated[Positional[str | None], option("[PRESET|CONFIG|TABLE]")] = None,
    /,
    *,
    set: Annotated[UseAppendAction[tuple[str, ...]], option("PATH=VALUE")] = (),
    label: Annotated[str | None, option("COLUMN")] = None,
    sensitive: Annotated[UseAppendAction[tuple[str, ...]], option("COLUMN")] = (),
    client: Annotated[str | None, option("COLUMN")] = None,
) -> int:
    """Show what a federation holds: clients, rows, columns, groups, rates; and prepare it for the runs to come.

    Args:
        source: A preset, a config file or a table, as for 'equfl run'. Nothing: where the data of every preset is.
        set: Any setting, as data.scaling=paper or data.train=500; once more for another one.
        label: Of a table: the column to predict.
        sensitive: Of a table: the column that makes the groups; once more for another one.
        client: Of a table: the column that says whose row it is.
    """
    from equfl.cli import contents
    from equfl.cli.progress import progress
    from equfl.config.request import requested, started

    if source is None:
        contents.overview()
        return 0
    dataset = requested(started(source, label=label, sensitive=sensitive, client=client), settings=set).data
    began, built = perf_counter(), False
    with progress() as watcher:

        def working(task: str, done: int, total: int) -> None:
            nonlocal built
            built = True
            watcher.working(task, done, total)

        federation = dataset.load(progress=working)
    contents.show(federation, dataset)
    kept = {"--label": label, "--sensitive": sensitive, "--client": client, "--set": set}
    contents.end(perf_counter() - began, built=built, run=["equfl", "run", source, *spelled(kept)])
    return 0
