"""A client's rows and a model to train on them."""

from typing import NamedTuple

import pytest
import torch

from equfl.core.arrays import Vector
from equfl.core.losses import cross_entropy
from equfl.core.random import Seed
from equfl.core.samples import Samples
from equfl.core.vector import Network
from equfl.models.mlp import MLP


def mean_loss(logits, samples):
    return cross_entropy(logits, samples).mean()


class Client(NamedTuple):
    samples: Samples
    network: Network
    vector: Vector

    def train(self, training, *, seed=1, objective=mean_loss):
        """The client's model after a round."""
        return training.train(
            self.vector, {}, self.samples, network=self.network, objective=objective, generator=Seed(seed).generator
        )[0]


@pytest.fixture
def client():
    """A hundred rows, and a perceptron with several thousand weights."""
    draws = Seed(0).generator("rows")
    samples = Samples(
        torch.randn(100, 3, generator=draws),
        torch.randint(2, (100,), generator=draws),
        torch.randint(2, (100,), generator=draws),
    )
    model = MLP((500,))
    network = model.network((3,), 2)
    return Client(samples, network, model.initial(network, draws)[0])
