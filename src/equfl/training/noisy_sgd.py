"""Mini-batch gradient descent with noise on every batch's gradient: the other reading of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from equfl.core.arrays import Updates
from equfl.privacy.noise import check_noise, clipped, noisy
from equfl.privacy.release import Protection, Release
from equfl.training.sgd import SGD


@dataclass(frozen=True)
class NoisySGD(SGD, name="noisy_sgd"):
    """Shuffled batches as in ``sgd``; each batch's mean gradient is clipped, then ``noise * clip * N(0, I)`` is added.

    This is what "each client clips its gradients to C, then adds N(0, σ²C²I)" does when it is put into a training loop,
    and the noise is not divided by the batch size. Other than in DP-SGD (``dp_sgd``), one row can turn its whole
    batch's gradient around, from one vector of length C to another: the sensitivity is 2 C. But a row is in one batch
    of each pass, so that counts once per pass. With the paper's noise that guarantees nothing worth the name.
    """

    clip: float = 0.05
    """Largest length of a batch's gradient, the paper's C."""
    noise: float = 0.1
    """Standard deviation of the noise over ``clip``, the paper's σ; it uses 0.1, 0.2 and 0.3."""
    delta: float = 1e-5
    """The δ to state ε for; below one over the number of a client's rows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_noise(self.clip, self.noise, self.delta)

    def released(self, gradients: Updates, noise: Sequence[torch.Generator]) -> Updates:
        return noisy(clipped(gradients, self.clip), self.noise * self.clip, noise)

    def protection(self, rows: int, rounds: int) -> Protection:
        return Protection("row", (Release(self.noise / 2, rounds * self.passes(rows)),), self.delta)
