"""What the server of EquFL remembers between rounds: the models it has sent out, and the rows made from them."""

from dataclasses import replace
from math import floor

import torch

from equfl.core.arrays import Updates, Vector
from equfl.core.errors import ConfigError
from equfl.core.protocol import Diagnostics, RoundContext, ServerState
from equfl.core.samples import Samples
from equfl.fairness.neighbours import nearest
from equfl.synthesis.base import Synthesis


def collecting_rounds(share: float, rounds: int) -> int:
    """The paper's s: in how many of the first rounds models are collected, ``floor(share * rounds)``."""
    return floor(share * rounds + 1e-9)  # 0.29 * 100 is 28.999...


def check_share(share: float) -> None:
    """Refuse what is not a share of the rounds."""
    if not 0 <= share <= 1:
        raise ConfigError(
            f"method.collect_share = {share}", wanted="a share between 0 and 1", remedy="The paper uses 0.5"
        )


def collect(state: ServerState, context: RoundContext) -> dict[str, Vector]:
    """The entry of memory that keeps the model this round began with."""
    return {f"collected/{context.round:05d}": state.vector}


def collected(state: ServerState) -> Updates:
    """The collected models, oldest first."""
    return torch.stack([state.memory[name] for name in sorted(state.memory) if name.startswith("collected/")])


def with_synthetic(
    state: ServerState, context: RoundContext, synthesis: Synthesis
) -> tuple[ServerState, Samples, Diagnostics]:
    """The state with D_syn in its memory, made now unless it was made before; and D_syn."""
    diagnostics: Diagnostics = {}
    if "synthetic/inputs" not in state.memory:
        samples, diagnostics = synthesis(collected(state), context)
        synthetic = {
            "synthetic/inputs": samples.inputs,
            "synthetic/labels": samples.labels,
            "synthetic/groups": samples.groups,
            "synthetic/neighbours": nearest(samples.inputs),
        }
        state = replace(state, memory={**state.memory, **synthetic})
    return state, _synthetic(state, context), diagnostics


def _synthetic(state: ServerState, context: RoundContext) -> Samples:
    return Samples(
        inputs=state.memory["synthetic/inputs"],
        labels=state.memory["synthetic/labels"],
        groups=state.memory["synthetic/groups"],
        classes=len(context.schema.classes),
        group_count=len(context.schema.groups),
        neighbours=state.memory["synthetic/neighbours"],
    )
