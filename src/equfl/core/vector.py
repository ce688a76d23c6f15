"""A model's parameters as one flat vector, and back; buffers are kept apart.

Rules, methods and synthesis see a vector and a function of it, never layers. Buffers (batch-norm statistics) are not
part of the vector: they never enter a distance, a median or a fairness gradient.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.func import functional_call

from equfl.core.arrays import Inputs, Logits, SoftLabels, Vector

Buffers = Mapping[str, Tensor]


@dataclass(frozen=True)
class Layout:
    """Which entries of the vector belong to which parameter."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, module: nn.Module) -> "Layout":
        """The layout of a module's parameters, in the module's own order."""
        named = list(module.named_parameters())
        return cls(tuple(name for name, _ in named), tuple(tuple(value.shape) for _, value in named))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(torch.Size(shape).numel() for shape in self.shapes)

    @cached_property
    def size(self) -> int:
        return sum(self.sizes)

    def span(self, name: str) -> slice:
        """The entries of one parameter."""
        position = self.names.index(name)
        start = sum(self.sizes[:position])
        return slice(start, start + self.sizes[position])

    def flatten(self, parameters: Mapping[str, Tensor]) -> Vector:
        """One vector out of named parameters."""
        return torch.cat([parameters[name].reshape(-1) for name in self.names])

    def unflatten(self, vector: Tensor) -> dict[str, Tensor]:
        """Named parameters as views of the vector; leading dimensions (one per client, say) are kept."""
        parts = vector.split(self.sizes, dim=-1)
        lead = vector.shape[:-1]
        return {
            name: part.reshape(lead + shape) for name, part, shape in zip(self.names, parts, self.shapes, strict=True)
        }


@dataclass(frozen=True)
class SecondDerivatives:
    """The derivatives of ``direction · g(vector, inputs, labels)``, g being the gradient of the mean cross-entropy.

    Those in the labels are right for labels that sum to one in each row; a constant per row may be missing.
    """

    value: Tensor
    """The product itself."""
    vector: Vector
    inputs: Inputs
    labels: SoftLabels


class Gradient(ABC):
    """The gradient of the mean cross-entropy at one vector on some rows, ready to be differentiated once more."""

    @abstractmethod
    def value(self) -> Vector:
        """The gradient."""

    @abstractmethod
    def along(self, direction: Vector) -> SecondDerivatives:
        """Its derivatives along a direction."""


ClosedForm = Callable[[Layout, Vector, Inputs, SoftLabels], Gradient]
"""A model's gradient and its own derivatives, written out by hand."""


class Network:
    """A module as a pure function of (vector, buffers, inputs).

    The module itself carries no weights (it may live on the ``meta`` device); every call brings its own.
    """

    def __init__(self, module: nn.Module, closed_form: ClosedForm | None = None) -> None:
        self.module = module
        self.layout = Layout.of(module)
        self.closed_form = closed_form
        """The gradient and its own derivatives written out by hand, where the model knows them."""
        self._evaluating = copy.deepcopy(module).eval()
        self._training = copy.deepcopy(module).train()

    def forward(self, vector: Vector, buffers: Buffers, inputs: Inputs) -> Logits:
        """The deployed function: evaluation mode, buffers only read."""
        logits: Tensor = functional_call(self._evaluating, self.layout.unflatten(vector) | dict(buffers), (inputs,))
        return logits

    def forward_training(self, vector: Vector, buffers: Buffers, inputs: Inputs) -> tuple[Logits, Buffers]:
        """Training mode: also gives the buffers as they are after this batch."""
        fresh = {name: value.clone() for name, value in buffers.items()}
        logits: Tensor = functional_call(self._training, self.layout.unflatten(vector) | fresh, (inputs,))
        return logits, fresh

    def gradient(self, vector: Vector, inputs: Inputs, labels: SoftLabels) -> Gradient:
        """The gradient of the mean cross-entropy, by hand where the model knows how.

        In training mode a batch is normalised by its own statistics, so no buffers are needed.
        """
        if self.closed_form is not None:
            return self.closed_form(self.layout, vector, inputs, labels)
        return GradientByAutograd(self, vector, inputs, labels)

    def mean_gradient(self, vector: Vector, inputs: Inputs, labels: SoftLabels) -> Vector:
        """The gradient's value, itself differentiable in all arguments."""
        return self.gradient(vector, inputs, labels).value()


@dataclass(frozen=True)
class GradientByAutograd(Gradient):
    """For any module, and the reference for a closed form. It keeps its arguments only, and no activations."""

    network: Network
    vector: Vector
    inputs: Inputs
    labels: SoftLabels

    def value(self) -> Vector:
        network, vector, again = self.network, self.vector, torch.is_grad_enabled()
        with torch.enable_grad():
            point = vector if vector.requires_grad else vector.detach().requires_grad_()
            buffers = network.module.named_buffers()
            scratch = {name: torch.zeros_like(buffer, device=vector.device) for name, buffer in buffers}
            logits: Tensor = functional_call(
                network._training, network.layout.unflatten(point) | scratch, (self.inputs,)
            )
            loss = -(self.labels * torch.log_softmax(logits, dim=-1)).sum(dim=-1).mean()
            (gradient,) = torch.autograd.grad(loss, point, create_graph=again)
        return gradient

    def along(self, direction: Vector) -> SecondDerivatives:
        with torch.enable_grad():
            leaves = [value.detach().requires_grad_() for value in (self.vector, self.inputs, self.labels)]
            product = GradientByAutograd(self.network, *leaves).value() @ direction.detach()
            derivatives = torch.autograd.grad(product, leaves, materialize_grads=True)
        return SecondDerivatives(product.detach(), *derivatives)
