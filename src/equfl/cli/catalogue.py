"""Every kind of component that a config can name, and where in the config it stands."""

import inspect
from dataclasses import dataclass, fields
from typing import Any, get_args, get_type_hints

from equfl.config.schema import RunConfig
from equfl.core.component import Component, known


@dataclass(frozen=True)
class Shelf:
    """One kind of component and all that there are of it."""

    kind: str
    base: type[Component]
    path: str
    """Where it stands in a config: ``target`` for notions, ``method.synthesis`` for ways to synthesise."""
    meaning: str
    """First sentence about the kind."""
    components: dict[str, type[Component]]


def shelves() -> dict[str, Shelf]:
    """All kinds, by kind: those that a run names, then those that their components name in turn."""
    found: dict[str, Shelf] = {}
    waiting: list[tuple[str, Any]] = _slots(RunConfig, "")
    while waiting:
        path, base = waiting.pop(0)
        if base.kind not in found:
            found[base.kind] = Shelf(base.kind, base, path, first_sentence(base), known(base))
            for component in found[base.kind].components.values():
                waiting += _slots(component, f"{path}.")
    return found


def about(cls: type) -> str:
    """The class's own docstring; empty if it has none but the signature that dataclasses write."""
    text = inspect.cleandoc(cls.__doc__ or "")
    return "" if text.startswith(f"{cls.__name__}(") else text


def first_sentence(cls: type) -> str:
    """What it is, on one line."""
    return " ".join(about(cls).partition("\n\n")[0].split()).replace("``", "")


def _slots(cls: Any, prefix: str) -> list[tuple[str, Any]]:
    hints = get_type_hints(cls)
    return [
        (f"{prefix}{field.name}", part)
        for field in fields(cls)
        for part in (hints[field.name], *get_args(hints[field.name]))
        if isinstance(part, type) and issubclass(part, Component)
    ]
