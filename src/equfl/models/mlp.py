"""Multi-layer perceptrons: the paper's two-layer network and the Standard, Deep and Wide networks of the server."""

from dataclasses import dataclass
from itertools import pairwise
from math import prod

from torch import nn

from equfl.core.errors import ConfigError
from equfl.models.base import Model


@dataclass(frozen=True)
class MLP(Model, name="mlp"):
    """Linear layers with ReLU between them, on the flattened inputs.

    The paper's storage table shows 32 hidden units for Income (1 826 parameters). Its server networks are
    ``hidden = (64,)`` (Standard), ``(64, 32)`` (Deep) and ``(128,)`` (Wide).
    """

    hidden: tuple[int, ...] = (32,)
    """Units of each hidden layer; empty gives logistic regression."""

    def __post_init__(self) -> None:
        if any(units < 1 for units in self.hidden):
            raise ConfigError(
                f"model.hidden = {list(self.hidden)}",
                wanted="positive numbers of units",
                remedy="Leave the list empty for logistic regression",
            )

    def build(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        layers: list[nn.Module] = [nn.Flatten()]
        for inputs, outputs in pairwise((prod(shape), *self.hidden, classes)):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        return nn.Sequential(*layers[:-1])
