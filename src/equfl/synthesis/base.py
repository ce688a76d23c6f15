"""What a synthesis is: the server's collected models in, a data set of the server's own out."""

from abc import abstractmethod

from equfl.core.arrays import Updates
from equfl.core.component import Component
from equfl.core.protocol import Diagnostics, RoundContext
from equfl.core.samples import Samples


class Synthesis(Component, kind="synthesis"):
    """One way in which the server gets data of its own."""

    @abstractmethod
    def __call__(self, collected: Updates, context: RoundContext) -> tuple[Samples, Diagnostics]:
        """Samples out of the collected models, one model a row, oldest first."""
