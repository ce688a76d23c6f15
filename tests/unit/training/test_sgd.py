import pytest
import torch

from equfl.core.errors import ConfigError
from equfl.core.losses import cross_entropy
from equfl.core.random import Seed
from equfl.core.samples import Samples
from equfl.models.mlp import MLP
from equfl.training.sgd import SGD


def mean_loss(logits, samples):
    return cross_entropy(logits, samples).mean()


@pytest.fixture
def federated():
    draws = Seed(0).generator("rows")
    samples = Samples(
        torch.randn(100, 3, generator=draws),
        torch.randint(2, (100,), generator=draws),
        torch.randint(2, (100,), generator=draws),
    )
    model = MLP((5,))
    network = model.network((3,), 2)
    return samples, network, *model.initial(network, draws)


def train(training, federated, objective=mean_loss):
    samples, network, vector, buffers = federated
    draws = Seed(1).generator
    return training.train(vector, buffers, samples, network=network, objective=objective, generator=draws)[0]


def test_one_epoch_equals_torchs_own_optimiser_on_the_same_batches(federated):
    samples, network, vector, _ = federated
    module = MLP((5,)).build((3,), 2)
    with torch.no_grad():
        for name, value in network.layout.unflatten(vector).items():
            module.get_parameter(name).copy_(value)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
    order = torch.randperm(100, generator=Seed(1).generator("shuffle"))
    for index in order.split(64):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(module(samples.inputs[index]), samples.labels[index]).backward()
        optimiser.step()
    expected = network.layout.flatten(dict(module.named_parameters())).detach()
    torch.testing.assert_close(train(SGD(), federated), expected)


@pytest.mark.parametrize(
    ("training", "steps"), [(SGD(), 2), (SGD(epochs=3), 6), (SGD(batches=1), 1), (SGD(batches=5), 5)]
)
def test_the_number_of_steps_is_what_it_says(training, steps, federated):
    taken = []

    def counting(logits, samples):
        taken.append(len(samples))
        return mean_loss(logits, samples)

    train(training, federated, counting)
    assert len(taken) == training.steps(100) == steps


def test_training_leaves_the_global_model_as_it_was(federated):
    before = federated[2].clone()
    train(SGD(), federated)
    assert torch.equal(before, federated[2])


@pytest.mark.parametrize("setting", [{"learning_rate": 0.0}, {"batch_size": 0}, {"epochs": 0}, {"batches": 0}])
def test_settings_that_would_not_train_are_refused(setting):
    with pytest.raises(ConfigError, match="training"):
        SGD(**setting)
