"""Whose folder it is: a run is known by its config."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equfl.config.codec import config_hash, to_dict
from equfl.config.files import read_config
from equfl.config.schema import RunConfig
from equfl.core.errors import ConfigError, Damaged, RunError
from equfl.runs.environment import FORMAT
from equfl.runs.reading import read_json


def folder_name(config: RunConfig) -> str:
    """What was run, legibly, and the config's hash, so that no two configs share a folder."""
    target = "-".join(part.name for part in config.target.parts())
    words = (config.preset or "run", config.method.name, target, f"seed{config.seed}", config_hash(config))
    return "-".join(re.sub(r"[^\w.-]+", "_", word) for word in words)


def config_of(path: Path) -> RunConfig:
    """The config of the run in a folder, if this version of the package can go on with it."""
    if not (path / "config.toml").exists():
        raise RunError(
            f"{path} holds no run" if path.is_dir() else f"there is no folder {path}",
            wanted="a run's folder, with its config.toml",
            remedy="'equfl run' says at its end where its files are",
        )
    there = read_json(path / "environment.json")
    if there is not None and there.get("format") != FORMAT:
        raise RunError(
            f"{path} has the format {there.get('format')} of equfl {there.get('packages', {}).get('equfl', '?')}",
            wanted=f"format {FORMAT}",
            remedy="Go on with that version, or run again in another folder",
        )
    try:
        return read_config(path / "config.toml")
    except ConfigError as error:
        raise Damaged(
            f"{path} has a config that cannot be read: {error.found}",
            wanted=error.wanted,
            remedy="If nobody changed it, another version of equfl wrote it: go on with that one",
        ) from None


def demand_same(there: RunConfig, here: RunConfig, path: Path) -> None:
    """Refuse a folder that belongs to another config, and say what is different."""
    if config_hash(there) != config_hash(here):
        differing = [
            f"{name} is {_shown(old)} there and {_shown(new)} here"
            for name, (old, new) in _differences(to_dict(there), to_dict(here)).items()
        ]
        raise RunError(
            f"{path} holds another run ({'; '.join(differing[:3])})",
            wanted="the same config, or a folder of its own",
            remedy=f"Choose another folder, or go on with that run by 'equfl resume {path}'",
        )


def _differences(there: Mapping[str, Any], here: Mapping[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Dotted path -> the two values, wherever two plain configs differ."""
    found: dict[str, tuple[Any, Any]] = {}
    for name in {**there, **here}:
        old, new = there.get(name), here.get(name)
        if isinstance(old, dict) and isinstance(new, dict) and old.get("name") == new.get("name"):
            found |= _differences(old, new, f"{prefix}{name}.")
        elif old != new:
            found[prefix + name] = (old, new)
    return found


def _shown(value: Any) -> str:
    return str(value["name"]) if isinstance(value, dict) else json.dumps(value, ensure_ascii=False)
