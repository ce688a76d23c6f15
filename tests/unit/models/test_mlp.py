import pytest
import torch

from equfl.core.errors import ConfigError
from equfl.core.random import Seed
from equfl.core.vector import GradientByAutograd
from equfl.models.mlp import MLP


def test_the_papers_income_model_has_1826_parameters():
    assert MLP().network((54,), 2).layout.size == 1826


@pytest.mark.parametrize("hidden", [(), (7,), (7, 5)])
def test_the_gradient_by_hand_is_autograds_gradient_and_so_is_its_own_gradient(hidden):
    model = MLP(hidden)
    network = model.network((4,), 3)
    draws = Seed(0).generator("draws")
    vector, _ = model.initial(network, draws)
    labels = torch.randn(9, 3, generator=draws).softmax(dim=1)
    inputs = torch.randn(9, 4, generator=draws).requires_grad_()

    by_hand = network.mean_gradient(vector, inputs, labels)
    reference = GradientByAutograd(network, vector, inputs, labels).value()
    torch.testing.assert_close(by_hand, reference)
    torch.testing.assert_close(
        torch.autograd.grad(by_hand.square().sum(), inputs), torch.autograd.grad(reference.square().sum(), inputs)
    )


@pytest.mark.parametrize("hidden", [(), (7,), (7, 5)])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_second_derivatives_by_hand_are_autograds(hidden, classes):
    model = MLP(hidden)
    network = model.network((2, 2), classes)
    draws = Seed(1).generator("draws")
    vector, _ = model.initial(network, draws)
    inputs = torch.randn(9, 2, 2, generator=draws)
    labels = torch.randn(9, classes, generator=draws).softmax(dim=1)
    direction = torch.randn(network.layout.size, generator=draws)

    by_hand = network.gradient(vector, inputs, labels).along(direction)
    reference = GradientByAutograd(network, vector, inputs, labels).along(direction)
    torch.testing.assert_close(by_hand.value, reference.value)
    torch.testing.assert_close(by_hand.vector, reference.vector)
    torch.testing.assert_close(by_hand.inputs, reference.inputs)
    # Labels that sum to one can only move in directions that sum to nothing, so a constant per row says nothing.
    torch.testing.assert_close(_centred(by_hand.labels), _centred(reference.labels))


def _centred(rows):
    return rows - rows.mean(dim=1, keepdim=True)


def test_the_random_start_depends_on_the_generator_alone():
    model = MLP()
    network = model.network((4,), 2)
    first, _ = model.initial(network, Seed(3).generator("start"))
    torch.manual_seed(99)
    again, _ = model.initial(network, Seed(3).generator("start"))
    assert torch.equal(first, again)
    assert first[network.layout.span("1.weight")].abs().max() <= 1 / 4**0.5


def test_a_layer_without_units_is_refused():
    with pytest.raises(ConfigError, match=r"model.hidden = \[0\]"):
        MLP((0,))
