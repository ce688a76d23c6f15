"""Like rows treated alike, on the server's own rows: a step down the variation of predictions between near rows.

No two of the server's few rows are near each other, so neighbours are made: the same row, codes untouched, with its
numbers moved a little. That is what the nearest rows of a real row look like, as rows with another code are far away.
"""

from dataclasses import dataclass

import torch

from equfl.calibration.base import Place
from equfl.core.arrays import Inputs, Updates, Vector
from equfl.core.errors import ConfigError
from equfl.fairness.rates import margins


@dataclass(frozen=True)
class Smoothing:
    """Descend ``F(w) = mean_z (sigmoid(m(z)) - sigmoid(m(z')))²`` over rows z and made neighbours z'.

    The shortest way down would be to predict the more frequent class for ever more rows. It costs accuracy at once, so
    the part of the step that changes the mean prediction is left out.
    """

    width: float = 0.6
    """Standard deviation of the numbers of a made neighbour around those of its row."""
    steps: int = 3
    """Steps per round, each with new neighbours."""

    def __post_init__(self) -> None:
        if self.width <= 0 or self.steps < 1:
            raise ConfigError(
                f"width = {self.width}, steps = {self.steps}", wanted="a width above 0 and 1 step or more", remedy=""
            )

    def smoothed(self, place: Place, length: float, generator: torch.Generator) -> Vector:
        """``w <- w - length * (∇F(w) less its part along the gradients of the mean predictions)``, in several steps."""
        vector, rows = place.vector, place.synthetic.inputs
        for _ in range(self.steps):
            point = vector.detach().requires_grad_()
            near = _neighbour(rows, place, self.width, generator)
            both = margins(place.network.forward(point, place.buffers, torch.cat([rows, near]))).sigmoid()
            variation = (both[: len(rows)] - both[len(rows) :]).square().sum(dim=1).mean()
            means = both.mean(dim=0)
            downhill, *along = (torch.autograd.grad(one, point, retain_graph=True)[0] for one in (variation, *means))
            vector = vector - length / self.steps * _across(downhill, torch.stack(along))
        return vector


def _across(vector: Vector, directions: Updates) -> Vector:
    """The vector less its part in the span of the directions."""
    shares = torch.linalg.lstsq(directions @ directions.T, (directions @ vector).unsqueeze(1), driver="gelsd").solution
    return vector - shares.squeeze(1) @ directions


def _neighbour(rows: Inputs, place: Place, width: float, generator: torch.Generator) -> Inputs:
    noise = width * torch.randn(rows.shape, generator=generator)
    if place.schema.columns:
        moves = torch.zeros(rows.shape[1])
        moves[[column.start for column in place.schema.columns if column.numeric]] = 1
        noise = noise * moves
    return rows + noise.to(rows)
