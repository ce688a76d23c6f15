"""Training on the synthetic rows from one model on, and back: what a row would have to be for another end.

Three ways to the derivatives. ``unrolled`` lets autograd keep everything of all steps, and is the reference.
``stepwise`` keeps the models between the steps and differentiates one step at a time, last one first, so that autograd
never holds more than one step. ``tesla`` (Cui et al., 2023) does so too, but leaves out that a row changes the models
on which the later steps see it; with a single step nothing is left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from equfl.core.arrays import Inputs, Logits, SoftLabels, Vector
from equfl.core.vector import Gradient, Network

Way = Literal["auto", "unrolled", "stepwise", "tesla"]

LARGE = 100_000
"""From so many parameters on, ``auto`` is stepwise even where that is not faster."""

Batch = Callable[[int], Tensor | None]
"""Inner step -> the numbers of the synthetic rows it sees; ``None`` for all of them."""


def all_rows(step: int) -> None:
    """Every inner step sees every row."""


def chosen(way: Way, network: Network) -> Way:
    """The way that ``auto`` stands for with this network."""
    if way != "auto":
        return way
    return "stepwise" if network.closed_form is not None or network.layout.size >= LARGE else "unrolled"


@dataclass(frozen=True)
class Course:
    """A training: from where, how many steps, on which rows."""

    network: Network
    start: Vector
    steps: int
    batch: Batch = all_rows

    def gradient(self, number: int, vector: Vector, inputs: Inputs, labels: SoftLabels) -> Gradient:
        """The gradient of a step, from where the steps before have led."""
        rows = self.batch(number)
        return self.network.gradient(vector, *((inputs, labels) if rows is None else (inputs[rows], labels[rows])))


def trained(course: Course, inputs: Inputs, labels: SoftLabels, rate: Tensor, way: Way = "auto") -> Vector:
    """The model after all steps, differentiable in the inputs, the labels and the rate."""
    way = chosen(way, course.network)
    if way != "unrolled":
        end: Vector = _Stepwise.apply(inputs, labels, rate, course, way == "stepwise")
        return end
    vector = course.start
    for number in range(course.steps):
        vector = vector - rate * course.gradient(number, vector, inputs, labels).value()
    return vector


class _Stepwise(torch.autograd.Function):
    """The chain rule from the last step to the first.

    With ``w' = w - rate * g(w, rows)`` and the derivative ``λ`` of the end in ``w'``, all is in the product ``λ · g``:
    times ``-rate``, its derivatives in the rows are the rows' own, and ``λ`` plus the one in ``w`` is the λ of the step
    before.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Inputs, labels: SoftLabels, rate: Tensor, course: Course, exact: bool) -> Vector:
        vector, gradients = course.start, []
        for number in range(course.steps):
            gradients.append(course.gradient(number, vector, inputs.detach(), labels.detach()))
            vector = vector - rate * gradients[-1].value().detach()
        ctx.save_for_backward(inputs, labels, rate)
        ctx.course, ctx.exact, ctx.gradients = course, exact, gradients
        return vector

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *directions: Tensor) -> tuple[Tensor | None, ...]:
        inputs, labels, rate = ctx.saved_tensors
        course: Course = ctx.course
        gradients: Sequence[Gradient] = ctx.gradients
        (direction,) = directions
        to_inputs: Tensor | None = None
        to_labels: Tensor | None = None
        to_rate = torch.zeros_like(rate)
        for number in reversed(range(course.steps)):
            rows = course.batch(number)
            found = gradients[number].along(direction)
            to_inputs = _plus(to_inputs, rows, found.inputs, inputs)
            to_labels = _plus(to_labels, rows, found.labels, labels)
            to_rate -= found.value
            if ctx.exact:
                direction = direction - rate * found.vector
        assert to_inputs is not None, "a course has one step or more"
        assert to_labels is not None
        return to_inputs.mul_(-rate), to_labels.mul_(-rate), to_rate, None, None


def _plus(total: Tensor | None, rows: Tensor | None, part: Tensor, like: Tensor) -> Tensor:
    if rows is None:
        return part if total is None else total.add_(part)
    return (torch.zeros_like(like) if total is None else total).index_add_(0, rows, part)


def logits_of(network: Network, vector: Vector, inputs: Inputs) -> Logits:
    """What a collected model answers. It comes without buffers: a batch is normalised by its own statistics."""
    scratch = {name: torch.zeros_like(b, device=vector.device) for name, b in network.module.named_buffers()}
    with torch.no_grad():
        return network.forward_training(vector, scratch, inputs)[0].clone()
