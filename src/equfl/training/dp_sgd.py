"""Differentially private stochastic gradient descent (Abadi et al., 2016), for the single row."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.func import grad, vmap

from equfl.core.arrays import Vector
from equfl.core.errors import ConfigError
from equfl.core.random import Draws
from equfl.core.samples import Samples
from equfl.core.vector import Buffers, Network
from equfl.privacy.noise import check_noise, clipped, noisy
from equfl.privacy.release import Protection, Release
from equfl.training.base import Objective
from equfl.training.sgd import SGD

AT_ONCE = 2**26
"""How many numbers the single rows' gradients may take at a time."""


@dataclass(frozen=True)
class DPSGD(SGD, name="dp_sgd"):
    """``w <- w - learning_rate / B * (sum of the rows' clipped gradients + noise * clip * N(0, I))``.

    Every row of the client is in a batch with probability ``q = batch_size / rows``, whatever the others do (Poisson
    sampling), so batches differ in length and may be empty; B is their expected length. The guarantee is for single
    rows: nobody, the server included, can tell the model trained with a row from the one trained without it.

    The method's objective is taken of each row by itself. A weight scales a row's gradient before it is clipped, so it
    shows only in gradients that are short enough. A model with batch norm has no gradient by rows and is refused.
    """

    clip: float = 1.0
    """Largest length of a row's gradient. The paper's C of 0.05 leaves a fraction of nearly all of them, so that at its
    learning rate a hundred rounds lead nowhere."""
    noise: float = 1.0
    """Standard deviation of the noise on a batch's sum over ``clip``: the noise multiplier."""
    delta: float = 1e-5
    """The δ to state ε for; below one over the number of a client's rows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_noise(self.clip, self.noise, self.delta)

    def share(self, rows: int) -> float:
        """The probability with which a row is in a batch."""
        return min(1.0, self.batch_size / rows)

    def expected(self, rows: int) -> float:
        """The mean length of a batch."""
        return self.share(rows) * rows

    def sampled(self, rows: int, generator: Draws) -> Iterator[Tensor]:
        """Which rows are in each step's batch; the engines share this, so they agree."""
        draws, share = generator("sampling"), self.share(rows)
        for _ in range(self.steps(rows)):
            yield (torch.rand(rows, generator=draws) < share).nonzero().squeeze(1)

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
        refuse_buffers(buffers)
        rows, noise = len(samples), [generator("noise")]
        for index in self.sampled(rows, generator):
            total = torch.zeros_like(vector)
            for part in index.to(samples.inputs.device).split(max(1, AT_ONCE // len(vector))):
                gradients = row_gradients(vector, samples.rows(part), network, objective)
                total = total + clipped(gradients, self.clip).sum(dim=0)
            (total,) = noisy(total.unsqueeze(0), self.noise * self.clip, noise)
            vector = vector - self.learning_rate / self.expected(rows) * total
        return vector, buffers

    def protection(self, rows: int, rounds: int) -> Protection:
        release = Release(self.noise, rounds * self.steps(rows), self.share(rows))
        return Protection("row", (release,), self.delta)


def row_gradients(vector: Vector, samples: Samples, network: Network, objective: Objective) -> Tensor:
    """The gradient of the objective of each row alone, one line per row."""
    fields = {"inputs": samples.inputs, "labels": samples.labels, "groups": samples.groups}
    if samples.importance is not None:
        fields["importance"] = samples.importance
    if not len(samples):
        return vector.new_empty(0, len(vector))

    def loss(point: Vector, row: dict[str, Tensor]) -> Tensor:
        alone = replace(samples, **{name: value.unsqueeze(0) for name, value in row.items()})  # type: ignore[arg-type]
        logits, _ = network.forward_training(point, {}, alone.inputs)
        return objective(logits, alone)

    gradients: Tensor = vmap(grad(loss), in_dims=(None, 0))(vector, fields)
    return gradients


def refuse_buffers(buffers: Buffers) -> None:
    """Batch norm mixes the rows of a batch, and its statistics would leave the client without noise."""
    if buffers:
        raise ConfigError(
            f"training 'dp_sgd' with a model that keeps statistics of its batches ({next(iter(buffers))})",
            wanted="a model without batch norm",
            remedy="Choose one with group norm, or none",
        )
