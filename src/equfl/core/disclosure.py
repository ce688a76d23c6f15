"""What leaves a client: said by the method that asks for it, checked against what is sent, shown to the user."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Disclosure:
    """One thing that a client sends to the server."""

    name: str
    """The name under which it is sent."""
    what: str
    """What it is, in words."""
    shape: tuple[str, ...] = ()
    """Its dimensions: ``parameters``, ``inputs``, ``labels``, ``groups`` or a setting of the method."""
    when: Literal["once", "each round", "when asked"] = "each round"
    """``once`` is before the first round; ``when asked`` is in the rounds in which the instructions ask for it."""
    only_sum: bool = True
    """Whether the method needs nothing but the sum over the clients, so that single values may stay secret."""

    @property
    def size(self) -> str:
        """How much it is, in words."""
        return " x ".join(self.shape) if self.shape else "1"

    def dimensions(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """How much it is, in numbers."""
        return tuple(sizes[dimension] for dimension in self.shape)


UPDATE = Disclosure("update", "change of the model's parameters in local training", ("parameters",))
ROWS = Disclosure("rows", "number of training rows")
