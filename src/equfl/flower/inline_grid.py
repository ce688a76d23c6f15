"""A Flower grid in one process: strategies run unchanged, without Ray, without a SuperLink and without waiting."""

import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import uuid4

from flwr.app import Context, Error, Message, RecordDict
from flwr.serverapp import Grid

from equfl.core.errors import ConfigError
from equfl.flower.simulated_clients import SimulatedClients

App = Callable[[Message, Context], Message]
"""What a ClientApp is: it answers one message."""


class InlineGrid(Grid):
    """Hands messages to clients in this process: ``strategy.start(InlineGrid(app, nodes=4), arrays, num_rounds=10)``.

    ``clients`` is an unmodified ``ClientApp``, run for one node after another, or ``SimulatedClients``, all of whom are
    trained at once. Nodes are numbered from 0, node i has partition i, and replies come in the order of the messages.
    """

    def __init__(
        self, clients: App | SimulatedClients, *, nodes: int | None = None, run_config: Mapping[str, Any] | None = None
    ) -> None:
        if isinstance(clients, SimulatedClients):
            self._answer: Callable[[list[Message]], list[Message]] = clients
            count = clients.nodes
        else:
            if nodes is None or nodes < 1:
                raise ConfigError(f"nodes = {nodes}", wanted="1 or more", remedy="Say how many nodes run the ClientApp")
            count = nodes
            self._answer = _Apps(clients, count, dict(run_config or {}))
        self._nodes = range(count)
        self._replies: dict[str, Message] = {}
        self._run: Any = None
        _assume_identity()

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | int | None = None) -> Iterable[Message]:
        """The replies to all messages; nothing is waited for, so ``timeout`` does nothing."""
        return self._answer(list(messages))

    def get_node_ids(self) -> Iterable[int]:
        """The numbers of the nodes."""
        return list(self._nodes)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Answer the messages now; the replies wait under the names that are returned."""
        names = []
        for reply in self.send_and_receive(messages):
            names.append(uuid4().hex)
            self._replies[names[-1]] = reply
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """The replies of those names, each once."""
        return [self._replies.pop(name) for name in message_ids if name in self._replies]

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        """A message to a node."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def set_run(self, run: Any) -> None:
        """Remember what Flower knows of the run."""
        self._run = run

    @property
    def run(self) -> Any:
        """What ``set_run`` was given."""
        return self._run


class _Apps:
    """One ClientApp at every node, each with a context of its own that lasts over the rounds."""

    def __init__(self, app: App, nodes: int, run_config: dict[str, Any]) -> None:
        self._app = app
        self._contexts = [
            Context(
                run_id=0,
                node_id=node,
                node_config={"partition-id": node, "num-partitions": nodes},
                state=RecordDict(),
                run_config=run_config,
            )
            for node in range(nodes)
        ]

    def __call__(self, messages: list[Message]) -> list[Message]:
        return [self._reply(message) for message in messages]

    def _reply(self, message: Message) -> Message:
        # A strategy sends all nodes one and the same content; across a network each would get its own.
        message.content = RecordDict({name: record.copy() for name, record in message.content.items()})
        try:
            return self._app(message, self._contexts[message.metadata.dst_node_id])
        except Exception:  # whatever a user's client raises is a failed reply there, and here
            return Message(Error(0, traceback.format_exc()), reply_to=message)


def _assume_identity() -> None:
    """Say who sends the messages; in a ServerApp that is known, and outside of one messages cannot be made without."""
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("run_id", "node_id", "task_id"):
        try:
            getattr(TaskIdentity, name)
        except RuntimeError:
            setattr(TaskIdentity, name, 1)
