"""A network f of another architecture than the clients': the collected models taught to it, one after another.

The training on synthetic rows starts from a collected model, whose weights only fit the clients' architecture. So where
f is another one, it gets a trajectory of its own: for every collected model the weights with which f answers alike,
each found from the one before, so that all lie in one basin.
"""

from dataclasses import replace
from math import ceil

import torch

from equfl.core.arrays import Inputs, SoftLabels, Vector
from equfl.core.protocol import Diagnostics, RoundContext
from equfl.core.vector import Network
from equfl.models.base import Model
from equfl.synthesis._matching import Trajectory
from equfl.synthesis._schema_rows import EXACT, SchemaRows
from equfl.synthesis._training import logits_of

AS_MANY = 6
"""For each collected model f takes so many times the steps that a client takes in a round, at the clients' rate."""
FIRST = 5
"""The first model is learned from a random start, for so many times as many steps as each of the others."""


def of_network(
    model: Model | None, trajectory: Trajectory, rows: Inputs, context: RoundContext
) -> tuple[Trajectory, Diagnostics]:
    """The trajectory as the server's network retraces it; as it is where the server has the clients' network.

    f learns on the synthetic rows as they are at the beginning and on as many random rows that the schema allows (of
    pixels, ``N(0, 1)``), and the record says how well it answers like the last collected model.
    """
    if model is None:
        return trajectory, {}
    generator = context.generator("teaching")
    groups = torch.randint(len(context.schema.groups), (len(rows),), generator=generator)
    others = SchemaRows.draw(groups, context.schema, EXACT, generator).inputs()
    inputs = torch.cat([rows, others.to(rows)])
    network = model.network(context.schema.shape, len(context.schema.classes))
    vector = model.initial(network, generator)[0].to(rows)
    steps = ceil(AS_MANY * context.local_steps)
    taught: list[Vector] = []
    for teacher in trajectory.models:
        answers = logits_of(trajectory.network, teacher, inputs).softmax(dim=1)
        vector = distilled(network, vector, inputs, answers, context.learning_rate, steps if taught else FIRST * steps)
        taught.append(vector)
        context.progress("teaching the server's network", len(taught), len(trajectory.models))
    ours = logits_of(network, vector, inputs).log_softmax(dim=1)
    told = {
        "synthesis/taught_divergence": (answers * (answers.clamp(min=1e-30).log() - ours)).sum(dim=1).mean().item(),
        "synthesis/taught_agreement": (answers.argmax(dim=1) == ours.argmax(dim=1)).double().mean().item(),
    }
    return replace(trajectory, network=network, models=torch.stack(taught)), told


@torch.no_grad()
def distilled(network: Network, start: Vector, inputs: Inputs, answers: SoftLabels, rate: float, steps: int) -> Vector:
    """Plain descent from ``start`` on the mean of ``KL(answers, softmax of f)``.

    Plain, because the weights must move as training moves them: Adam comes nearer to the answers, but by ways that no
    training on rows can retrace (measured on census models, the matching loss then stays at .99).
    """
    vector = start
    for _ in range(steps):
        # The divergence and the cross-entropy differ by something that f has no part in.
        vector = vector - rate * network.mean_gradient(vector, inputs, answers).detach()
    return vector
