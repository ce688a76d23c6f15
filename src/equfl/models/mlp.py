"""Multi-layer perceptrons: the paper's two-layer network and the Standard, Deep and Wide networks of the server."""

from dataclasses import dataclass
from itertools import pairwise
from math import prod

import torch
from torch import nn

from equfl.core.arrays import Inputs, SoftLabels, Vector
from equfl.core.errors import ConfigError
from equfl.core.vector import ClosedForm, Layout
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

    def closed_form(self) -> ClosedForm:
        return mean_gradient


def mean_gradient(layout: Layout, vector: Vector, inputs: Inputs, labels: SoftLabels) -> Vector:
    """Backpropagation written as matrix products; the reference is ``Network.mean_gradient_by_autograd``."""
    parameters = list(layout.unflatten(vector).values())
    weights, biases = parameters[::2], parameters[1::2]
    activations = [inputs.flatten(1)]
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        activations.append(torch.addmm(bias, activations[-1], weight.T).relu())
    error = (torch.addmm(biases[-1], activations[-1], weights[-1].T).softmax(dim=1) - labels) / len(inputs)
    gradients: list[torch.Tensor] = []
    for layer in reversed(range(len(weights))):
        gradients = [(error.T @ activations[layer]).reshape(-1), error.sum(dim=0), *gradients]
        if layer:
            error = (error @ weights[layer]) * (activations[layer] > 0)
    return torch.cat(gradients)
