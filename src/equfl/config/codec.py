"""A run's config as plain words, numbers and lists, and back: the two are exact inverses.

A component is written as its name and its fields, ``{"name": "equfl", "gamma": 0.5}``; the name alone stands for all
defaults. Nothing is guessed: an unknown key, a missing one or a value of another type is refused with the dotted path.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from hashlib import blake2b
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from equfl.config.schema import RunConfig
from equfl.core.component import Component, find
from equfl.core.errors import ComponentError, ConfigError

Plain = dict[str, Any]

NONE = "none"
"""How ``None`` is written where a format has no word for it, and wherever a text would make no sense."""

_SCALARS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", NoneType: repr(NONE)}


def to_dict(config: RunConfig) -> Plain:
    """The config as plain values."""
    return _plain_fields(config)


def from_dict(plain: Mapping[str, Any]) -> RunConfig:
    """The config of plain values; what is not mentioned has its default."""
    return _build(RunConfig, plain, "")


def plain(value: Any) -> Any:
    """One value of a config as plain values: a component by its name and fields, a tuple as a list."""
    if isinstance(value, Component):
        return {"name": value.name, **_plain_fields(value)}
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    return value


def config_hash(config: RunConfig) -> str:
    """Twelve letters and digits that name the config: equal for equal configs, in every process."""
    # Read back once, so that 1 and 1.0 in a field for numbers are the same.
    text = json.dumps(to_dict(from_dict(to_dict(config))), sort_keys=True)
    return blake2b(text.encode(), digest_size=6).hexdigest()


def _plain_fields(value: Any) -> Plain:
    pairs = [(field, getattr(value, field.name)) for field in fields(value)]
    # A None that is the default needs no words; TOML has none for it.
    return {field.name: plain(one) for field, one in pairs if not (one is None and field.default is None)}


def _build(cls: Any, given: Any, path: str) -> Any:
    """An instance of a dataclass out of plain values."""
    if not isinstance(given, Mapping):
        raise _wrong(path, given, "a section of keys and values")
    known = {field.name: field for field in fields(cls)}
    for key in given:
        if key not in known:
            raise ConfigError(
                f"{_join(path, key)}: unknown key",
                wanted=f"one of {', '.join(known)}" if known else "no keys at all",
                remedy=_nearest(str(key), known),
            )
    for field in known.values():
        if field.name not in given and field.default is MISSING and field.default_factory is MISSING:
            raise ConfigError(
                f"{_join(path, field.name)}: missing", wanted="a value", remedy="It has no default; write it down"
            )
    hints = _hints(cls)
    return cls(**{key: _value(hints[key], _named(known[key], value), _join(path, key)) for key, value in given.items()})


def _value(kind: Any, given: Any, path: str) -> Any:
    """A value of the annotated kind out of a plain one."""
    origin, members = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _union(members, given, path)
    if origin is Literal:
        if any(type(choice) is type(given) and choice == given for choice in members):
            return given
        raise _wrong(path, given, f"one of {', '.join(map(repr, members))}", _nearest(str(given), map(str, members)))
    if origin is tuple:
        return _tuple(members, given, path)
    if isinstance(kind, type) and issubclass(kind, Component):
        return _component(kind, given, path)
    if kind is float and type(given) is int:
        return float(given)
    if kind not in _SCALARS:
        raise TypeError(f"{path} is annotated as {kind}, which no config can say")
    if type(given) is not kind:
        raise _wrong(path, given, _SCALARS[kind])
    return given


def _union(members: tuple[Any, ...], given: Any, path: str) -> Any:
    if NoneType in members and (given is None or (given == NONE and str not in members)):
        return None
    errors = []
    for member in members:
        try:
            if member is not NoneType:
                return _value(member, given, path)
        except (ConfigError, ComponentError) as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    raise _wrong(path, given, " or ".join(error.wanted for error in errors))


def _tuple(members: tuple[Any, ...], given: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(given, list | tuple):
        raise _wrong(path, given, "a list", f"Write [{json.dumps(given, default=str)}]")
    if members[-1] is Ellipsis:
        members = members[:1] * len(given)
    if len(members) != len(given):
        raise _wrong(path, given, f"a list of {len(members)}")
    return tuple(
        _value(kind, one, f"{path}[{place}]") for place, (kind, one) in enumerate(zip(members, given, strict=True))
    )


def _component(kind: type[Component], given: Any, path: str) -> Component:
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, Mapping):
        raise _wrong(path, given, f"the name of a {kind.kind}, or a section with a name")
    settings = dict(given)
    name = settings.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError(
            f"{_join(path, 'name')}: missing" if name is None else f"{_join(path, 'name')} = {name!r}",
            wanted=f"the name of a {kind.kind}",
            remedy="'equfl describe' lists them all",
        )
    try:
        cls = find(kind, name)
    except ComponentError as error:
        raise ComponentError(f"{path}: {error.found}", wanted=error.wanted, remedy=error.remedy) from None
    return _build(cls, settings, path)


def _named(field: "Field[Any]", given: Any) -> Any:
    # A section without a name changes the component that stands there by default.
    if isinstance(given, Mapping) and "name" not in given:
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if isinstance(default, Component):
            return {"name": default.name, **given}
    return given


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def _wrong(path: str, given: Any, wanted: str, remedy: str = "") -> ConfigError:
    return ConfigError(
        f"{path or 'the config'} = {given!r}", wanted=wanted, remedy=remedy or "'equfl describe' shows every field"
    )


def _nearest(word: str, known: Any) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}" if near else "'equfl describe' shows every field"


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)
