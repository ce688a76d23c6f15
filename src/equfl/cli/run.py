"""``equfl run``: one run from end to end, or the rest of one that was stopped."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

from tyro.conf import Positional, UseAppendAction

from equfl.cli.parsing import option, spelled


def run(
    source: Annotated[Positional[str], option("[PRESET|CONFIG|TABLE]")] = "quickstart",
    /,
    *,
    method: Annotated[str | None, option("NAME")] = None,
    target: Annotated[str | None, option("NOTION")] = None,
    seed: Annotated[str | None, option("N")] = None,
    out: Annotated[str | None, option("DIR")] = None,
    set: Annotated[UseAppendAction[tuple[str, ...]], option("PATH=VALUE")] = (),
    label: Annotated[str | None, option("COLUMN")] = None,
    sensitive: Annotated[UseAppendAction[tuple[str, ...]], option("COLUMN")] = (),
    client: Annotated[str | None, option("COLUMN")] = None,
) -> int:
    """Run a method on a federation and compare it with FedAvg.

    A run that was stopped goes on where it was when the same command is given again, or 'equfl resume DIR'.

    Args:
        source: A preset ('equfl describe preset' lists them), a config file (.toml, .yaml, .json), or a table of your
            own (.csv, .parquet, ...). Nothing: quickstart.
        method: How the federation is run: equfl, fedavg, ... ('equfl describe method').
        target: The notion whose bias should fall, also by its symbol: EO, DP, CAL, CON; several as EO+DP.
        seed: Whatever is random follows from it.
        out: The folder for all files. Nothing: one under runs/, named after the run.
        set: Any other setting, as rounds=20 or method.gamma=0.5 ('equfl describe run'); once more for another one.
        label: Of a table: the column to predict.
        sensitive: Of a table: the column that makes the groups; once more for another one.
        client: Of a table: the column that says whose row it is.
    """
    began = perf_counter()
    from equfl.cli.session import go_on
    from equfl.config.request import as_name, requested, started, target_named

    config = requested(
        started(source, label=label, sensitive=sensitive, client=client),
        options=[
            ("method", method and as_name(method)),
            ("target", target and target_named(target)),
            ("seed", seed),
        ],
        settings=set,
    )
    # From FedAvg the next step is another method; from any other, another target.
    same = method if method != "fedavg" else None
    kept = {
        "--method": same,
        "--label": label,
        "--sensitive": sensitive,
        "--client": client,
        "--seed": seed,
        "--set": set,
    }
    again = ["run", source, *spelled(kept)]
    return go_on(config, Path(out).expanduser() if out else None, began=began, again=again)
