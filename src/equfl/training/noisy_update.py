"""Noise on what leaves the client: the paper's differential privacy, read as it is written."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from equfl.core.arrays import Vector
from equfl.core.errors import ConfigError
from equfl.core.random import Draws
from equfl.core.samples import Samples
from equfl.core.vector import Buffers, Network
from equfl.privacy.noise import check_noise, clipped, noisy
from equfl.privacy.release import Protection, Release
from equfl.training.base import Objective, Training
from equfl.training.sgd import SGD


@dataclass(frozen=True)
class NoisyUpdate(Training, name="noisy_update"):
    """Train as always, clip the change of the model to length ``clip``, add ``noise * clip * N(0, I)``, and send that.

    "When clients add noise to their gradients before uploading them", as the caption of the paper's table says. Each
    client adds the noise itself, so it is protected from the server as well, all its rows together: nobody can tell
    its update from none at all. Against the suspicion that it might have had other rows, the sensitivity is twice the
    clip.
    """

    local: Training = SGD()
    """What the client does before: any training without noise of its own."""
    clip: float = 0.05
    """Largest length of what is clipped, the paper's C."""
    noise: float = 0.1
    """Standard deviation of the noise over ``clip``, the paper's σ; it uses 0.1, 0.2 and 0.3."""
    clip_target: Literal["change", "gradient"] = "change"
    """What is clipped: the change of the model, or the gradient it stands for, ``change / learning_rate``, which at the
    same ``clip`` is tighter by the learning rate."""
    delta: float = 1e-5
    """The δ to state ε for."""

    def __post_init__(self) -> None:
        check_noise(self.clip, self.noise, self.delta)
        if self.local.protection(1, 1) is not None:
            raise ConfigError(
                f"training.local = {self.local.name!r}, which adds noise itself",
                wanted="a training without noise",
                remedy="Choose the one or the other; 'sgd' is the paper's",
            )

    @property
    def learning_rate(self) -> float:  # type: ignore[override]
        return self.local.learning_rate

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
        trained, buffers = self.local.train(
            vector, buffers, samples, network=network, objective=objective, generator=generator
        )
        return self.release(vector, trained.unsqueeze(0), [generator])[0], buffers

    def release(self, vector: Vector, trained: Tensor, generators: list[Draws]) -> Tensor:
        """What leaves some clients, one row each, that began with ``vector`` and have trained."""
        clip = self.clip if self.clip_target == "change" else self.clip * self.learning_rate
        changes = clipped(trained - vector, clip)
        return vector + noisy(changes, self.noise * clip, [generator("noise") for generator in generators])

    def steps(self, rows: int) -> int:
        return self.local.steps(rows)

    def protection(self, rows: int, rounds: int) -> Protection:
        return Protection("client", (Release(self.noise, rounds),), self.delta)
