"""The directions that the federation itself has taken."""

from dataclasses import dataclass

from equfl.calibration.base import Directions, Place, Scope, span_of
from equfl.core.errors import ConfigError


@dataclass(frozen=True)
class Trajectory(Scope, name="trajectory"):
    """The span of the first differences of the collected models, each brought to length 1.

    Real data has moved the model there, so these directions mean something on real rows.
    """

    differences: int = 10
    """How many of them, from the first."""

    def __post_init__(self) -> None:
        if self.differences < 1:
            raise ConfigError(f"scope.differences = {self.differences}", wanted="1 or more", remedy="The default is 10")

    def directions(self, place: Place) -> Directions | None:
        steps = place.collected.diff(dim=0)[: self.differences]
        lengths = steps.norm(dim=1, keepdim=True)
        moved = lengths.squeeze(1) > 0
        return span_of(steps[moved] / lengths[moved]) if moved.any() else None
