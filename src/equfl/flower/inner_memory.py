"""What a wrapped strategy itself remembers between rounds: momenta, second moments, an adapted clipping norm.

Flower has no word for it, so it is found: an attribute that was not there, or was another value, when the strategy was
wrapped. Arrays are kept as tensors and the rest as JSON, never as pickles; what is neither is told once.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from flwr.app import ArrayRecord
from flwr.serverapp.strategy import Strategy
from torch import Tensor

from equfl.core.errors import RunError

LOG = logging.getLogger("flwr")


def links(strategy: Strategy) -> Iterator[Strategy]:
    """The strategy and those that it wraps, from the outside in."""
    inner: Any = strategy
    while isinstance(inner, Strategy):
        yield inner
        inner = getattr(inner, "strategy", None)


def setting(strategy: Strategy, name: str) -> Any:
    """A setting of the first link that has it; ``None`` if none has."""
    return next((getattr(link, name) for link in links(strategy) if hasattr(link, name)), None)


def hand_over(strategy: Strategy, arrays: ArrayRecord) -> None:
    """Give the model that is sent out to strategies that keep a copy of the one they made.

    FedAvgM would otherwise step from its own, uncorrected model, and the correction would grow with every round.
    """
    for link in links(strategy):
        if isinstance(getattr(link, "current_arrays", None), ArrayRecord):
            link.current_arrays = arrays.copy()  # type: ignore[attr-defined]


class InnerMemory:
    """The memory of a strategy and of those that it wraps."""

    def __init__(self, strategy: Strategy) -> None:
        self.links = list(links(strategy))
        self._before = [dict(vars(link)) for link in self.links]
        self._told: set[str] = set()

    def save(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that has changed since the strategy was wrapped: arrays by name, and the rest."""
        arrays: dict[str, Tensor] = {}
        rest: dict[str, Any] = {}
        for number, (link, before) in enumerate(zip(self.links, self._before, strict=True)):
            for name, value in vars(link).items():
                if name in ("current_arrays", "strategy") or (name in before and before[name] is value):
                    continue
                found = _arrays(value)
                if found is not None:
                    arrays |= {
                        f"{number}/{name}/{key}": torch.from_numpy(np.array(part)) for key, part in found.items()
                    }
                elif value is None or isinstance(value, bool | int | float | str):
                    rest[f"{number}/{name}"] = value
                elif name not in self._told:
                    self._told.add(name)
                    LOG.warning("equfl: %s.%s cannot be saved, and is new after a restart", type(link).__name__, name)
            spent = _releases(link)
            if spent:
                rest[f"{number}/releases"] = spent
        return arrays, rest

    def restore(self, arrays: Mapping[str, Tensor], rest: Mapping[str, Any]) -> None:
        """Put back what ``save`` found."""
        grouped: dict[str, dict[str, Any]] = {}
        for name, value in arrays.items():
            number, attribute, key = name.split("/", maxsplit=2)
            grouped.setdefault(f"{number}/{attribute}", {})[key] = value.numpy().copy()
        for name, value in {**rest, **{name: _structured(parts) for name, parts in grouped.items()}}.items():
            number, _, attribute = name.partition("/")
            link = self.links[int(number)]
            if attribute == "releases":
                _demand_spent(link, value)
            else:
                setattr(link, attribute, value)


LIST, DICT = "list", "dict"


def _arrays(value: object) -> dict[str, Any] | None:
    """A list or a mapping of arrays as one mapping, whose keys say which it was."""
    if isinstance(value, list) and value and all(isinstance(part, np.ndarray | np.generic) for part in value):
        return {f"{LIST}/{position:06d}": part for position, part in enumerate(value)}
    if isinstance(value, dict) and value and all(isinstance(part, np.ndarray | np.generic) for part in value.values()):
        return {f"{DICT}/{key}": part for key, part in value.items()}
    return None


def _structured(parts: Mapping[str, Any]) -> list[Any] | dict[str, Any]:
    if next(iter(parts)).startswith(f"{LIST}/"):
        return [parts[key] for key in sorted(parts)]
    return {key.removeprefix(f"{DICT}/"): value for key, value in parts.items()}


def _releases(link: Strategy) -> int:
    accountant: Any = getattr(link, "accountant", None)
    return accountant.get_privacy_spent().num_releases if accountant is not None else 0


def _demand_spent(link: Strategy, releases: int) -> None:
    # An accountant that forgets would print a smaller epsilon than was spent.
    if _releases(link) < releases:
        raise RunError(
            f"an accountant that knows of {_releases(link)} releases, for a run that has made {releases}",
            wanted="the privacy that is spent already",
            remedy="Compose the accountant with the earlier releases before you wrap its strategy",
        )
