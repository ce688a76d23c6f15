"""What every trajectory matching does: train from one model on the synthetic rows, and compare with another."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from equfl.core.arrays import Inputs, SoftLabels, Vector
from equfl.core.protocol import Diagnostics
from equfl.core.samples import Samples
from equfl.core.schema import Schema
from equfl.core.vector import Network

NUDGE = 1e-12
"""A pair of models closer than this (squared) did not move; matching it would divide by nothing."""

Batch = Callable[[int], Tensor | slice]
"""Inner step -> the synthetic rows it sees."""


def all_rows(step: int) -> slice:
    """Every inner step sees every row."""
    return slice(None)


@dataclass(frozen=True)
class Pair:
    """Two models of the trajectory, and the ground between them."""

    start: Vector
    target: Vector

    @property
    def distance(self) -> Tensor:
        return (self.start - self.target).square().sum()

    @property
    def moved(self) -> bool:
        return bool(self.distance >= NUDGE)


def mismatch(
    network: Network, pair: Pair, inputs: Inputs, labels: SoftLabels, rate: Tensor, steps: int, batch: Batch = all_rows
) -> Tensor:
    """``||w_N - target||² / ||start - target||²``, where ``w_N`` is ``start`` after N steps on the rows.

    Near 1 means no better than not moving. Differentiable in the inputs, the labels and the rate, through all steps.
    """
    vector = pair.start
    for step in range(steps):
        rows = batch(step)
        vector = vector - rate * network.mean_gradient(vector, inputs[rows], labels[rows])
    return (vector - pair.target).square().sum() / pair.distance


def cell_counts(samples: Samples, schema: Schema) -> Diagnostics:
    """Rows per (label, group), soft ones by their share, as a run's record names them."""
    cells = samples.label_weights().T @ samples.group_weights()
    return {
        f"synthesis/rows/{label}/{group}": cells[y, a].item()
        for y, label in enumerate(schema.classes)
        for a, group in enumerate(schema.groups)
    }
