"""Whom a run protects, and how well: all that its training lets out, unless something else gives the rows away."""

from collections import Counter
from dataclasses import dataclass
from math import inf

from equfl.core.disclosure import ROWS, UPDATE
from equfl.core.random import Seed
from equfl.core.samples import Shards
from equfl.core.vector import Network
from equfl.methods.base import Method, changes, takes_real_rows
from equfl.privacy.accounting import epsilon
from equfl.privacy.release import Unit
from equfl.simulation.loop import participants
from equfl.training.base import Training


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-differential privacy of all that the clients send in a run, at the client for whom it is weakest."""

    unit: Unit
    """What cannot be told apart: the data with and without one row, or with and without all rows of one client."""
    epsilon: float
    """Infinite where there is no guarantee."""
    delta: float
    obstacle: str = ""
    """Why there is none."""


def guarantee(
    train: Shards,
    *,
    method: Method,
    network: Network,
    training: Training,
    rounds: int,
    seed: int = 0,
    participation: float = 1.0,
) -> Guarantee | None:
    """What the run guarantees; ``None`` if its training does not set out to guarantee anything.

    It is about what leaves the clients in training. How the rows were encoded, the test rows that a run is scored on,
    and how many rows a client has count as known to all.
    """
    first = training.protection(train.sizes[0], rounds)
    if first is None:
        return None
    noised = method.noised()
    # Noise that hides one row in a count does not hide all rows of a client; noise that hides a client hides its rows.
    unit = "row" if noised else first.unit
    obstacle = _obstacle(method, network, unit)
    if obstacle:
        return Guarantee(unit, inf, first.delta, obstacle)
    joined = Counter(
        client
        for number in range(1, rounds + 1)
        for client in participants(len(train), participation, Seed(seed).generator("participants", round=number))
    )
    kinds = {(train.sizes[client], times) for client, times in joined.items()}
    protections = [protection for rows, times in kinds if (protection := training.protection(rows, times))]
    weakest = max(epsilon((*protection.releases, *noised.values()), first.delta) for protection in protections)
    return Guarantee(unit, weakest, first.delta, "" if weakest < inf else "the training's noise is 0")


def _obstacle(method: Method, network: Network, unit: Unit) -> str:
    """What gives the rows away whatever the noise on the updates is; empty if nothing does."""
    if takes_real_rows(method):
        return "the server of this control is given rows of the clients"
    hidden = {UPDATE.name, ROWS.name, *method.noised()}
    bare = [disclosure.what for disclosure in method.leaves() if disclosure.name not in hidden]
    if bare:
        return f"{method.name!r} has the clients send {', and '.join(bare)} without noise"
    if unit == "row" and changes(method, "prepare"):
        return f"{method.name!r} changes rows by what the other rows are"
    if any(True for _ in network.module.named_buffers()):
        return "the model's statistics of its batches are sent without noise"
    return ""
