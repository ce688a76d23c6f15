"""What a user asks to run, as a config: a preset, a file or a table, changed by options."""

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from equfl.config.codec import Plain, from_dict
from equfl.config.files import read_plain
from equfl.config.overrides import assign, override
from equfl.config.presets import read_preset
from equfl.config.schema import RunConfig
from equfl.core.component import known
from equfl.core.errors import ConfigError
from equfl.fairness.base import Notion

CONFIGS = (".toml", ".yaml", ".yml", ".json")


def requested(
    plain: Plain, *, options: Iterable[tuple[str, str | Plain | None]] = (), settings: Sequence[str] = ()
) -> RunConfig:
    """The config that the words on the command line add up to; a later one overrules an earlier one."""
    for path, value in options:
        if value is not None:
            plain = assign(plain, path, _number_or_text(value) if isinstance(value, str) else value)
    for setting in settings:
        plain = override(plain, setting)
    return from_dict(plain)


def notion_named(word: str) -> str:
    """A notion's name, also for its symbol: ``eo`` and ``EO`` are equalized odds."""
    notions = known(Notion)  # type: ignore[type-abstract]
    symbols = {cls.symbol.lower(): name for name, cls in notions.items() if hasattr(cls, "symbol")}
    return symbols.get(word.lower(), as_name(word))


def target_named(words: str) -> str | Plain:
    """A target in words: a notion, or several joined by '+' as in ``eo+dp``."""
    names = [notion_named(word.strip()) for word in words.split("+")]
    return names[0] if len(names) == 1 else {"name": "several", "notions": names}


def as_name(word: str) -> str:
    """Components are named as modules are, so a hyphen stands for an underscore."""
    return word.replace("-", "_")


def started(
    source: str, *, label: str | None = None, sensitive: Sequence[str] = (), client: str | None = None
) -> Plain:
    """The preset, the config file or the table that a run starts from, as a plain config."""
    roles = {"label": label, "sensitive": list(sensitive), "client": client}
    columns = {name: value for name, value in roles.items() if value}
    path = Path(source).expanduser()
    if path.is_dir():
        raise ConfigError(
            f"{source} is a folder",
            wanted="a preset, a config file or a table",
            remedy=f"If it is a run's folder, write 'equfl resume {source}'",
        )
    # A preset has no suffix, so whatever has one, or lies somewhere, is a file.
    is_file = path.suffix != "" or path.name != source or path.exists()
    if is_file and path.suffix.lower() not in CONFIGS:
        # Absolute, so that the run can be resumed from any other folder.
        return {"data": {"name": "table", "path": str(path.absolute()), **columns}, "preset": path.stem}
    if columns:
        raise ConfigError(
            f"--{next(iter(columns))} was given with {source!r}, which is not a table",
            wanted="a table, as in 'equfl run people.csv --label hired --sensitive sex'",
            remedy=f"Name the table, or leave out {', '.join(f'--{name}' for name in columns)}",
        )
    if not is_file:
        return read_preset(source)
    return {"preset": path.stem, **read_plain(path)}


def _number_or_text(text: str) -> Any:
    # As in --set: what is not a value of TOML is a text, and the config says whether a text will do.
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, int | float) else text
