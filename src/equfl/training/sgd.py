"""Plain mini-batch gradient descent, as every client of the paper runs it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import torch
from torch import Tensor

from equfl.core.arrays import Updates, Vector
from equfl.core.errors import ConfigError
from equfl.core.random import Draws
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

    def passes(self, rows: int) -> int:
        """How many passes over that many rows are begun in a round."""
        return ceil(self.steps(rows) / ceil(rows / self.batch_size))

    def permutations(self, rows: int, generator: Draws) -> Iterator[Tensor]:
        """One order of the rows per pass, drawn one after another; the engines share this, so they agree."""
        shuffle = generator("shuffle")
        for _ in range(self.passes(rows)):
            yield torch.randperm(rows, generator=shuffle)

    def released(self, gradients: Updates, noise: Sequence[torch.Generator]) -> Updates:
        """What is descended of some clients' batch gradients: all of it. Private trainings clip and add noise here."""
        return gradients

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
        noise = [generator("noise")]
        remaining = self.steps(len(samples))
        for order in self.permutations(len(samples), generator):
            for index in order.to(samples.inputs.device).split(self.batch_size)[:remaining]:
                batch = samples.rows(index)
                point = vector.detach().requires_grad_()
                logits, buffers = network.forward_training(point, buffers, batch.inputs)
                (gradient,) = torch.autograd.grad(objective(logits, batch), point)
                vector = vector - self.learning_rate * self.released(gradient.unsqueeze(0), noise)[0]
                remaining -= 1
        return vector, buffers
