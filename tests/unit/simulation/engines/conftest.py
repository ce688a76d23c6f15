"""Clients as the engines get them."""

from collections.abc import Callable

import pytest
import torch

from equfl.core.random import Seed
from equfl.core.samples import Samples, Shards
from equfl.fairness.demographic_parity import DemographicParity
from equfl.methods.base import Method
from equfl.methods.fedavg import FedAvg
from equfl.models.base import Model
from equfl.models.mlp import MLP
from equfl.simulation.engines.base import Clients
from equfl.training.sgd import SGD


@pytest.fixture
def clients() -> Callable[..., Clients]:
    """Clients of the given sizes, whose rows are numbered by their first input."""

    def build(
        sizes: tuple[int, ...],
        *,
        training: SGD | None = None,
        model: Model | None = None,
        method: Method | None = None,
        features: int = 3,
        classes: int = 2,
    ) -> Clients:
        rows, draws = sum(sizes), Seed(0).generator("rows")
        inputs = torch.randn(rows, features, generator=draws)
        inputs[:, 0] = torch.arange(rows) / rows
        labels, groups = (torch.randint(count, (rows,), generator=draws) for count in (classes, 2))
        return Clients(
            Shards(Samples(inputs, labels, groups, classes=classes), sizes),
            (model or MLP((4,))).network((features,), classes),
            training or SGD(batch_size=4),
            method or FedAvg(),
            Seed(1),
            DemographicParity(),
        )

    return build
