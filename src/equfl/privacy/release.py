"""What a private client lets out, as far as it matters for how much that says about its rows."""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["row", "client"]


@dataclass(frozen=True)
class Release:
    """Something computed from rows, with normal noise on it, let out several times."""

    noise: float
    """Standard deviation of the noise over the sensitivity: the noise multiplier. 0 is none."""
    times: int
    share: float = 1.0
    """Probability with which a row is used in one of these times, independently of all others (Poisson sampling)."""


@dataclass(frozen=True)
class Protection:
    """Whom a training protects, and from what."""

    unit: Unit
    """What cannot be told apart: the data with and without one row, or with and without all rows of one client."""
    releases: tuple[Release, ...]
    """All that one such unit has a part in."""
    delta: float
    """The δ to state ε for."""
