"""Flower's records and our tensors: a model as a vector and back, and named tensors as lists of numbers.

A reply may carry one ArrayRecord and one MetricRecord, or else Flower's strategies refuse it. So what a method sends
along, in either direction, is written as lists whose keys say what they are: ``equfl/counts/float64/2x2x2``.
"""

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord
from numpy.typing import NDArray
from torch import Tensor

from equfl.core.arrays import Updates, Vector
from equfl.core.errors import ConfigError
from equfl.core.vector import Buffers, Layout, Network
from equfl.flower.arrays import array_of, values_of

RECORD = "equfl"
"""The ConfigRecord that carries a method's instructions to the clients."""
PREFIX = "equfl/"
"""Begins every key of ours, so that they can be told from the user's."""


@dataclass(frozen=True)
class Form:
    """How the model lies in an ArrayRecord: its entries in order, and which of them are parameters."""

    layout: Layout
    shapes: Mapping[str, tuple[int, ...]]
    types: Mapping[str, torch.dtype]

    @classmethod
    def of(cls, arrays: ArrayRecord, network: Network) -> "Form":
        """The form of the first model, once it is sure that it is the network's."""
        tensors = {name: torch.from_numpy(values_of(array)) for name, array in arrays.items()}
        layout = network.layout
        shapes = {name: tuple(value.shape) for name, value in tensors.items()}
        wanted = dict(zip(layout.names, layout.shapes, strict=True))
        found = {name: shapes.get(name) for name in wanted}
        buffers = {name for name, _ in network.module.named_buffers()}
        if found != wanted or not shapes.keys() - wanted.keys() <= buffers:
            raise ConfigError(
                f"initial arrays of the form {shapes}",
                wanted=f"the parameters {wanted} of the given model, and its buffers",
                remedy="Make them by ArrayRecord(model.state_dict())",
            )
        return cls(layout, shapes, {name: value.dtype for name, value in tensors.items()})

    @property
    def counters(self) -> tuple[str, ...]:
        """The entries that are whole numbers: batch norm's step counters."""
        return tuple(name for name, kind in self.types.items() if not kind.is_floating_point)

    def mismatch(self, arrays: ArrayRecord) -> str:
        """What is wrong with a model that should have this form; empty if nothing is."""
        if arrays.keys() != self.shapes.keys():
            missing = sorted(self.shapes.keys() - arrays.keys())
            unknown = sorted(arrays.keys() - self.shapes.keys())
            return f"a model of other keys (missing: {missing}, unknown: {unknown})"
        for name, shape in self.shapes.items():
            if tuple(arrays[name].shape) != shape:
                return f"{name} of shape {tuple(arrays[name].shape)} instead of {shape}"
        return ""

    def read(self, arrays: Mapping[str, Array]) -> tuple[Vector, dict[str, Tensor]]:
        """The parameters as a vector, and the buffers, in the types that were sent out."""
        tensors = {name: self._typed(name, torch.from_numpy(values_of(array))) for name, array in arrays.items()}
        buffers = {name: value for name, value in tensors.items() if name not in self.layout.names}
        return self.layout.flatten(tensors), buffers

    def write(self, vector: Vector, buffers: Buffers) -> ArrayRecord:
        """The model as a record: entries in the first model's order and types."""
        (record,) = self.write_each(vector[None], {name: value[None] for name, value in buffers.items()}, array_of)
        return record

    def write_each(
        self, vectors: Updates, buffers: Buffers, make: Callable[[NDArray[Any]], Array]
    ) -> list[ArrayRecord]:
        """Several models, one a row, as one record each."""
        tensors = {**self.layout.unflatten(vectors), **buffers}
        # Strategies compute in other types (QFedAvg and FedAdam return float64), and clients expect what they sent.
        values = {name: self._typed(name, tensors[name]).numpy() for name in self.shapes}
        records = [ArrayRecord() for _ in vectors]
        for row, record in enumerate(records):
            for name, rows in values.items():
                record[name] = make(np.asarray(rows[row]))
        return records

    def without_counters(self, arrays: ArrayRecord) -> ArrayRecord:
        """The same record without step counters, on which a median, a norm or noise would make no sense."""
        counters = self.counters
        return (
            ArrayRecord({name: array for name, array in arrays.items() if name not in counters}) if counters else arrays
        )

    def _typed(self, name: str, value: Tensor) -> Tensor:
        kind = self.types[name]
        if value.dtype == kind:
            return value
        return value.to(kind) if kind.is_floating_point else value.round().to(kind)


def pack(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Named tensors as lists of numbers that a record can hold."""
    return {
        f"{PREFIX}{name}/{str(value.dtype).removeprefix('torch.')}/{'x'.join(map(str, value.shape))}": (
            value.detach().cpu().reshape(-1).tolist()
        )
        for name, value in tensors.items()
    }


def unpack(record: MutableMapping[str, Any]) -> dict[str, Tensor]:
    """Take what ``pack`` wrote out of a record; what cannot be read is taken out and left away."""
    found = {}
    for key in [key for key in record if key.startswith(PREFIX)]:
        values = record.pop(key)
        name, _, form = key.removeprefix(PREFIX).partition("/")
        kind, _, shape = form.partition("/")
        try:
            found[name] = torch.tensor(values, dtype=getattr(torch, kind)).reshape(
                [int(n) for n in shape.split("x") if n]
            )
        except (AttributeError, RuntimeError, TypeError, ValueError):
            continue
    return found
