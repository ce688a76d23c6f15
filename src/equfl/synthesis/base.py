"""What a synthesis is: the server's collected models in, a data set of the server's own out."""

from abc import abstractmethod
from typing import ClassVar

from equfl.core.arrays import Updates
from equfl.core.component import Component
from equfl.core.errors import CalibrationError
from equfl.core.protocol import Diagnostics, RoundContext
from equfl.core.samples import Samples, Shards


class Synthesis(Component, kind="synthesis"):
    """One way in which the server gets data of its own."""

    takes_real_rows: ClassVar[bool] = False
    """Whether it needs the clients' rows, which no server has: a control, for simulations only."""

    @abstractmethod
    def __call__(self, collected: Updates, context: RoundContext) -> tuple[Samples, Diagnostics]:
        """Samples out of the collected models, one model a row, oldest first."""


def clients_rows(context: RoundContext, control: Synthesis) -> Shards:
    """The clients' rows, for a control that takes them; refused where nobody can give them."""
    if context.real_rows is None:
        raise CalibrationError(
            f"the control {control.name!r} without the clients' rows",
            wanted="a simulation, which has them",
            remedy="Choose another method.synthesis: a real server has no such rows",
        )
    return context.real_rows
