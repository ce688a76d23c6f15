"""What a scope is: the directions in which a calibrated update may move the model."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from equfl.core.arrays import Updates, Vector
from equfl.core.component import Component
from equfl.core.samples import Samples
from equfl.core.schema import Schema
from equfl.core.vector import Buffers, Layout, Network

Coordinates = Float[Tensor, " coordinates"]


@dataclass(frozen=True)
class Directions:
    """A linear map from a few coordinates to a change of the model."""

    size: int
    """How many coordinates there are."""
    change: Callable[[Coordinates], Vector]


@dataclass(frozen=True)
class Place:
    """What a scope may look at: the model to be moved, and what the server has of its own."""

    vector: Vector
    buffers: Buffers
    network: Network
    schema: Schema
    synthetic: Samples
    collected: Updates
    """The collected models, oldest first."""


class Scope(Component, kind="scope"):
    """In which directions a calibrated update may move the model.

    The fewer they are, the less the update can close the synthetic gap in ways that mean nothing for real rows.
    """

    @abstractmethod
    def directions(self, place: Place) -> Directions | None:
        """The directions at this model; ``None`` where the model or the data has no such place."""


def entries_of(layout: Layout, positions: Sequence[int] | Tensor) -> Directions:
    """The directions of single entries of the vector."""
    chosen = torch.as_tensor(positions, dtype=torch.long)

    def change(coordinates: Coordinates) -> Vector:
        moved = coordinates.new_zeros(layout.size)
        return moved.index_copy(0, chosen.to(coordinates.device), coordinates)

    return Directions(len(chosen), change)


def span_of(rows: Float[Tensor, "coordinates parameters"]) -> Directions:
    """The span of some changes of the model."""
    return Directions(len(rows), lambda coordinates: coordinates @ rows)


def sensitive_weights(layout: Layout, schema: Schema) -> Tensor:
    """Entries of the vector that multiply a sensitive input; none where the first layer does not take the inputs."""
    shape = layout.shapes[0]
    if not schema.sensitive_inputs or len(shape) != 2 or shape[1] != torch.Size(schema.shape).numel():
        return torch.empty(0, dtype=torch.long)
    return torch.arange(layout.sizes[0]).reshape(shape)[:, list(schema.sensitive_inputs)].flatten()


def last_layer(layout: Layout) -> Tensor:
    """Entries of the last layer: its weights, and its bias if it has one."""
    last = layout.names[-1].rpartition(".")[0]
    size = sum(size for name, size in zip(layout.names, layout.sizes, strict=True) if name.rpartition(".")[0] == last)
    return torch.arange(layout.size - size, layout.size)
