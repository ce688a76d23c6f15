"""Configs as files: TOML, YAML or JSON, told apart by the suffix."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tomli_w
import yaml

from equfl.config.codec import NONE, Plain, from_dict, to_dict
from equfl.config.schema import RunConfig
from equfl.core.errors import ConfigError

_READERS: dict[str, Callable[[str], Any]] = {
    ".toml": tomllib.loads,
    ".yaml": yaml.safe_load,
    ".yml": yaml.safe_load,
    ".json": json.loads,
}


def read_config(path: Path) -> RunConfig:
    """The config in a file."""
    return from_dict(read_plain(path))


def read_plain(path: Path) -> Plain:
    """What stands in a config file, not yet checked against the known settings."""
    reader = _READERS.get(path.suffix)
    if reader is None:
        raise _unreadable(path, f"has the suffix {path.suffix!r}", "Rename it to what it is")
    try:
        plain = reader(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unreadable(path, f"cannot be read ({error.strerror})", "Check the name and the permissions") from None
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise _unreadable(path, f"is not valid {path.suffix[1:].upper()} ({reason})", "Correct that place") from None
    if not isinstance(plain, dict):
        raise _unreadable(path, "holds no keys and values", "Start with 'data = \"quickstart\"' or the like")
    return plain


def config_text(config: RunConfig, suffix: str = ".toml") -> str:
    """The whole config as the text of a file of that suffix."""
    plain = to_dict(config)
    if suffix == ".json":
        return json.dumps(plain, indent=2) + "\n"
    if suffix in (".yaml", ".yml"):
        return yaml.safe_dump(plain, sort_keys=False)
    return tomli_w.dumps(_without_null(plain))


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_null(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_null(one) for one in value]
    return NONE if value is None else value


def _unreadable(path: Path, reason: str, remedy: str) -> ConfigError:
    return ConfigError(f"the config {path} {reason}", wanted="a readable .toml, .yaml or .json file", remedy=remedy)
