from dataclasses import replace
from weakref import WeakSet

import pytest
import torch
from torch import nn

from equfl.core.random import Seed
from equfl.core.vector import Network
from equfl.models.mlp import MLP
from equfl.synthesis._training import LARGE, Course, all_rows, chosen, trained

ROWS, STEPS = 12, 4


def convolutional() -> Network:
    """A module whose derivatives nobody has written out by hand, and which sees a batch as a whole."""
    layers = (nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.Tanh(), nn.Flatten(), nn.Linear(8, 3))
    return Network(nn.Sequential(*layers))


def perceptron() -> Network:
    return MLP((5, 4)).network((1, 3, 3), 3)


class Box:
    """What autograd keeps, in a wrapping that tells when it no longer does."""

    def __init__(self, tensor):
        self.tensor = tensor


NETWORKS = pytest.mark.parametrize("network", [convolutional(), perceptron()], ids=["convolutional", "perceptron"])
BATCHES = pytest.mark.parametrize(
    "batch", [all_rows, lambda step: (torch.arange(5) + 3 * step) % ROWS], ids=["all rows", "batches"]
)


@pytest.fixture
def draws():
    return Seed(7).generator("draws")


def derivatives(course: Course, way: str) -> tuple[torch.Tensor, ...]:
    draws = Seed(8).generator("rows")
    inputs = torch.randn(ROWS, 1, 3, 3, generator=draws).requires_grad_()
    logits = torch.randn(ROWS, 3, generator=draws).requires_grad_()
    rate = torch.tensor(0.3).requires_grad_()
    end = trained(course, inputs, logits.softmax(dim=1), rate, way)
    wished = torch.randn(end.shape, generator=draws)
    return end.detach(), *torch.autograd.grad((end - wished).square().sum(), [inputs, logits, rate])


def course(network: Network, draws, **settings) -> Course:
    start = 0.5 * torch.randn(network.layout.size, generator=draws)
    return replace(Course(network, start, STEPS), **settings)


@NETWORKS
@BATCHES
def test_step_by_step_gives_the_gradient_of_all_steps_unrolled(network, batch, draws):
    one = course(network, draws, batch=batch)
    for ours, reference in zip(derivatives(one, "stepwise"), derivatives(one, "unrolled"), strict=True):
        torch.testing.assert_close(ours, reference, rtol=1e-4, atol=1e-5)


@NETWORKS
def test_tesla_is_exact_for_one_step_and_leaves_something_out_of_several(network, draws):
    single = course(network, draws, steps=1)
    for ours, reference in zip(derivatives(single, "tesla"), derivatives(single, "unrolled"), strict=True):
        torch.testing.assert_close(ours, reference, rtol=1e-4, atol=1e-5)
    several = replace(single, steps=STEPS)
    ours, reference = derivatives(several, "tesla"), derivatives(several, "unrolled")
    torch.testing.assert_close(ours[0], reference[0])
    assert not torch.allclose(ours[1], reference[1], rtol=1e-2)
    # The last step's effect on the rows is left in, so both point about the same way.
    assert torch.cosine_similarity(ours[1].flatten(), reference[1].flatten(), dim=0) > 0.5


def test_step_by_step_holds_no_more_activations_for_more_steps(draws):
    network = convolutional()

    def held(steps: int, way: str) -> int:
        kept = WeakSet()

        def packed(tensor):
            kept.add(box := Box(tensor))
            return box

        with torch.autograd.graph.saved_tensors_hooks(packed, lambda box: box.tensor):
            rows = torch.randn(ROWS, 1, 3, 3, generator=draws).requires_grad_()
            labels = torch.full((ROWS, 3), 1 / 3)
            end = trained(course(network, draws, steps=steps), rows, labels, torch.tensor(0.3), way)
        assert end.requires_grad
        return sum(box.tensor.numel() for box in kept)

    assert held(8, "stepwise") == held(2, "stepwise")
    assert held(8, "unrolled") > 2 * held(2, "unrolled")


def test_auto_takes_steps_one_by_one_where_that_is_faster_or_the_model_is_large():
    assert chosen("auto", perceptron()) == "stepwise"
    assert chosen("auto", convolutional()) == "unrolled"
    with torch.device("meta"):
        assert chosen("auto", Network(nn.Conv2d(1, LARGE, 1))) == "stepwise"
    assert chosen("tesla", perceptron()) == "tesla"
