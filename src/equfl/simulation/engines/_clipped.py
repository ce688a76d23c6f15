"""DP-SGD on multi-layer perceptrons with the plain objective: all clients at once, no row's gradient ever written out.

A linear layer's gradient by one row is the outer product of the error above and the input below, so its length is the
product of theirs, and the sum of all rows' clipped gradients is one matrix product in which every row's error is shrunk
by its factor (Goodfellow, 2015). The reference is ``DPSGD.train``.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch.nn.utils.rnn import pad_sequence

from equfl.core.protocol import ServerState
from equfl.methods.base import Tensors, changes, weighed
from equfl.privacy.noise import noisy, shrinking
from equfl.simulation.engines._packed import is_perceptron
from equfl.simulation.engines.base import Answers, Clients
from equfl.training.dp_sgd import DPSGD


class Clipped:
    """Trains some clients at once."""

    def __init__(self, clients: Clients, memory: int) -> None:
        assert isinstance(clients.training, DPSGD)
        self.clients, self.training = clients, clients.training
        self.samples = clients.shards.pooled
        layout = clients.network.layout
        units = sum(shape[0] for shape in layout.shapes[::2]) + layout.shapes[0][1]
        # A batch of twice the expected length is as good as the longest there is; a model, its noise and their sum.
        self.at_once = max(1, memory // (4 * (2 * self.training.batch_size * 3 * units + 4 * layout.size)))

    @staticmethod
    def obstacle(clients: Clients) -> str:
        """Why these clients cannot be trained this way; empty if they can."""
        if type(clients.training) is not DPSGD:
            return f"training {clients.training.name!r}"
        if changes(clients.method, "objective"):
            return f"the objective of {clients.method.name!r}"
        if clients.shards.pooled.labels.is_floating_point():
            return "labels that are memberships"
        return "" if is_perceptron(clients.network.module) else "a model that is not linear layers with ReLU between"

    def weigh(self, instructions: Tensors) -> None:
        """Give the rows their weights of this round."""
        self.samples = weighed(self.clients.method, self.clients.shards.pooled, instructions)

    def __call__(self, state: ServerState, ids: Sequence[int], instructions: Tensors, out: Answers) -> None:
        """Train some clients, who come busiest first."""
        sizes = [self.clients.shards.sizes[client] for client in ids]
        draws = [self.clients.draws(state.round + 1, client) for client in ids]
        batches = [list(self.training.sampled(size, one)) for size, one in zip(sizes, draws, strict=True)]
        noise = [one("noise") for one in draws]
        starts = [self.clients.shards.starts[client] for client in ids]
        with torch.inference_mode():
            vectors = state.vector.repeat(len(ids), 1)
            for step in range(len(batches[0])):
                count = sum(step < len(own) for own in batches)
                index = [own[step] + start for own, start in zip(batches[:count], starts[:count], strict=True)]
                lengths = vectors.new_tensor([len(one) for one in index])
                gradients = self._sums(vectors[:count], pad_sequence(index, batch_first=True), lengths)
                gradients = noisy(gradients, self.training.noise * self.training.clip, noise[:count])
                rates = [self.training.learning_rate / self.training.expected(size) for size in sizes[:count]]
                vectors[:count] -= vectors.new_tensor(rates).unsqueeze(1) * gradients
            out.vectors.copy_(vectors)

    def _sums(self, vectors: Tensor, index: Tensor, lengths: Tensor) -> Tensor:
        """The sums of the rows' clipped gradients, one line per client; shorter batches are filled up."""
        samples = self.samples.rows(index.flatten().to(vectors.device))
        parameters = list(self.clients.network.layout.unflatten(vectors).values())
        weights, biases = parameters[::2], parameters[1::2]
        layers = [samples.inputs.flatten(1).unflatten(0, index.shape)]
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            layers.append(torch.baddbmm(bias.unsqueeze(1), layers[-1], weight.mT).relu_())
        logits = torch.baddbmm(biases[-1].unsqueeze(1), layers[-1], weights[-1].mT)
        wanted = one_hot(samples.labels, logits.shape[-1]).to(logits).view_as(logits)
        errors = [logits.softmax(dim=-1) - wanted]
        if samples.importance is not None:
            errors[0] *= samples.importance.view(*index.shape, 1)
        for weight, layer in zip(weights[:0:-1], layers[:0:-1], strict=True):
            errors.insert(0, (errors[0] @ weight) * (layer > 0))
        # Each layer's bias is a weight whose input is 1.
        squares = [
            error.square().sum(dim=-1) * (layer.square().sum(dim=-1) + 1)
            for error, layer in zip(errors, layers, strict=True)
        ]
        filled = torch.arange(index.shape[1], device=vectors.device) >= lengths.unsqueeze(1)
        factors = shrinking(torch.stack(squares).sum(dim=0).sqrt(), self.training.clip).masked_fill_(filled, 0)
        sums: list[Tensor] = []
        for error, layer in zip(errors, layers, strict=True):
            error *= factors.unsqueeze(-1)
            sums += [(error.mT @ layer).flatten(1), error.sum(dim=1)]
        return torch.cat(sums, dim=1)
