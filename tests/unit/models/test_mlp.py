import pytest
import torch

from equfl.core.errors import ConfigError
from equfl.core.random import Seed
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
    reference = network.mean_gradient_by_autograd(vector, inputs, labels)
    torch.testing.assert_close(by_hand, reference)
    torch.testing.assert_close(
        torch.autograd.grad(by_hand.square().sum(), inputs), torch.autograd.grad(reference.square().sum(), inputs)
    )


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
