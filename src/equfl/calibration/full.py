"""The whole model, as in the paper."""

from dataclasses import dataclass

from equfl.calibration.base import Directions, Place, Scope


@dataclass(frozen=True)
class Full(Scope, name="full"):
    """Every parameter may move. So many are there that the synthetic gap can be closed without the real one."""

    def directions(self, place: Place) -> Directions:
        return Directions(len(place.vector), lambda coordinates: coordinates)
