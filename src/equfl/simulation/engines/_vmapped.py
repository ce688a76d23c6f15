"""Any model and any objective: the gradient of one client's batch, as ``serial`` takes it, mapped over clients."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil

import torch
from torch import Tensor, fx
from torch.func import grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from equfl.core.arrays import Updates, Vector
from equfl.core.protocol import ServerState
from equfl.core.vector import Buffers
from equfl.methods.base import Tensors, weighed
from equfl.simulation.engines._schedule import shuffled
from equfl.simulation.engines.base import Answers, Clients
from equfl.training.noisy_sgd import NoisySGD
from equfl.training.sgd import SGD

Gradient = Callable[[Tensor, Tensors, Tensors, Tensors], tuple[Tensor, Tensors]]
"""Models, buffers and fields of the batch, one each per client, and instructions in; gradients and new buffers out."""

TRACE_AFTER = 50
"""Tracing a step takes as long as it saves in so many; shapes that come back less often are not traced."""


class Vmapped:
    """Trains some clients at once; at each step those whose batches are equally long in one call.

    ``vmap`` goes through every operation in Python. A step whose shapes keep coming back is therefore recorded once as
    the plain operations that it came down to, and replayed; that gives the same bits.
    """

    def __init__(self, clients: Clients, memory: int) -> None:
        assert isinstance(clients.training, SGD)
        self.clients, self.training, self.memory = clients, clients.training, memory
        self.gradient = gradient_of(clients)
        pooled = clients.shards.pooled
        self.columns = {"inputs": pooled.inputs, "labels": pooled.labels, "groups": pooled.groups}
        self.uses: Counter[tuple[object, ...]] = Counter()
        self.traced: dict[tuple[object, ...], Gradient] = {}
        self.at_once = 1

    @staticmethod
    def obstacle(clients: Clients) -> str:
        """Why these clients cannot be trained this way; empty if only a trial can tell."""
        known = type(clients.training) in (SGD, NoisySGD)
        return "" if known else f"training {clients.training.name!r}"

    def trial(self, state: ServerState, instructions: Tensors) -> str:
        """Why a step of two clients fails, the first line of the error; from one that works, how many fit at once.

        An objective that looks into its tensors (``if loss > 1``, ``.item()``), or that draws random numbers, fails.
        """
        self.weigh(instructions)
        rows = min(self.training.batch_size, max(self.clients.shards.sizes))
        index = torch.zeros(2 * rows, dtype=torch.int64, device=state.vector.device)
        vectors, buffers = state.vector.repeat(2, 1), {name: torch.stack([b, b]) for name, b in state.buffers.items()}
        arguments = (vectors, buffers, self._fields(index, 2), instructions)
        try:
            graph = make_fx(self.gradient)(*arguments)
        except Exception as error:  # 'serial' is the judge of whether the objective itself is wrong
            return str(error).partition("\n")[0]
        largest = max(self.clients.shards.sizes)
        orders = 3 * 8 * ceil(self.training.steps(largest) / ceil(largest / rows)) * (largest + rows)
        kept = 3 * sum(value.nbytes for value in (vectors, *buffers.values())) // 2
        self.at_once = max(1, self.memory // (orders + kept + _computed(graph) // 2))
        return ""

    def weigh(self, instructions: Tensors) -> None:
        """Give the rows their weights of this round."""
        weights = weighed(self.clients.method, self.clients.shards.pooled, instructions).importance
        if weights is not None:
            self.columns["importance"] = weights

    def __call__(self, state: ServerState, ids: Sequence[int], instructions: Tensors, out: Answers) -> None:
        """Train up to ``at_once`` clients, who come busiest first."""
        vectors, buffers = out.vectors, out.buffers
        for start, values in ((state.vector, vectors), *((state.buffers[name], buffers[name]) for name in buffers)):
            values.copy_(start)
        noise = [self.clients.draws(state.round + 1, client)("noise") for client in ids]
        for step, rows in zip(*shuffled(self.clients, self.training, ids, round=state.round + 1), strict=True):
            lines = rows.view(step.count, step.width)
            for group, size in step.alike():
                here = {name: value[group] for name, value in buffers.items()}
                fields = self._fields(lines[group, :size].reshape(-1), group.stop - group.start)
                gradients, fresh = self._gradient(vectors[group], here, fields, instructions)
                gradients = self.training.released(gradients, noise[group])
                vectors[group].sub_(gradients, alpha=self.training.learning_rate)
                for name, value in fresh.items():
                    buffers[name][group] = value

    def _gradient(
        self, vectors: Updates, buffers: Tensors, fields: Tensors, instructions: Tensors
    ) -> tuple[Tensor, Tensors]:
        arguments = (vectors, buffers, fields, instructions)
        shapes = tuple(
            (name, value.shape, value.dtype) for part in (buffers, fields, instructions) for name, value in part.items()
        )
        if shapes in self.traced:
            with torch.inference_mode():
                return self.traced[shapes](*arguments)
        self.uses[shapes] += 1
        if self.uses[shapes] == TRACE_AFTER:
            self.traced[shapes] = make_fx(self.gradient)(*arguments)
        return self.gradient(*arguments)

    def _fields(self, index: Tensor, clients: int) -> dict[str, Tensor]:
        """The tensors of a batch of samples, one line per client."""
        return {name: value.index_select(0, index).unflatten(0, (clients, -1)) for name, value in self.columns.items()}


def gradient_of(clients: Clients) -> Gradient:
    """The gradient that ``training.train`` takes of one client's batch, mapped over clients."""
    template = clients.shards.pooled.rows(slice(0, 0))

    def loss(vector: Vector, buffers: Buffers, fields: Tensors, instructions: Tensors) -> tuple[Tensor, Buffers]:
        samples = replace(template, **fields)  # type: ignore[arg-type]
        logits, fresh = clients.network.forward_training(vector, buffers, samples.inputs)
        return clients.method.objective(logits, samples, instructions, clients.target), fresh

    return vmap(grad(loss, has_aux=True), in_dims=(0, 0, 0, None))


def _computed(graph: fx.GraphModule) -> int:
    """Bytes of all that a recorded step computes, as if nothing were given back before its end."""
    return sum(
        value.numel() * value.element_size()
        for node in graph.graph.nodes
        if isinstance(node.target, torch._ops.OpOverload) and not node.target.is_view
        for value in torch.utils._pytree.tree_leaves(node.meta["val"])
        if isinstance(value, Tensor)
    )
