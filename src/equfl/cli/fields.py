"""What a dataclass says about its fields: type, default, and the docstring under each."""

import ast
import inspect
import json
import textwrap
from dataclasses import MISSING, dataclass, fields, is_dataclass
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from equfl.config.codec import NONE, plain
from equfl.core.component import Component

_WORDS = {bool: "true or false", int: "whole number", float: "number", str: "text", NoneType: NONE}
_SEVERAL = {int: "whole numbers", float: "numbers", str: "texts"}


@dataclass(frozen=True)
class Setting:
    """One field, in the words of a config."""

    name: str
    type: str
    default: str | None
    """As it is written in a config; ``None`` where a value must be given."""
    meaning: str
    """The docstring under the field; empty where there is none, or no source to read it in."""

    @property
    def assignment(self) -> str:
        return self.name if self.default is None else f"{self.name} = {self.default}"


def settings(cls: Any) -> list[Setting]:
    """The fields of a dataclass, in its own order."""
    hints, said = get_type_hints(cls), meanings(cls)
    return [
        Setting(field.name, type_words(hints[field.name]), _default(field), said.get(field.name, ""))
        for field in fields(cls)
    ]


def meanings(cls: type) -> dict[str, str]:
    """Field -> the docstring under it, in this class or in one that it inherits from."""
    said: dict[str, str] = {}
    for ancestor in reversed(cls.__mro__):
        if is_dataclass(ancestor):
            said |= _docstrings(ancestor)
    return said


def type_words(kind: Any) -> str:
    """An annotation for people: ``a | b`` for a choice, the kind of a component, a list of numbers."""
    origin, members = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " | ".join(map(str, members))
    if origin in (Union, UnionType):
        return " or ".join(type_words(member) for member in members)
    if origin is tuple:
        if members[-1] is Ellipsis:
            return f"list of {_SEVERAL.get(members[0], type_words(members[0]))}"
        return f"list of {len(members)}: {', '.join(type_words(member) for member in members)}"
    if isinstance(kind, type) and issubclass(kind, Component):
        return kind.kind
    return _WORDS.get(kind) or str(getattr(kind, "__name__", kind))


def _default(field: Any) -> str | None:
    if field.default is MISSING and field.default_factory is MISSING:
        return None
    value = field.default if field.default_factory is MISSING else field.default_factory()
    if value is None:
        return f'"{NONE}"'
    # A component by its label, which names what differs from its own defaults; the rest as TOML, which agrees with JSON
    # about numbers, texts and lists.
    return json.dumps(str(value) if isinstance(value, Component) else plain(value), ensure_ascii=False)


def _docstrings(cls: type) -> dict[str, str]:
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}  # typed at a prompt, or installed without its source
    statements = body.body if isinstance(body, ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(statements)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
