"""What crosses a round's borders: the server's state, the cohort's answers, the round's context and record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from equfl.core.arrays import Shares, Updates, Vector
from equfl.core.samples import Shards
from equfl.core.schema import Schema
from equfl.core.vector import Buffers, Network

Diagnostics = Mapping[str, float]
"""Numbers that a step wants to be remembered by: written into the round's record, never read by an algorithm."""


@dataclass(frozen=True)
class ServerState:
    """All that the server knows after a round; saving it is saving the run."""

    round: int
    """How many rounds are done; 0 is the random start."""
    vector: Vector
    """The global model, the paper's w."""
    buffers: Buffers = field(default_factory=dict)
    memory: Mapping[str, Tensor] = field(default_factory=dict)
    """What the method remembers, by name; an entry that has not changed stays the same tensor object."""
    idle: int = 0
    """How many rounds in a row, the last one among them, had no update that could be used."""


@dataclass(frozen=True)
class Cohort:
    """The answers of a round's participants, sorted by client before anything is added up.

    Where the server sees nothing but sums (``equfl.core.secure_sum``), all of them are one row, the sum, of share 1.
    """

    ids: tuple[int, ...]
    updates: Updates
    shares: Shares
    rows: tuple[float, ...]
    """How many rows each of them trained on, or whatever else it is weighed by."""
    buffers: Buffers = field(default_factory=dict)
    """Already averaged by share."""
    reports: Mapping[str, Tensor] = field(default_factory=dict)
    """What the method's ``report`` returned, stacked by client."""


@dataclass(frozen=True)
class RoundContext:
    """What a server step may use, and nothing more."""

    round: int
    """The round being computed, 1 to ``rounds``."""
    rounds: int
    learning_rate: float
    network: Network
    schema: Schema
    aggregate: Callable[[Updates, Shares], Vector]
    """The aggregation rule of the run, the paper's GAR."""
    vector: Vector
    """The model that the participants were sent, and changed."""
    generator: Callable[[str], torch.Generator]
    """Purpose -> this round's generator for it."""
    buffers: Buffers = field(default_factory=dict)
    """The buffers that went with that model."""
    target: Any = None
    """The fairness notion whose bias the run wants lower (``equfl.fairness.base.Notion``)."""
    local_steps: float = 1.0
    """Mean number of gradient steps that a client takes in a round."""
    real_rows: Shards | None = None
    """The clients' training rows. No server has them: only a simulation can give them, and it does so only to a method
    that says it takes them, which makes it a control and no method (``equfl.methods.base.takes_real_rows``)."""
    progress: Callable[[str, int, int], None] = lambda task, done, total: None
    """Called by long steps: what is being done, how far it is, how far it goes."""


@dataclass(frozen=True)
class RoundRecord:
    """What is written down about a round."""

    round: int
    participants: int
    evaluation: Mapping[str, float] = field(default_factory=dict)
    """``accuracy`` and per notion ``NOTION/pooled`` and ``NOTION/client_mean``; empty where not evaluated."""
    diagnostics: Diagnostics = field(default_factory=dict)
    """What the method tells of its step."""
    clients: Diagnostics = field(default_factory=dict)
    """What became of the participants: ``one_group``, ``groups_without_rows``, ``not_finite``, ``rejected``,
    ``too_few``, ``idle``, and what the aggregation rule tells as ``RULE/...``. What did not happen is not there."""
    rejected: tuple[int, ...] = ()
    """The participants whose updates had no part: not finite, or left out by the rule."""
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    """What the round took: ``clients``, ``server`` and ``evaluation``; all that may differ between equal runs."""
