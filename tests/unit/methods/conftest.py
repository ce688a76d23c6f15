"""What the tests of several methods share: rows in chosen cells, and a server's state."""

from collections.abc import Callable

import pytest
import torch

from equfl.core.protocol import Cohort, RoundContext, ServerState
from equfl.core.random import Seed
from equfl.core.samples import Samples
from equfl.models.mlp import MLP


@pytest.fixture
def rows() -> Callable[..., Samples]:
    """Rows from a table ``cells[label][group]`` of how many there are of each; the inputs are random."""

    def make(cells: list[list[int]], inputs: int = 3) -> Samples:
        counts = torch.tensor(cells)
        cell = torch.arange(counts.numel()).repeat_interleave(counts.flatten())
        drawn = torch.randn(len(cell), inputs, generator=Seed(0).generator("inputs"))
        return Samples(
            drawn, cell // counts.shape[1], cell % counts.shape[1], classes=len(counts), group_count=counts.shape[1]
        )

    return make


@pytest.fixture
def server(context: RoundContext) -> ServerState:
    """The random start."""
    vector, buffers = MLP((4,)).initial(context.network, Seed(0).generator("start"))
    return ServerState(0, vector, buffers)


@pytest.fixture
def cohort(server: ServerState) -> Callable[..., Cohort]:
    """Three clients with random updates and equal shares, and what else they report."""

    def make(clients: int = 3, **reports: torch.Tensor) -> Cohort:
        updates = torch.randn(clients, len(server.vector), generator=Seed(1).generator("updates"))
        return Cohort(
            tuple(range(clients)), updates, torch.full((clients,), 1 / clients), (10.0,) * clients, reports=reports
        )

    return make
