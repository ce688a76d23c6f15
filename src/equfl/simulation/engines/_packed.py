"""Multi-layer perceptrons with the plain objective: the gradient of all clients by hand, as batched products."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from equfl.core.arrays import Updates
from equfl.core.protocol import ServerState
from equfl.core.samples import Samples
from equfl.methods.base import changes
from equfl.simulation.engines._schedule import schedule
from equfl.simulation.engines.base import Clients
from equfl.training.sgd import SGD


class Packed:
    """Trains some clients at once. The weights are stacked ``[clients, inputs, outputs]``."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients

    @staticmethod
    def obstacle(clients: Clients) -> str:
        """Why these clients cannot be trained this way; empty if they can."""
        if type(clients.training) is not SGD:
            return f"training {clients.training.name!r}"
        if changes(clients.method, "objective"):
            return f"the objective of {clients.method.name!r}"
        return "" if is_perceptron(clients.network.module) else "a model that is not linear layers with ReLU between"

    def bytes_per_client(self) -> int:
        """How much memory one more client needs."""
        width = min(self.clients.training.batch_size, max(self.clients.shards.sizes))  # type: ignore[attr-defined]
        units = sum(shape[0] for shape in self.clients.network.layout.shapes[1::2])
        inputs = self.clients.network.layout.shapes[0][1]
        return 4 * (2 * self.clients.network.layout.size + width * (inputs + 3 * units)) + 40 * max(
            self.clients.shards.sizes
        )

    def __call__(self, state: ServerState, ids: Sequence[int]) -> Updates:
        training = self.clients.training
        assert isinstance(training, SGD)
        plan = schedule(self.clients, training, ids, round=state.round + 1)
        pooled = self.clients.shards.pooled
        parameters = [
            value.expand(len(ids), *value.shape).clone()
            for value in self.clients.network.layout.unflatten(state.vector).values()
        ]
        weights = [weight.mT.contiguous() for weight in parameters[::2]]
        biases = [bias.unsqueeze(1) for bias in parameters[1::2]]
        with torch.inference_mode():
            for span in plan.spans:
                busy = span.stop - span.start
                sizes = plan.sizes[span].unsqueeze(1)
                valid = torch.arange(plan.rows.shape[1]) < sizes
                scale = (valid * (-training.learning_rate / sizes)).to(state.vector)
                _step(
                    [weight[:busy] for weight in weights],
                    [bias[:busy] for bias in biases],
                    pooled.rows(plan.rows[span].reshape(-1)),
                    scale,
                )
        layers = zip(weights, biases, strict=True)
        return torch.cat([part for w, b in layers for part in (w.mT.flatten(1), b.flatten(1))], dim=1)


def _step(weights: list[Tensor], biases: list[Tensor], batch: Samples, scale: Tensor) -> None:
    shape = scale.shape
    if batch.importance is not None:
        scale = scale * batch.importance.view(shape)
    activations = [batch.inputs.flatten(1).view(*shape, -1)]
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        activations.append(torch.baddbmm(bias, activations[-1], weight).relu_())
    logits = torch.baddbmm(biases[-1], activations[-1], weights[-1])
    error = (logits.softmax(dim=-1) - batch.label_weights().view_as(logits)) * scale.unsqueeze(-1)
    for layer in reversed(range(len(weights))):
        below = torch.bmm(error, weights[layer].mT) * (activations[layer] > 0) if layer else error
        weights[layer].baddbmm_(activations[layer].mT, error)
        biases[layer].add_(error.sum(dim=1, keepdim=True))
        error = below


def is_perceptron(module: nn.Module) -> bool:
    """Whether the module is nothing but linear layers with bias and ReLU between, on the flattened inputs."""
    if not isinstance(module, nn.Sequential) or not isinstance(module[0], nn.Flatten) or len(module) % 2:
        return False
    linear, between = list(module)[1::2], list(module)[2::2]
    return all(isinstance(layer, nn.Linear) and layer.bias is not None for layer in linear) and all(
        isinstance(layer, nn.ReLU) for layer in between
    )
