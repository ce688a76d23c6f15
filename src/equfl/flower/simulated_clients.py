"""A federation's clients behind Flower messages, trained by the simulator's engines."""

from collections.abc import Sequence
from typing import Any

import torch
from flwr.app import Message, MetricRecord, RecordDict
from torch.nn.functional import cross_entropy

from equfl.core.errors import ConfigError
from equfl.core.protocol import ServerState
from equfl.core.random import Seed
from equfl.core.samples import Samples
from equfl.data.base import Federation
from equfl.fairness.base import Notion
from equfl.fairness.equalized_odds import EqualizedOdds
from equfl.flower.arrays import LocalArray
from equfl.flower.records import RECORD, Form, pack, unpack
from equfl.flower.screening import PARTITION
from equfl.methods.base import Method
from equfl.methods.fedavg import FedAvg
from equfl.models.base import Model
from equfl.simulation.clientside import prepared, shown, surveyed
from equfl.simulation.engines.base import Clients, Engine
from equfl.simulation.engines.batched import Batched
from equfl.training.base import Training
from equfl.training.sgd import SGD

UNKNOWN = {"proximal-mu": "FedProx", "clipping_norm": "clipping at the client"}
"""What a strategy may ask of clients that local training here does not do."""


class SimulatedClients:
    """All clients of a federation: those that get the same model are trained at once.

    They answer as ClientApps with ``feedback_mod`` do, and draw the same batches as in the simulator.
    """

    def __init__(
        self,
        federation: Federation,
        *,
        model: Model,
        training: Training | None = None,
        method: Method | None = None,
        target: Notion | None = None,
        engine: Engine | None = None,
        seed: int = 0,
        train_loss: bool = False,
    ) -> None:
        """Lay the clients out.

        Args:
            federation: Whose rows.
            model: What they train.
            training: What they do in a round; plain SGD if not given.
            method: Whose hooks they run: the strategy's method, or FedAvg.
            target: The strategy's, for methods whose clients descend its loss; equalized odds if not given.
            engine: How many are computed at once; ``batched`` if not given.
            seed: Their batches follow from it, as in the simulator.
            train_loss: Also send the loss of the received model on their rows, which QFedAvg wants.
        """
        self._method = method or FedAvg()
        self._network = model.network(federation.schema.shape, len(federation.schema.classes))
        totals = surveyed(self._method, federation.train)
        train = prepared(self._method, federation.train, totals)
        self._train, self._test = train, shown(self._method, federation, totals)
        clients = Clients(train, self._network, training or SGD(), self._method, Seed(seed), target or EqualizedOdds())
        self._trainer = (engine or Batched()).load(clients)
        self._losses = train_loss
        self._rounds = 0
        self.nodes = len(train)

    def __call__(self, messages: list[Message]) -> list[Message]:
        """The replies, in the order of the messages."""
        replies: dict[int, Message] = {}
        batches: dict[tuple[str, int], list[Message]] = {}
        for message in messages:
            batches.setdefault((message.metadata.message_type, id(message.content)), []).append(message)
        for (kind, _), batch in batches.items():
            answer = self._trained if kind == "train" else self._evaluated
            replies |= {
                message.metadata.dst_node_id: reply for message, reply in zip(batch, answer(batch), strict=True)
            }
        return [replies[message.metadata.dst_node_id] for message in messages]

    def _trained(self, messages: Sequence[Message]) -> list[Message]:
        content = messages[0].content
        config: dict[str, Any] = {
            key: value for record in content.config_records.values() for key, value in record.items()
        }
        for key, meaning in UNKNOWN.items():
            if config.get(key):
                raise ConfigError(
                    f"{key} = {config[key]} in the strategy's config",
                    wanted="a strategy that asks for plain local training",
                    remedy=f"Simulated clients know nothing of {meaning}: run a ClientApp in the InlineGrid",
                )
        self._rounds = int(config.get("server-round", self._rounds + 1))
        form, state = self._received(content)
        told = unpack(dict(content.config_records.get(RECORD, {})))
        ids = [message.metadata.dst_node_id for message in messages]
        answers = self._trainer(state, ids, told)
        name = next(iter(content.array_records))
        models = form.write_each(answers.vectors, answers.buffers, LocalArray)
        replies = []
        for client, message, arrays in zip(ids, messages, models, strict=True):
            samples = self._train[client]
            metrics = MetricRecord({"num-examples": len(samples)})
            if RECORD in content:
                report = self._method.report(self._network, state.vector, state.buffers, samples, told)
                metrics.update(pack(report))
                metrics[PARTITION] = client
            if self._losses:
                metrics["train_loss"] = self._scored(state, samples)[0]
            replies.append(Message(RecordDict({name: arrays, "metrics": metrics}), reply_to=message))
        return replies

    def _evaluated(self, messages: Sequence[Message]) -> list[Message]:
        _, state = self._received(messages[0].content)
        replies = []
        for message in messages:
            samples = self._test[message.metadata.dst_node_id]
            loss, accuracy = self._scored(state, samples)
            metrics = MetricRecord({"num-examples": len(samples), "loss": loss, "accuracy": accuracy})
            replies.append(Message(RecordDict({"metrics": metrics}), reply_to=message))
        return replies

    def _received(self, content: RecordDict) -> tuple[Form, ServerState]:
        (arrays,) = content.array_records.values()
        form = Form.of(arrays, self._network)
        vector, buffers = form.read(arrays)
        # Some strategies send float64; a client takes it as what its rows are.
        return form, ServerState(self._rounds - 1, vector.to(self._train.pooled.inputs.dtype), buffers)

    def _scored(self, state: ServerState, samples: Samples) -> tuple[float, float]:
        with torch.no_grad():
            logits = self._network.forward(state.vector, state.buffers, samples.inputs)
        right = (logits.argmax(dim=1) == samples.labels).double().mean()
        return cross_entropy(logits, samples.labels).item(), right.item()
