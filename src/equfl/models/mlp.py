"""Multi-layer perceptrons: the paper's two-layer network and the Standard, Deep and Wide networks of the server."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn

from equfl.core.arrays import Inputs, SoftLabels, Vector
from equfl.core.errors import ConfigError
from equfl.core.vector import ClosedForm, Gradient, Layout, SecondDerivatives
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
        return Backpropagation


@dataclass(frozen=True)
class Backpropagation(Gradient):
    """The gradient of the mean cross-entropy as matrix products; the reference is ``GradientByAutograd``.

    Activations and errors are kept with one row per unit and one column per sample: products with few classes, the
    softmax over them and the sums over samples are several times faster that way round.
    """

    layout: Layout
    vector: Vector
    inputs: Inputs
    labels: SoftLabels

    @cached_property
    def parameters(self) -> list[Tensor]:
        """Weight and bias of each layer in turn."""
        return list(self.layout.unflatten(self.vector).values())

    @cached_property
    def weights(self) -> list[Tensor]:
        return self.parameters[::2]

    @cached_property
    def activations(self) -> list[Tensor]:
        """What each layer is given; the first, the inputs."""
        biases = self.parameters[1::2]
        activations = [self.inputs.flatten(1).T]
        for weight, bias in zip(self.weights[:-1], biases[:-1], strict=True):
            activations.append(torch.addmm(bias.unsqueeze(1), weight, activations[-1]).relu())
        return activations

    @cached_property
    def shares(self) -> Tensor:
        """The softmax of what the last layer returns."""
        return torch.addmm(self.parameters[-1].unsqueeze(1), self.weights[-1], self.activations[-1]).softmax(dim=0)

    @cached_property
    def errors(self) -> list[Tensor]:
        """The derivative of the loss in what each layer returns."""
        errors = [(self.shares - self.labels.T.contiguous()) / len(self.inputs)]
        for weight, activation in zip(self.weights[:0:-1], self.activations[:0:-1], strict=True):
            errors = [_where_active(weight.T @ errors[0], activation), *errors]
        return errors

    def value(self) -> Vector:
        pairs = zip(self.errors, self.activations, strict=True)
        return torch.cat([part for e, a in pairs for part in ((e @ a.T).reshape(-1), e.sum(dim=1))])

    def along(self, direction: Vector) -> SecondDerivatives:
        """Pearlmutter's R-operator (1994): each line of backpropagation, differentiated along the direction.

        ``direction · gradient`` is the slope of the loss along the direction; its derivatives are how those of the loss
        change along it.
        """
        weights, activations, errors = self.weights, self.activations, self.errors
        parts = list(self.layout.unflatten(direction).values())
        turns, shifts = parts[::2], parts[1::2]
        moves = [torch.empty(0, device=direction.device)]  # of the activations; the inputs stay where they are
        slope = torch.addmm(shifts[0].unsqueeze(1), turns[0], activations[0])  # of what a layer returns
        for layer in range(1, len(turns)):
            moves.append(_where_active(slope, activations[layer]))
            slope = torch.addmm(shifts[layer].unsqueeze(1), turns[layer], activations[layer])
            slope.addmm_(weights[layer], moves[layer])

        change = self.shares * (slope - (self.shares * slope).sum(dim=0)) / len(self.inputs)  # of a layer's error
        found: list[Tensor] = []
        for layer in range(len(turns) - 1, 0, -1):
            own = (change @ activations[layer].T).addmm_(errors[layer], moves[layer].T)
            found = [own.reshape(-1), change.sum(dim=1), *found]
            back = (weights[layer].T @ change).addmm_(turns[layer].T, errors[layer])
            change = _where_active(back, activations[layer])
        found = [(change @ activations[0].T).reshape(-1), change.sum(dim=1), *found]
        return SecondDerivatives(
            value=(errors[-1] * slope).sum(),
            vector=torch.cat(found),
            inputs=(weights[0].T @ change).addmm_(turns[0].T, errors[0]).T.reshape(self.inputs.shape),
            labels=slope.T / -len(self.inputs),
        )


def _where_active(values: Tensor, activation: Tensor) -> Tensor:
    """The values where the unit is on, 0 elsewhere: the derivative of ReLU in one pass."""
    return torch.ops.aten.threshold_backward(values, activation, 0)
