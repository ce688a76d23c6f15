"""A place to calibrate: toy rows as the server's own, and a model that was trained on them."""

import pytest
import torch

from equfl.calibration.base import Place
from equfl.core.losses import cross_entropy
from equfl.core.random import Seed
from equfl.data.toy import Toy
from equfl.models.mlp import MLP


@pytest.fixture(scope="session")
def place() -> Place:
    federation = Toy(clients=3, rows=300, bias=1.5).load()
    rows = federation.train.pooled
    model = MLP((6,))
    network = model.network(federation.schema.shape, 2)
    vector, buffers = model.initial(network, Seed(0).generator("start"))
    collected = [vector]
    for _ in range(60):
        point = vector.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(
            cross_entropy(network.forward(point, buffers, rows.inputs), rows).mean(), point
        )
        vector = vector - gradient
        collected.append(vector)
    return Place(vector, buffers, network, federation.schema, rows, torch.stack(collected[:30]))
