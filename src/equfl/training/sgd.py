"""Plain mini-batch gradient descent, as every client of the paper runs it."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import torch
from torch import Tensor

from equfl.core.arrays import Vector
from equfl.core.errors import ConfigError
from equfl.core.samples import Samples
from equfl.core.vector import Buffers, Network
from equfl.training.base import Objective, Training


@dataclass(frozen=True)
class SGD(Training, name="sgd"):
    """Shuffle, cut into batches (the last may be short), step ``w <- w - learning_rate * gradient`` on each.

    The paper's text has one mini-batch per round, its Algorithm 2 "local training"; the code of its data protocol
    trains one epoch. One epoch is the default; ``batches = 1`` gives the letter of the text.
    """

    learning_rate: float = 0.1
    batch_size: int = 64
    epochs: int = 1
    """Passes over the client's rows in one round."""
    batches: int | None = None
    """If given, stop after so many batches instead of after whole epochs."""

    def __post_init__(self) -> None:
        for field, value in (("learning_rate", self.learning_rate), ("batch_size", self.batch_size)):
            if value <= 0:
                raise ConfigError(
                    f"training.{field} = {value}", wanted="a number above 0", remedy="The paper uses 0.1 and 64"
                )
        if self.epochs < 1 or (self.batches is not None and self.batches < 1):
            raise ConfigError(
                f"training.epochs = {self.epochs}, training.batches = {self.batches}",
                wanted="at least one of each, or no 'batches' at all",
                remedy="A client that does not train should not take part",
            )

    def steps(self, rows: int) -> int:
        return self.epochs * ceil(rows / self.batch_size) if self.batches is None else self.batches

    def permutations(self, rows: int, generator: torch.Generator) -> Iterator[Tensor]:
        """One order of the rows per epoch, drawn one after another; the engines share this, so they agree."""
        for _ in range(ceil(self.steps(rows) / ceil(rows / self.batch_size))):
            yield torch.randperm(rows, generator=generator)

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
        remaining = self.steps(len(samples))
        for order in self.permutations(len(samples), generator):
            for index in order.to(samples.inputs.device).split(self.batch_size)[:remaining]:
                batch = samples.rows(index)
                point = vector.detach().requires_grad_()
                logits, buffers = network.forward_training(point, buffers, batch.inputs)
                (gradient,) = torch.autograd.grad(objective(logits, batch), point)
                vector = vector - self.learning_rate * gradient
                remaining -= 1
        return vector, buffers
