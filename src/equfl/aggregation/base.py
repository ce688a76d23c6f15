"""What an aggregation rule is: updates in, one update out."""

from abc import abstractmethod

from equfl.core.arrays import Shares, Updates, Vector
from equfl.core.component import Component
from equfl.core.protocol import RoundContext


class Aggregation(Component, kind="aggregation"):
    """Turns the participants' updates into one. The calibrated update is never among them."""

    @abstractmethod
    def __call__(self, updates: Updates, shares: Shares, context: RoundContext) -> Vector:
        """One update for the round; must not depend on the order of the clients."""
