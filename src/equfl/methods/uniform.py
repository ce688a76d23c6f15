"""The paper's second control: a uniform update in the place of the calibrated one."""

from dataclasses import dataclass

import torch

from equfl.core.arrays import Vector
from equfl.methods._random_update import RandomUpdate


@dataclass(frozen=True)
class Uniform(RandomUpdate, name="uniform"):
    """Add ``g_0 ~ U[-reach, reach]`` to every parameter, each round after s.

    With the same reach its entries are smaller than those of ``gaussian`` (their standard deviation is 0.58 of it), so
    it should harm less. Only the server is involved; the target does not matter.
    """

    reach: float = 2.0
    """The largest entry there can be."""

    def draw(self, parameters: int, generator: torch.Generator) -> Vector:
        return self.reach * (2 * torch.rand(parameters, generator=generator) - 1)
