"""What local training is: a model and rows in, a model out."""

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from equfl.core.arrays import Logits, Vector
from equfl.core.component import Component
from equfl.core.samples import Samples
from equfl.core.vector import Buffers, Network

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
        generator: torch.Generator,
    ) -> tuple[Vector, Buffers]:
        """The local model after this round's training."""

    @abstractmethod
    def steps(self, rows: int) -> int:
        """How many gradient steps a client with that many rows takes."""
