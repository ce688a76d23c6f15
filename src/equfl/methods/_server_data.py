"""What the server of EquFL remembers between rounds: the models it has sent out, and the rows made from them."""

from dataclasses import replace
from math import floor
from typing import Literal

import torch

from equfl.core.arrays import Updates, Vector
from equfl.core.errors import ConfigError
from equfl.core.protocol import Diagnostics, RoundContext, ServerState
from equfl.core.samples import Samples
from equfl.core.schema import Schema
from equfl.fairness.base import GroupNotion
from equfl.fairness.neighbours import nearest
from equfl.synthesis.base import Synthesis

Strategy = Literal["continuous", "discrete"]

COLLECTED = "collected/"
"""What the entries of memory begin with that hold a collected model; the round it began follows."""


def collecting_rounds(share: float, rounds: int) -> int:
    """The paper's s: in how many of the first rounds models are collected, ``floor(share * rounds)``."""
    return floor(share * rounds + 1e-9)  # 0.29 * 100 is 28.999...


def check_share(share: float) -> None:
    """Refuse what is not a share of the rounds."""
    if not 0 <= share <= 1:
        raise ConfigError(
            f"method.collect_share = {share}", wanted="a share between 0 and 1", remedy="The paper uses 0.5"
        )


def check_collecting(share: float, models: int) -> None:
    """Refuse what is not a share of the rounds, or not a number of models."""
    check_share(share)
    if models < 0:
        raise ConfigError(
            f"method.collect_models = {models}", wanted="0 or more", remedy="0 keeps one model per collecting round"
        )


def model_to_keep(
    state: ServerState, context: RoundContext, *, share: float, models: int = 0, strategy: Strategy = "continuous"
) -> dict[str, Vector]:
    """The entry of memory that keeps the model this round began with; none if it is not to be kept.

    ``continuous`` keeps the first ``models`` of the collecting rounds, ``discrete`` as many drawn from them at random:
    with k still to be drawn and n rounds left, this one is taken with probability k / n (Knuth's selection sampling).
    So each choice of rounds is equally likely, and nothing but the state needs to be known.
    """
    rounds = collecting_rounds(share, context.rounds)
    left = rounds - context.round + 1
    missing = min(models or rounds, rounds) - sum(name.startswith(COLLECTED) for name in state.memory)
    if left < 1 or missing < 1:
        return {}
    if strategy == "discrete" and torch.rand((), generator=context.generator("collecting")).item() >= missing / left:
        return {}
    return {f"{COLLECTED}{context.round:05d}": state.vector}


def collected(state: ServerState) -> Updates:
    """The collected models, oldest first."""
    names = sorted(name for name in state.memory if name.startswith(COLLECTED))
    return (
        torch.stack([state.memory[name] for name in names]) if names else state.vector.new_empty(0, len(state.vector))
    )


def with_synthetic(
    state: ServerState, context: RoundContext, synthesis: Synthesis
) -> tuple[ServerState, Samples, Diagnostics]:
    """The state with D_syn in its memory, made now unless it was made before; and D_syn."""
    known = remembered(state, context.schema)
    if known is not None:
        return state, known, {}
    samples, diagnostics = synthesis(collected(state), context)
    samples = replace(samples, importance=None)  # not remembered, so not used either
    if any(not isinstance(part, GroupNotion) for part in context.target.parts()) and samples.neighbours is None:
        samples = replace(samples, neighbours=nearest(samples.inputs))
    synthetic = {
        "synthetic/inputs": samples.inputs,
        "synthetic/labels": samples.labels,
        "synthetic/groups": samples.groups,
    } | ({} if samples.neighbours is None else {"synthetic/neighbours": samples.neighbours})
    state = replace(state, memory={**state.memory, **synthetic})
    return state, samples, {**diagnostics, **cell_counts(samples, context.schema)}


def cell_counts(samples: Samples, schema: Schema) -> Diagnostics:
    """Rows per (label, group), soft ones by their share, as a round's record names them.

    A cell without rows shows no gap: it is left out of every comparison, and counted here.
    """
    cells = samples.label_weights().T @ samples.group_weights()
    return {
        f"synthesis/rows/{label}/{group}": cells[y, a].item()
        for y, label in enumerate(schema.classes)
        for a, group in enumerate(schema.groups)
    } | {
        "synthesis/cells_without_rows": float((cells <= 0).sum()),
        "synthesis/groups_without_rows": float((cells.sum(dim=0) <= 0).sum()),
    }


def remembered(state: ServerState, schema: Schema) -> Samples | None:
    """D_syn, once it is in the state's memory."""
    if "synthetic/inputs" not in state.memory:
        return None
    return Samples(
        inputs=state.memory["synthetic/inputs"],
        labels=state.memory["synthetic/labels"],
        groups=state.memory["synthetic/groups"],
        classes=len(schema.classes),
        group_count=len(schema.groups),
        neighbours=state.memory.get("synthetic/neighbours"),
    )
