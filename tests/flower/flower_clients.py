"""Small clients and strategies for the tests of the Flower room."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import (
    Bulyan,
    DifferentialPrivacyClientSideAdaptiveClipping,
    DifferentialPrivacyClientSideFixedClipping,
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedMedian,
    FedProx,
    FedTrimmedAvg,
    FedYogi,
    Krum,
    MultiKrum,
    QFedAvg,
    Strategy,
)
from torch import nn

from equfl.core.protocol import Cohort, Diagnostics, RoundContext, ServerState
from equfl.core.schema import Schema
from equfl.fairness.demographic_parity import DemographicParity
from equfl.flower import EquFLStrategy, InlineGrid
from equfl.methods.base import Method
from equfl.methods.fedavg import FedAvg as FedAvgMethod

NODES = 5
SCHEMA = Schema(shape=(3,), classes=("no", "yes"), groups=("a", "b"), sensitive=("group",))
PRIVATE = {"noise_multiplier": 0.0, "num_sampled_clients": NODES}
QUIET = {"fraction_evaluate": 0.0}

STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "FedAvg": lambda: FedAvg(**QUIET),
    "FedMedian": lambda: FedMedian(**QUIET),
    "FedTrimmedAvg": lambda: FedTrimmedAvg(beta=0.2, **QUIET),
    "Krum": lambda: Krum(num_malicious_nodes=1, **QUIET),
    "MultiKrum": lambda: MultiKrum(num_malicious_nodes=1, num_nodes_to_select=3, **QUIET),
    "Bulyan": lambda: Bulyan(num_malicious_nodes=0, **QUIET),
    "FedAdam": lambda: FedAdam(eta=0.05, **QUIET),
    "FedYogi": lambda: FedYogi(eta=0.05, **QUIET),
    "FedAdagrad": lambda: FedAdagrad(eta=0.05, **QUIET),
    "FedAvgM": lambda: FedAvgM(server_learning_rate=0.9, server_momentum=0.5, **QUIET),
    "FedProx": lambda: FedProx(proximal_mu=0.1, **QUIET),
    "QFedAvg": lambda: QFedAvg(client_learning_rate=0.1, q=0.2, **QUIET),
    "server-side fixed clipping": lambda: DifferentialPrivacyServerSideFixedClipping(
        FedAvg(**QUIET), clipping_norm=10.0, **PRIVATE
    ),
    "server-side adaptive clipping": lambda: DifferentialPrivacyServerSideAdaptiveClipping(
        FedAvg(**QUIET), initial_clipping_norm=10.0, **PRIVATE
    ),
    "client-side fixed clipping": lambda: DifferentialPrivacyClientSideFixedClipping(
        FedAvg(**QUIET), clipping_norm=10.0, **PRIVATE
    ),
    "client-side adaptive clipping": lambda: DifferentialPrivacyClientSideAdaptiveClipping(
        FedAvgM(server_learning_rate=0.9, server_momentum=0.5, **QUIET), initial_clipping_norm=10.0, **PRIVATE
    ),
}
"""Every strategy that the wrapper promises to carry."""


@dataclass(frozen=True)
class Nudge(Method):
    """FedAvg that also moves every parameter by -1 in each round."""

    name = "nudge"

    def step(self, state: ServerState, cohort: Cohort, context: RoundContext) -> tuple[ServerState, Diagnostics]:
        change = context.learning_rate * context.aggregate(cohort.updates, cohort.shares)
        return self.advance(state, cohort, change + 1.0), {"nudged": 1.0}


class Net(nn.Module):
    """A linear model behind batch norm, whose step counter is a whole number of no dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.out = nn.Linear(3, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.out(self.norm(inputs))


def initial() -> ArrayRecord:
    """The model that every run begins with."""
    torch.manual_seed(0)
    return ArrayRecord(Net().state_dict())


def trained(message: Message, context: Context) -> Message:
    """A client that moves every parameter towards a point of its own, and counts a step."""
    node = int(context.node_config["partition-id"])
    (arrays,) = message.content.array_records.values()
    fresh = ArrayRecord()
    for name, array in arrays.items():
        value = array.numpy()
        whole = np.issubdtype(value.dtype, np.integer)
        fresh[name] = Array(np.asarray(value + node + 1 if whole else value + np.float32(0.1) * (node**1.5 - value)))
    return answer(message, fresh, node)


def nearly_idle(message: Message, context: Context) -> Message:
    """A client that sends back next to nothing else than it was sent (Flower's clipping divides by the change)."""
    (arrays,) = message.content.array_records.values()
    fresh = ArrayRecord({**arrays, "out.bias": Array(arrays["out.bias"].numpy() + np.float32(1e-6))})
    return answer(message, fresh, int(context.node_config["partition-id"]))


def answer(message: Message, arrays: ArrayRecord, node: int, **metrics: float) -> Message:
    """A reply such as any of the strategies wants it."""
    told = {"num-examples": 10 + node, "train_loss": 0.5 + node, "norm_bit": 1.0, **metrics}
    return Message(RecordDict({"arrays": arrays, "metrics": MetricRecord(told)}), reply_to=message)


def wrapped(inner: Strategy, method: Method | None = None, **settings) -> EquFLStrategy:
    """The strategy with a method around it."""
    defaults = {"model": Net(), "schema": SCHEMA, "target": DemographicParity(), "learning_rate": 0.1}
    return EquFLStrategy(inner, method=method or FedAvgMethod(), **(defaults | settings))


def run(strategy: Strategy, app=trained, rounds: int = 4, arrays: ArrayRecord | None = None, **settings):
    """What the strategy makes of the clients."""
    return strategy.start(InlineGrid(app, nodes=NODES), arrays or initial(), num_rounds=rounds, **settings)


def state(result) -> dict[str, torch.Tensor]:
    """The model that a run ended with."""
    return dict(result.arrays.to_torch_state_dict())
