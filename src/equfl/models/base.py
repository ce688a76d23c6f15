"""What a model is: a recipe for a module, and for its random start."""

from abc import abstractmethod
from math import prod, sqrt

import torch
from torch import Tensor, nn

from equfl.core.arrays import Vector
from equfl.core.component import Component
from equfl.core.errors import ConfigError
from equfl.core.vector import Buffers, ClosedForm, Network


class Model(Component, kind="model"):
    """Builds a module for inputs of a given shape and a number of classes."""

    @abstractmethod
    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """The module; its weights are never used, so they may be anything."""

    def network(self, shape: tuple[int, ...], classes: int) -> Network:
        """The module as a pure function. It is built without memory for weights and without drawing numbers."""
        with torch.device("meta"):
            return Network(self.build(shape, classes), self.closed_form())

    def closed_form(self) -> ClosedForm | None:
        """The model's gradient written out by hand, if it has one; synthesis is faster with it."""
        return None

    def initial(self, network: Network, generator: torch.Generator) -> tuple[Vector, Buffers]:
        """A random start: torch's own defaults for the usual layers, from the given generator."""
        parameters: dict[str, Tensor] = {}
        buffers: dict[str, Tensor] = {}
        for name, module in network.module.named_modules():
            prefix = f"{name}." if name else ""
            parameters |= {prefix + key: value for key, value in _initial_of(module, generator).items()}
            for key, value in module.named_buffers(recurse=False):
                fill = torch.ones if key == "running_var" else torch.zeros
                buffers[prefix + key] = fill(value.shape, dtype=value.dtype)
        return network.layout.flatten(parameters), buffers


def _initial_of(module: nn.Module, generator: torch.Generator) -> dict[str, Tensor]:
    own = dict(module.named_parameters(recurse=False))
    if not own:
        return {}
    if isinstance(module, nn.Linear | nn.Conv2d):
        bound = 1 / sqrt(prod(module.weight.shape[1:]))
        return {
            key: torch.empty(value.shape).uniform_(-bound, bound, generator=generator) for key, value in own.items()
        }
    if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d | nn.GroupNorm | nn.LayerNorm):
        return {key: (torch.ones if key == "weight" else torch.zeros)(value.shape) for key, value in own.items()}
    raise ConfigError(
        f"a layer of type {type(module).__name__}",
        wanted="Linear, Conv2d, BatchNorm, GroupNorm or LayerNorm",
        remedy="Override 'initial' in the model to give such layers their start",
    )
