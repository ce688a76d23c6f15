"""One setting changed in a plain config: what stands behind ``--set method.gamma=0.5``."""

import tomllib
from collections.abc import Mapping
from typing import Any

from equfl.config.codec import Plain, plain
from equfl.core.errors import ConfigError


def override(config: Mapping[str, Any], setting: str) -> Plain:
    """The plain config after one ``path=value``, the value written as in TOML; what is not TOML is taken as text."""
    path, equals, text = setting.partition("=")
    if not (equals and all(path.split("."))):
        raise ConfigError(f"the setting {setting!r}", wanted="path=value", remedy="Write for instance method.gamma=0.5")
    return assign(config, path, _literal(text))


def changed(config: Mapping[str, Any], settings: Mapping[str, Any]) -> Plain:
    """The plain config with some settings changed: dotted path -> a component, the name of one, or a plain value."""
    for path, value in settings.items():
        config = assign(config, path, plain(value))
    return dict(config)


def assign(config: Mapping[str, Any], path: str, value: Any) -> Plain:
    """The plain config with the value at a dotted path replaced.

    Naming another component replaces the one that is there, fields and all; naming the same one leaves its fields.
    """
    key, _, rest = path.partition(".")
    current = config.get(key, {})
    if rest and rest != "name":
        section = {"name": current} if isinstance(current, str) else current
        value = assign(section if isinstance(section, Mapping) else {}, rest, value)
    elif isinstance(current, Mapping) and current.get("name") == value:
        value = current
    return {**config, key: value}


def _literal(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
