"""The two ways to begin: ``equfl.run`` and ``equfl.resume``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equfl.config.codec import from_dict, to_dict
from equfl.config.overrides import changed
from equfl.config.request import started, target_named
from equfl.config.schema import RunConfig
from equfl.data.base import Federation
from equfl.data.in_memory import InMemory
from equfl.runs.execute import execute
from equfl.runs.identity import config_of
from equfl.runs.result import Run
from equfl.runs.watcher import Watcher


def run(
    what: str | Path | RunConfig | Federation = "quickstart",
    *,
    out: str | Path | None = None,
    label: str | None = None,
    sensitive: str | Sequence[str] = (),
    client: str | None = None,
    watcher: Watcher | None = None,
    **settings: Any,
) -> Run:
    """Run a preset, a config file, a table (with its columns), a config, or a federation from ``federate_table``.

    Settings are those of ``RunConfig``, by value or by name: ``method="equfl"``, ``rounds=20``, and deeper ones as
    ``**{"method.gamma": 0.5}``. Nothing is written without ``out``, a folder, in which a stopped run goes on.
    """
    federation = what if isinstance(what, Federation) else None
    if isinstance(what, Federation):
        plain = to_dict(RunConfig(data=InMemory.of(what)))
    elif isinstance(what, RunConfig):
        plain = to_dict(what)
    else:
        columns = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
        plain = started(str(what), label=label, sensitive=columns, client=client)
    if isinstance(target := settings.get("target"), str):
        settings["target"] = target_named(target)
    config = from_dict(changed(plain, settings))
    return execute(config, federation=federation, out=None if out is None else Path(out), watcher=watcher)


def resume(folder: str | Path, *, watcher: Watcher | None = None) -> Run:
    """Go on with the run in a folder; of a finished one, read the rounds and audit the model once more."""
    return execute(config_of(Path(folder)), out=Path(folder), watcher=watcher)
