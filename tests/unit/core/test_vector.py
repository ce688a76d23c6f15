import torch
from torch import nn

from equfl.core.random import Seed
from equfl.core.vector import Layout, Network
from equfl.models.base import Model


class Convolution(Model):
    def build(self, shape, classes):
        return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, classes))


def test_a_vector_unflattened_and_flattened_is_the_same_vector():
    layout = Layout(("a", "b"), ((2, 3), (4,)))
    vector = torch.arange(10.0)
    assert torch.equal(layout.flatten(layout.unflatten(vector)), vector)
    assert layout.span("b") == slice(6, 10)


def test_leading_dimensions_stay_when_many_vectors_are_unflattened_at_once():
    parts = Layout(("a", "b"), ((2, 3), (4,))).unflatten(torch.zeros(5, 10))
    assert parts["a"].shape == (5, 2, 3)


def test_a_network_gives_what_the_module_gives_with_those_weights():
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    network = Network(module)
    vector = network.layout.flatten(dict(module.named_parameters())).detach()
    inputs = torch.randn(6, 3, generator=Seed(0).generator("inputs"))
    assert torch.equal(network.forward(vector, {}, inputs), module(inputs))


def test_training_mode_gives_new_buffers_and_leaves_the_old_ones_alone():
    model = Convolution()
    network = model.network((1, 4, 4), 2)
    vector, buffers = model.initial(network, Seed(0).generator("start"))
    inputs = torch.randn(6, 1, 4, 4, generator=Seed(0).generator("inputs"))
    _, after = network.forward_training(vector, buffers, inputs)
    assert buffers["1.num_batches_tracked"].item() == 0
    assert after["1.num_batches_tracked"].item() == 1
    assert not torch.equal(after["1.running_mean"], buffers["1.running_mean"])


def test_buffers_are_not_part_of_the_vector():
    model = Convolution()
    network = model.network((1, 4, 4), 2)
    vector, buffers = model.initial(network, Seed(0).generator("start"))
    assert len(vector) == sum(p.numel() for p in network.module.parameters())
    assert set(buffers) == {"1.running_mean", "1.running_var", "1.num_batches_tracked"}


def test_the_gradient_of_a_network_with_batch_norm_can_be_differentiated_again():
    model = Convolution()
    network = model.network((1, 4, 4), 2)
    vector, _ = model.initial(network, Seed(0).generator("start"))
    inputs = torch.randn(6, 1, 4, 4, generator=Seed(0).generator("inputs")).requires_grad_()
    gradient = network.mean_gradient(vector, inputs, torch.full((6, 2), 0.5))
    (second,) = torch.autograd.grad(gradient.square().sum(), inputs)
    assert second.abs().sum() > 0
