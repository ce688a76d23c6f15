"""The configs that come with the package: one small file per task, beside this one."""

import difflib
from importlib.resources import files
from pathlib import Path
from typing import Any

from equfl.config.codec import Plain, from_dict
from equfl.config.files import read_plain
from equfl.config.overrides import changed
from equfl.config.schema import RunConfig
from equfl.core.errors import ConfigError


def presets() -> dict[str, str]:
    """The presets by name, each with the line that says what it is."""
    return {path.stem: path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for path in _paths()}


def read_preset(name: str) -> Plain:
    """A preset as plain values."""
    for path in _paths():
        if path.stem == name:
            return {**read_plain(path), "preset": name}
    names = [path.stem for path in _paths()]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    raise ConfigError(
        f"no preset is called {name!r}",
        wanted=f"one of {', '.join(names)}, or a file",
        remedy=f"Did you mean {near[0]!r}" if near else "See 'equfl describe preset'",
    )


def load_preset(name: str, **settings: Any) -> RunConfig:
    """A preset with some settings changed: ``load_preset("quickstart", rounds=10, method="fedavg")``.

    A value is a component, the name of one, or plain; a dotted path goes in as ``**{"method.gamma": 0.5}``.
    """
    return from_dict(changed(read_preset(name), settings))


def _paths() -> list[Path]:
    # The package is always installed as files, so a resource is a path.
    folder = Path(str(files(__name__)))
    return sorted(folder.glob("*.toml"))
