"""What several rooms' tests share."""

import hypothesis
import pytest
import torch

from equfl.core.protocol import RoundContext
from equfl.core.random import Seed
from equfl.core.schema import Schema
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.models.mlp import MLP

torch.set_num_threads(1)
# How long an example takes says something about the machine, and about what it loads for the first time.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.fixture
def context() -> RoundContext:
    """A round context over three inputs, of which the first two are the codes of two groups."""
    schema = Schema(shape=(3,), classes=("no", "yes"), groups=("a", "b"), sensitive=("group",))
    network = MLP((4,)).network((3,), 2)
    return RoundContext(
        round=1,
        rounds=10,
        learning_rate=0.1,
        network=network,
        schema=schema,
        aggregate=lambda updates, shares: shares @ updates,
        vector=MLP((4,)).initial(network, Seed(0).generator("start"))[0],
        generator=lambda purpose: Seed(0).generator(purpose),
        target=EqualizedOdds(),
        local_steps=16.0,
    )
