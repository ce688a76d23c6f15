"""A part that a user can choose: a frozen dataclass with a kind and a name.

The fields are its hyper-parameters; from the declaration follow the section in the config file, the help text, the
label in plots and the id in tests. Every kind has one abstract base, which names the kind::

    class Aggregation(Component, kind="aggregation"): ...

and every final class names itself, like the module it stands in::

    @dataclass(frozen=True)
    class TrimmedMean(Aggregation, name="trimmed_mean"): ...

Other packages add components by declaring an entry point in the group ``equfl.components`` that points at a module.
"""

import difflib
import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import fields
from importlib.metadata import entry_points
from typing import Any, ClassVar, TypeVar

from equfl.core.errors import ComponentError

ENTRY_POINTS = "equfl.components"


class Component:
    """Base of all components. ``str`` gives a short label, ``repr`` something to paste back."""

    kind: ClassVar[str]
    name: ClassVar[str]
    _known: ClassVar[dict[str, type["Component"]]]

    def __init_subclass__(cls, *, kind: str | None = None, name: str | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if kind is not None:
            cls.kind = kind
            cls._known = {}
        if name is not None:
            cls.name = name
            other = cls._known.get(name)
            if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
                raise ComponentError(
                    f"the {cls.kind} {name!r} is declared by {other.__module__} and by {cls.__module__}",
                    wanted="one component per name",
                    remedy="Rename one of them",
                )
            cls._known[name] = cls

    def __str__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)}"
            for field in fields(self)  # type: ignore[arg-type]
            if getattr(self, field.name) != field.default
        ]
        return f"{self.name}({', '.join(changed)})" if changed else self.name


def parts(component: Component) -> Iterator[Component]:
    """The component, and every component that it is made of."""
    yield component
    for name in getattr(component, "__dataclass_fields__", ()):  # without hyper-parameters it need not be a dataclass
        value = getattr(component, name)
        if isinstance(value, Component):
            yield from parts(value)


C = TypeVar("C", bound=Component)


def known(base: type[C]) -> dict[str, type[C]]:
    """Every component of the kind, by name: those in the base's own package, and those of other packages."""
    package = importlib.import_module(base.__module__.rpartition(".")[0])
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    for entry in entry_points(group=ENTRY_POINTS):
        entry.load()
    return dict(sorted(base._known.items()))  # type: ignore[arg-type]


def find(base: type[C], name: str) -> type[C]:
    """The component of that name; the error for an unknown one names the nearest."""
    if name in base._known:
        return base._known[name]  # type: ignore[return-value]
    everything = known(base)
    if name not in everything:
        near = difflib.get_close_matches(name, everything, n=1, cutoff=0.5)
        raise ComponentError(
            f"no {base.kind} is called {name!r}",
            wanted=f"one of {', '.join(everything)}",
            remedy=f"Did you mean {near[0]!r}" if near else "See 'equfl describe'",
        )
    return everything[name]
