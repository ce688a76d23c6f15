"""What leaves a client with every method, read off the methods' own declarations."""

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

from equfl.aggregation.base import Aggregation
from equfl.core.component import known
from equfl.core.disclosure import Disclosure
from equfl.methods.base import Method

HEADER = ("method", "leaves a client", "numbers", "when", "sums suffice")

SAME = "as with fedavg"


@dataclass(frozen=True)
class Declared:
    """One method with one choice of settings."""

    label: str
    leaves: tuple[Disclosure, ...]
    """What leaves beyond FedAvg; all of it where even what leaves in FedAvg must be seen client by client."""
    same: bool
    """Whether what leaves in FedAvg leaves just as there."""
    by_group: bool
    """Whether a prediction needs the group."""

    @property
    def only_sums(self) -> bool:
        """Whether the server can do without seeing single clients."""
        return all(one.only_sum for one in self.leaves)

    def rows(self) -> list[tuple[str, ...]]:
        """The method's lines of the table, under ``HEADER``."""
        lines = [(SAME, "", "", "yes")] if self.same else []
        lines += [(one.what, one.size, one.when, "yes" if one.only_sum else "no") for one in self.leaves]
        return [(self.label if number == 0 else "", *line) for number, line in enumerate(lines)]


def declared() -> list[Declared]:
    """All methods: FedAvg in full, the others by what they add; and again for settings that change it.

    What needs a setting that has no default (a method from another package may) can only be asked once it has one.
    """
    methods = {
        name: cls()
        for name, cls in known(Method).items()
        if all(field.default is not MISSING or field.default_factory is not MISSING for field in fields(cls))  # type: ignore[arg-type]
    }
    fedavg = methods.pop("fedavg")
    found = [Declared("fedavg", fedavg.leaves(), same=False, by_group=False)]
    for method in methods.values():
        found += [
            _declared(variant, label, fedavg.leaves()) for variant, label in ((method, method.name), *_variants(method))
        ]
    return found


def by_group(everything: list[Declared]) -> list[str]:
    """The methods whose predictions need the group."""
    return [one.label for one in everything if one.by_group and "," not in one.label]


def rules() -> tuple[list[str], list[str]]:
    """The aggregation rules that need only sums, and those that must see single updates."""
    everything = known(Aggregation)  # type: ignore[type-abstract]
    sums = [name for name, rule in everything.items() if rule.sums_only]
    return sums, [name for name in everything if name not in sums]


def _declared(method: Method, label: str, usual: tuple[Disclosure, ...]) -> Declared:
    leaves = method.leaves()
    same = leaves[: len(usual)] == usual
    return Declared(label, leaves[len(usual) :] if same else leaves, same, method.uses_group_at_prediction)


def _variants(method: Method) -> Iterator[tuple[Method, str]]:
    """The method with each choice that makes something else leave the client."""
    hints = get_type_hints(type(method))
    for field in fields(method):  # type: ignore[arg-type]
        choices: tuple[Any, ...] = get_args(hints[field.name]) if get_origin(hints[field.name]) is Literal else ()
        for choice in choices:
            variant: Method = replace(method, **{field.name: choice})  # type: ignore[type-var]
            if variant.leaves() != method.leaves():
                yield variant, f"{method.name}, {field.name} = {choice}"
