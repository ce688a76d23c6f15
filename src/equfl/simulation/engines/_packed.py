"""Multi-layer perceptrons with the plain objective: the gradient of all clients by hand, as batched products.

How it is made fast (what each point gives is in docs/measurements.md):

- Rows are packed ``[inputs | 1 | label]``: one gather fetches a batch whole, and the first bias is a row of its weight.
- Two classes need one row of scores, the margin ``z_1 - z_0``, because softmax sees nothing else.
- Everything is written in place, in one workspace that all steps and rounds share.
- So many clients at a time that what a step touches stays in the processor's second-level cache.
"""

from collections.abc import Sequence
from math import ceil

import torch
from torch import Tensor, nn

from equfl.core.protocol import ServerState
from equfl.core.samples import Samples
from equfl.methods.base import Tensors, changes
from equfl.simulation.engines._schedule import shuffled
from equfl.simulation.engines._workspace import Sizes, Views, Workspace
from equfl.simulation.engines.base import Answers, Clients
from equfl.training.sgd import SGD

CACHE = 2**20
"""Bytes that one thread's step should touch: half of the second-level cache of a server's core."""
FEWEST = 8
"""With fewer clients at a time, calling costs more than the cache gives back."""

masked = torch.ops.aten.threshold_backward.grad_input
"""The gradient of ReLU, in one pass and in place, which torch offers under this name only."""


