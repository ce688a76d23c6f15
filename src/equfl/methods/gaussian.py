"""The paper's first control: a normal update in the place of the calibrated one."""

from dataclasses import dataclass

import torch

from equfl.core.arrays import Vector
from equfl.methods._random_update import RandomUpdate


@dataclass(frozen=True)
class Gaussian(RandomUpdate, name="gaussian"):
    """Add ``g_0 ~ N(0, deviation²)`` to every parameter, each round after s.

    It shows what bias is left when a model is merely made worse: whatever it gains, it must be compared with at equal
    accuracy. Only the server is involved; the target does not matter.
    """

    deviation: float = 2.0
    """Standard deviation of each entry."""

    def draw(self, parameters: int, generator: torch.Generator) -> Vector:
        return self.deviation * torch.randn(parameters, generator=generator)
