"""The memory in which the packed rung works: taken once, used by every step of every round.

Fresh memory costs a page fault per 4 kB, and making the views of a step costs as much as one of its products; so both
are kept.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from equfl.core.arrays import Updates, Vector
from equfl.core.vector import Layout


@dataclass(frozen=True)
class Sizes:
    """How large the parts of one client are."""

    rows: int
    """Of the largest batch."""
    columns: int
    """Of a packed row: the inputs, the 1, the label, and the importance if there is one."""
    units: tuple[int, ...]
    """The inputs with their 1, then each hidden layer."""
    scores: int

    @classmethod
    def of(cls, layout: Layout, *, rows: int, weighted: bool, scores: int) -> "Sizes":
        """The sizes for the perceptron of that layout."""
        inputs = layout.shapes[0][1]
        return cls(rows, inputs + 2 + weighted, (inputs + 1, *(units for units, _ in layout.shapes[:-2:2])), scores)

    @property
    def step(self) -> int:
        """How many numbers a step touches: a batch, the layers above it, and the weights between."""
        weights = sum(below * above for below, above in pairwise((*self.units, self.scores)))
        return self.rows * (self.columns + sum(self.units[1:]) + self.scores) + weights


class Hidden(NamedTuple):
    """A hidden layer: ``above = relu(below @ weight + bias)``, over ``[clients, rows, units]``."""

    below: Tensor
    weight: Tensor
    bias: Tensor | None
    """``[clients, 1, units]``; none for the first layer, whose weight has it as the last row."""
    above: Tensor
    room: Tensor | None
    """For the error below; none for the first layer, which passes none on."""
    below_t: Tensor
    weight_t: Tensor


class Views(NamedTuple):
    """What one step works on, for its number of clients and of rows."""

    packed: Tensor
    labels: Tensor
    """``[clients, 1, rows]``, as is the importance."""
    importance: Tensor | None
    hidden: tuple[Hidden, ...]
    top: Tensor
    """What the last layer sees: the last hidden layer, or the inputs with their 1."""
    top_t: Tensor
    room: Tensor | None
    """For the error below the last layer."""
    head: Tensor
    """The last layer's weight, ``[clients, scores, units]``."""
    head_bias: Tensor | None
    """``[clients, scores, 1]``; none where nothing is hidden and the weight has it as the last column."""
    scores: Tensor
    """``[clients, scores, rows]``."""
    error: Tensor
    """The gradient by the scores."""
    error_t: Tensor


class Workspace:
    """The models of up to so many clients, and room for their step. Scores are ``contrast @ logits``."""

    def __init__(self, sizes: Sizes, layout: Layout, contrast: Tensor, *, clients: int) -> None:
        self.sizes, self.layout, self.contrast = sizes, layout, contrast
        rows, new = clients * sizes.rows, contrast.new_empty
        with torch.inference_mode():
            self.packed = contrast.new_ones(rows * sizes.columns)
            self.layers = [new(rows * units) for units in sizes.units[1:]]
            self.rooms = [new(rows * units) for units in sizes.units[1:]]
            self.scores, self.error = new(2, rows * sizes.scores)
            self.weights = [new(clients, below, above) for below, above in pairwise(sizes.units)]
            self.biases = [None, *(new(clients, 1, units) for units in sizes.units[2:])][: len(self.weights)]
            self.head = new(clients, sizes.scores, layout.shapes[-2][1] + 1)
        self.views = lru_cache(maxsize=32)(self._views)

    def _views(self, clients: int, rows: int) -> Views:
        """For the first clients, with so many rows each."""
        sizes = self.sizes

        def batch(memory: Tensor, *shape: int) -> Tensor:
            return memory[: clients * prod(shape)].view(clients, *shape)

        packed = batch(self.packed, rows, sizes.columns)
        label = sizes.units[0]
        layers = [packed[..., :label]]
        rooms: list[Tensor | None] = [None]
        biases = [None if bias is None else bias[:clients] for bias in self.biases]
        for units, layer, room in zip(sizes.units[1:], self.layers, self.rooms, strict=True):
            layers.append(batch(layer, rows, units))
            rooms.append(batch(room, rows, units))
        error = batch(self.error, sizes.scores, rows)
        return Views(
            packed=packed.flatten(0, 1),
            labels=packed[..., label].unsqueeze(1),
            importance=packed[..., label + 1].unsqueeze(1) if sizes.columns > label + 1 else None,
            hidden=tuple(
                Hidden(below, weight[:clients], bias, above, room, below.mT, weight[:clients].mT)
                for below, weight, bias, above, room in zip(
                    layers, self.weights, biases, layers[1:], rooms, strict=False
                )
            ),
            top=layers[-1],
            top_t=layers[-1].mT,
            room=rooms[-1],
            head=self.head[:clients, :, : sizes.units[-1]],
            head_bias=self.head[:clients, :, -1:] if self.layers else None,
            scores=batch(self.scores, sizes.scores, rows),
            error=error,
            error_t=error.mT,
        )

    def start(self, vector: Vector, clients: int) -> None:
        """Give the first clients the global model."""
        parts = list(self.layout.unflatten(vector).values())
        joined = [torch.cat([w, b.unsqueeze(1)], dim=1) for w, b in zip(parts[::2], parts[1::2], strict=True)]
        for layer, weight, bias in zip(joined, self.weights, self.biases, strict=False):
            model = layer.mT.contiguous()
            if bias is None:
                weight[:clients] = model
            else:
                weight[:clients], bias[:clients] = model[:-1], model[-1:]
        self.last = joined[-1]
        self.head[:clients] = self.contrast @ self.last

    def read(self, out: Updates) -> None:
        """Write the first clients' models."""
        clients = len(out)
        layers = [
            (weight[:clients, :-1].mT, weight[:clients, -1])
            if bias is None
            else (weight[:clients].mT, bias[:clients, 0])
            for weight, bias in zip(self.weights, self.biases, strict=True)
        ]
        # The scores do not say what the logits have in common, and training leaves that alone.
        back = self.contrast.mT / self.contrast.square().sum(dim=1)
        last = torch.baddbmm(self.last, back.expand(clients, -1, -1), self.head[:clients] - self.contrast @ self.last)
        layers.append((last[..., :-1], last[..., -1]))
        values = (value for layer in layers for value in layer)
        for part, value in zip(self.layout.unflatten(out).values(), values, strict=True):
            part.copy_(value)
