"""How much of a gap that is closed on the server's rows is closed on the clients' too: what a synthesis is worth.

Only a simulation can look, for nobody else has both. So nothing of this is ever seen by a method: it is computed after
the run, from the models and from the rows that the server remembers.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from math import nan

import torch
from torch import Tensor

from equfl.core.arrays import Logits, Vector
from equfl.core.errors import DataError
from equfl.core.protocol import ServerState
from equfl.core.samples import Samples
from equfl.core.schema import Schema
from equfl.core.vector import Network
from equfl.fairness.base import GroupNotion, Notion
from equfl.fairness.neighbours import nearest
from equfl.fairness.rates import margins, soft_tables
from equfl.fairness.score import predict
from equfl.methods._server_data import remembered

LEAST = 1e-3
"""A synthetic gap that was closed by less says nothing about transfer."""

NEAR = 4000
"""Clients' rows among which nearest ones are searched, where a notion compares near rows: all would take long."""


@dataclass(frozen=True)
class Transfer:
    """One notion's bias on either side of a calibration, and whether the two kinds of rows pull the same way.

    ``before`` is FedAvg's model, ``after`` the calibrated one, at the end of the same rounds. NaN where nothing can be
    said: a bias that the rows do not show, a ratio to nothing.
    """

    synthetic_before: float
    synthetic_after: float
    real_before: float
    """On the clients' training rows."""
    real_after: float
    cosine_of_losses: float
    """Between the gradients of the notion's loss on synthetic and on real rows, at FedAvg's model."""
    cosine_of_rates: float
    """The same for the sum of the squared rate gaps; NaN for a notion that does not compare groups."""

    @property
    def ratio(self) -> float:
        """``(real_before - real_after) / (synthetic_before - synthetic_after)``; 1 if all is transferred."""
        closed = self.synthetic_before - self.synthetic_after
        return (self.real_before - self.real_after) / closed if abs(closed) >= LEAST else nan

    def plain(self) -> Mapping[str, float]:
        """All numbers by name."""
        return {**asdict(self), "ratio": self.ratio}


def transfer(
    network: Network,
    before: ServerState,
    after: ServerState,
    real: Samples,
    target: Notion,
    schema: Schema,
    generator: torch.Generator,
) -> dict[str, Transfer]:
    """The transfer of each part of the target; nothing where the server has no rows of its own."""
    synthetic = remembered(after, schema)
    if synthetic is None:
        return {}
    return {
        part.name: _of_part(
            part, network, before, after, _with_neighbours(synthetic, part), _with_neighbours(real, part, generator)
        )
        for part in target.parts()
    }


def _of_part(
    notion: Notion, network: Network, before: ServerState, after: ServerState, synthetic: Samples, real: Samples
) -> Transfer:
    def bias(state: ServerState, rows: Samples) -> float:
        predictions = predict(network, state.vector, state.buffers, rows.inputs)
        return _or_nan(lambda: notion.metric(predictions, rows))

    def squared_gaps(logits: Logits, rows: Samples) -> Tensor:
        assert isinstance(notion, GroupNotion)
        return notion.gaps(soft_tables(margins(logits), rows, sharpness=1.0)).values.square().sum()

    def cosine(value: Callable[[Logits, Samples], Tensor]) -> float:
        def between() -> float:
            ours, theirs = (_gradient(value, network, before, rows) for rows in (synthetic, real))
            return (ours @ theirs / (ours.norm() * theirs.norm())).item()

        return _or_nan(between)

    return Transfer(
        synthetic_before=bias(before, synthetic),
        synthetic_after=bias(after, synthetic),
        real_before=bias(before, real),
        real_after=bias(after, real),
        cosine_of_losses=cosine(notion.loss),
        cosine_of_rates=cosine(squared_gaps) if isinstance(notion, GroupNotion) else nan,
    )


def _gradient(
    value: Callable[[Logits, Samples], Tensor], network: Network, state: ServerState, rows: Samples
) -> Vector:
    point = state.vector.detach().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(value(network.forward(point, state.buffers, rows.inputs), rows), point)
    return gradient


def _with_neighbours(rows: Samples, notion: Notion, generator: torch.Generator | None = None) -> Samples:
    """The rows as the notion wants them: with neighbours, or some of them with theirs."""
    if isinstance(notion, GroupNotion) or rows.neighbours is not None:
        return rows
    if generator is not None and len(rows) > NEAR:
        rows = rows.rows(torch.randperm(len(rows), generator=generator)[:NEAR].to(rows.inputs.device))
    return replace(rows, neighbours=nearest(rows.inputs))


def _or_nan(value: Callable[[], float]) -> float:
    try:
        return value()
    except DataError:  # more labels than the notion knows, say
        return nan