class Packed:
    """Trains some clients at once."""

    def __init__(self, clients: Clients, memory: int) -> None:
        assert isinstance(clients.training, SGD)
        self.clients, self.training = clients, clients.training
        shards, layout = clients.shards, clients.network.layout
        inputs, classes = shards.pooled.inputs, layout.shapes[-1][0]
        self.rows = min(self.training.batch_size, max(shards.sizes))
        self.margin = classes == 2
        self.contrast = inputs.new_tensor([[-1.0, 1.0]]) if self.margin else torch.eye(classes).to(inputs)
        self.classes = torch.arange(classes, device=inputs.device).unsqueeze(1)
        self.importance = shards.pooled.importance
        if changes(clients.method, "weigh"):
            self.importance = inputs.new_ones(len(inputs))
        self.sizes = Sizes.of(layout, rows=self.rows, weighted=self.importance is not None, scores=len(self.contrast))
        # Rows are kept packed if that leaves half of the memory; if not, they are packed batch by batch.
        kept = len(inputs) * self.sizes.columns * inputs.element_size()
        self.packed = self._pack(shards.pooled) if kept <= memory // 2 else None
        self.at_once = self._at_once(memory if self.packed is None else memory - kept)
        self.workspace = Workspace(self.sizes, layout, self.contrast, clients=self.at_once)

    @staticmethod
    def obstacle(clients: Clients) -> str:
        """Why these clients cannot be trained this way; empty if they can."""
        if type(clients.training) is not SGD:
            return f"training {clients.training.name!r}"
        if changes(clients.method, "objective"):
            return f"the objective of {clients.method.name!r}"
        if clients.shards.pooled.labels.is_floating_point():
            return "labels that are memberships"
        return "" if is_perceptron(clients.network.module) else "a model that is not linear layers with ReLU between"

    def weigh(self, instructions: Tensors) -> None:
        """Give the rows their weights of this round."""
        if not changes(self.clients.method, "weigh"):
            return
        assert self.importance is not None
        weights = self.clients.method.weigh(self.clients.shards.pooled, instructions)
        column = self.importance if self.packed is None else self.packed[:, self.sizes.units[0] + 1]
        column.copy_(self.importance.new_ones(()) if weights is None else weights)

    def __call__(self, state: ServerState, ids: Sequence[int], instructions: Tensors, out: Answers) -> None:
        """Train up to ``at_once`` clients, who come busiest first."""
        with torch.inference_mode():
            steps, lines = shuffled(self.clients, self.training, ids, round=state.round + 1)
            self.workspace.start(state.vector, len(ids))
            for step, rows in zip(steps, lines, strict=True):
                views = self.workspace.views(step.count, step.width)
                self._gather(rows, views.packed)
                if step.sizes is None:
                    self._descend(views, self.training.learning_rate / step.width)
                else:
                    self._descend(views, self.training.learning_rate, share=_shares(step.sizes, views.scores))
            self.workspace.read(out.vectors)

    def _descend(self, views: Views, rate: float, *, share: Tensor | None = None) -> None:
        """One step; ``rate`` is the learning rate per row unless ``share`` says what each row's part is."""
        for layer in views.hidden:
            _product(layer.below, layer.weight, layer.bias, out=layer.above).relu_()
        _product(views.head, views.top_t, views.head_bias, out=views.scores)
        error = self._error(views, share)
        gradient = torch.bmm(error, views.top)
        if views.hidden:  # the error below the head, in the place of the layer itself
            if self.margin:
                masked(views.error_t, views.top, 0, grad_input=views.top).mul_(views.head)
            else:
                below = torch.bmm(views.error_t, views.head, out=views.room)
                masked(below, views.top, 0, grad_input=views.top)
        # Where the logits of two classes move by d and -d, the margin moves by 2 d.
        length = 2 * rate if self.margin else rate
        views.head.sub_(gradient, alpha=length)
        if views.head_bias is not None:
            views.head_bias.sub_(error.sum(dim=2, keepdim=True), alpha=length)

        for layer in reversed(views.hidden):
            if layer.bias is None:
                layer.weight.baddbmm_(layer.below_t, layer.above, alpha=-rate)
            else:
                below = torch.bmm(layer.above, layer.weight_t, out=layer.room)
                layer.weight.baddbmm_(layer.below_t, layer.above, alpha=-rate)
                layer.bias.sub_(layer.above.sum(dim=1, keepdim=True), alpha=rate)
                masked(below, layer.below, 0, grad_input=layer.below)

    def _error(self, views: Views, share: Tensor | None) -> Tensor:
        """The gradient of each row's weighted cross-entropy by its scores."""
        if self.margin:
            error = torch.sigmoid(views.scores, out=views.error).sub_(views.labels)
        else:
            error = torch.softmax(views.scores, dim=1, out=views.error).sub_(
                (views.labels == self.classes).to(views.error)
            )
        if views.importance is not None:
            error.mul_(views.importance)
        if share is not None:
            error.mul_(share)
        return error

    def _pack(self, samples: Samples) -> Tensor:
        """``[inputs | 1 | label]``, and the importance if there is one."""
        label = self.sizes.units[0]
        packed = samples.inputs.new_ones(len(samples), self.sizes.columns)
        packed[:, : label - 1] = samples.inputs.flatten(1)
        packed[:, label] = samples.labels
        if self.importance is not None:
            packed[:, label + 1] = self.importance
        return packed

    def _gather(self, rows: Tensor, out: Tensor) -> None:
        if self.packed is not None:
            torch.index_select(self.packed, 0, rows, out=out)
            return
        pooled, label = self.clients.shards.pooled, self.sizes.units[0]
        torch.index_select(pooled.inputs.flatten(1), 0, rows, out=out[:, : label - 1])
        out[:, label].copy_(pooled.labels.index_select(0, rows))
        if self.importance is not None:
            out[:, label + 1].copy_(self.importance.index_select(0, rows))

    def _at_once(self, memory: int) -> int:
        """How many clients fit: into the memory, and a step of theirs into the cache."""
        sizes, largest = self.clients.shards.sizes, max(self.clients.shards.sizes)
        number = self.contrast.element_size()
        passes = ceil(self.training.steps(largest) / ceil(largest / self.training.batch_size))
        orders = 3 * 8 * passes * (largest + self.rows)
        models = 2 * self.clients.network.layout.size + self.rows * sum(self.sizes.units[1:]) + self.sizes.step
        fit = memory // (orders + number * models)
        if self.contrast.device.type == "cpu":
            fit = min(fit, max(FEWEST, torch.get_num_threads() * CACHE // (number * self.sizes.step)))
        return max(1, min(fit, len(sizes)))


def _product(left: Tensor, right: Tensor, plus: Tensor | None, *, out: Tensor) -> Tensor:
    return torch.bmm(left, right, out=out) if plus is None else torch.baddbmm(plus, left, right, out=out)


def _shares(sizes: Tensor, scores: Tensor) -> Tensor:
    """``[clients, 1, rows]``: one over the batch's rows, and nothing for the filling."""
    counts = torch.arange(scores.shape[2]) < sizes.unsqueeze(1)
    return (counts / sizes.unsqueeze(1)).unsqueeze(1).to(scores)


def is_perceptron(module: nn.Module) -> bool:
    """Whether the module is nothing but linear layers with bias and ReLU between, on the flattened inputs."""
    if not isinstance(module, nn.Sequential) or not isinstance(module[0], nn.Flatten) or len(module) % 2:
        return False
    linear, between = list(module)[1::2], list(module)[2::2]
    return all(isinstance(layer, nn.Linear) and layer.bias is not None for layer in linear) and all(
        isinstance(layer, nn.ReLU) for layer in between
    )
