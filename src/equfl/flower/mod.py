"""What a client adds to its replies: a Flower mod, so that the client's own code stays as it is."""

import os
from collections.abc import Callable

import torch
from flwr.app import Context, Message, MessageType
from flwr.clientapp.typing import ClientAppCallable, Mod
from torch import Tensor, nn

from equfl.core.errors import ConfigError
from equfl.core.samples import Samples
from equfl.core.vector import Network
from equfl.flower.records import RECORD, Form, pack, unpack
from equfl.flower.screening import PARTITION
from equfl.methods.base import Method, Tensors

TRAIN = str(MessageType.TRAIN)


def feedback_mod(
    *,
    method: Method,
    model: Callable[[Context], nn.Module | Network],
    rows: Callable[[Context], Samples],
    noise: Callable[[Context], float] | None = None,
) -> Mod:
    """A mod that reports what the method asks of a client, for the model that the client just received.

    ``ClientApp(mods=[feedback_mod(method=EquFLFeedback(), model=Net, rows=my_rows)])`` is all that changes at a client.

    Args:
        method: The same method as the server's.
        model: Builds the architecture; weights come with each message.
        rows: The client's own training rows: inputs, labels and groups.
        noise: Standard deviation of the normal noise that is added to every count before it leaves the client. One
            person more or less changes one count by 1, so a round of counts has sensitivity 1
            (``equfl.privacy.gaussian`` says how private some rounds of them are).
    """

    def mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        if message.metadata.message_type.partition(".")[0] != TRAIN or RECORD not in message.content:
            return call_next(message, context)
        # Before the client's own code runs, because that may empty the message.
        report = _report(message, context)
        reply = call_next(message, context)
        if not reply.has_error():
            (metrics,) = reply.content.metric_records.values()
            metrics.update(pack(report))
            if "partition-id" in context.node_config:
                metrics[PARTITION] = int(context.node_config["partition-id"])
        return reply

    def _report(message: Message, context: Context) -> Tensors:
        network = _network(model(context))
        (arrays,) = message.content.array_records.values()
        vector, buffers = Form.of(arrays, network).read(arrays)
        found = method.report(network, vector, buffers, method.prepare(rows(context), {}), instructions(message))
        deviation = 0.0 if noise is None else noise(context)
        return {name: _noised(name, value, deviation) for name, value in found.items()} if deviation else found

    return mod


def instructions(message: Message) -> dict[str, Tensor]:
    """What the server's method sent along with the model, for the hooks that a client's own loop calls."""
    record = message.content.config_records.get(RECORD)
    return unpack(dict(record)) if record else {}


def _network(model: nn.Module | Network) -> Network:
    return model if isinstance(model, Network) else Network(model)


def _noised(name: str, counts: Tensor, deviation: float) -> Tensor:
    if deviation < 0 or name != "counts":
        raise ConfigError(
            f"noise = {deviation} on a report of {name}",
            wanted="0 or more, on counts",
            remedy="Only of counts is it known by how much one person changes them",
        )
    # From the system's entropy: the server knows every seed of ours, and could take the noise off again.
    generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(8), "big") >> 1)
    noisy = counts.cpu() + deviation * torch.randn(counts.shape, dtype=torch.float64, generator=generator)
    # A server refuses counts that cannot be true: below 0, or more in all than the client has rows, which it sends
    # anyway. To make them possible again costs no privacy, because it looks at nothing but them and that number.
    possible = noisy.clamp(min=0.0)
    return possible * (counts.sum().cpu() / possible.sum().clamp(min=counts.sum().cpu()))
