"""What local training is: a model and rows in, a model out."""

from abc import abstractmethod
from collections.abc import Callable

from torch import Tensor

from equfl.core.arrays import Logits, Vector
from equfl.core.component import Component
from equfl.core.random import Draws
from equfl.core.samples import Samples
from equfl.core.vector import Buffers, Network
from equfl.privacy.release import Protection

Objective = Callable[[Logits, Samples], Tensor]
"""The scalar that a client descends on one batch."""


class Training(Component, kind="training"):
    """What a client does between receiving the global model and answering."""

    learning_rate: float

    @abstractmethod
    def train(
        self,
        vector: Vector,
        buffers: Buffers,
        samples: Samples,
        *,
        network: Network,
        objective: Objective,
        generator: Draws,
    ) -> tuple[Vector, Buffers]:
        """The local model after this round's training."""

    @abstractmethod
    def steps(self, rows: int) -> int:
        """How many gradient steps a client with that many rows takes."""

    def protection(self, rows: int, rounds: int) -> Protection | None:
        """Whom the training protects at a client with that many rows, in so many rounds; ``None`` if nobody."""
        return None
