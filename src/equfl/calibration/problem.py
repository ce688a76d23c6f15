"""The paper's calibration problem (Eq. CUG) with signed rate gaps: least bias for least harm, inside a scope."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from equfl.calibration.base import Coordinates, Directions, Place
from equfl.calibration.solve import solve
from equfl.core.arrays import Counts, Vector
from equfl.core.samples import Samples
from equfl.core.vector import Buffers, Network
from equfl.fairness.base import GroupNotion
from equfl.fairness.gaps import Gaps
from equfl.fairness.rates import margins, soft_tables

Margins = Float[Tensor, "rows margins"]
Rates = Float[Tensor, "margins labels groups"]
"""Of each (label, group) cell, the share that is predicted positive; one layer per margin."""

HALVINGS = 8
"""How often the bias is halved in search of the least that the accuracy permits."""


def synthetic_margins(network: Network, vector: Vector, buffers: Buffers, samples: Samples) -> Margins:
    """The margins of the server's rows."""
    return margins(network.forward(vector, buffers, samples.inputs))


def synthetic_rates(margins: Margins, samples: Samples, sharpness: float) -> Rates:
    """The rates among the server's rows, predictions counted as ``sigmoid(sharpness * margin)``."""
    tables = soft_tables(margins, samples, sharpness=sharpness)
    rows = tables.sum(dim=1)
    return tables[:, 1] / rows.where(rows > 0, 1.0)


def tables_of(rates: Rates, rows: Rates) -> Counts:
    """Count tables with those rates among so many rows."""
    return torch.stack([(1 - rates) * rows, rates * rows], dim=1)


def accuracy_of(tables: Counts) -> Tensor:
    """The accuracy that the tables say; with more than one margin each table is one class against the rest."""
    hits = tables[:, 1, 1].sum()
    return (hits + tables[0, 0, 0].sum() if len(tables) == 1 else hits) / tables[0].sum()


def caution_of(gaps: Gaps, caution: float) -> Float[Tensor, " gaps"]:
    """How much of each gap is left alone because chance alone could have made it.

    The largest of m gaps that are nothing but chance is about ``sqrt(2 log m)`` standard errors; this is a share of it.
    A single gap is taken as it is.
    """
    several = sqrt(2 * log(max(1, int(gaps.known.sum()))))
    return caution * several * gaps.errors


@dataclass(frozen=True)
class Answer:
    """A model that solves the problem, and what is expected of it."""

    vector: Vector
    margins: Margins
    expected: Counts
    steps: int
    loosened: float
    """How much more bias than wanted was allowed, to be acceptable."""


@dataclass(frozen=True)
class Problem:
    """Minimise, over the scope's coordinates c with ``w = v + change(c)``,

        ``sum_i max(0, |gap_i(w)| - allowed_i)² + harm * sum_z a_z h_z (m_z(w) - m_z(reference))²``

    on the synthetic rows z: the first term is the bias beyond what is allowed, the second what the training loss would
    rise by, to second order, against the last model that was not calibrated (h = p(1 - p)). It also settles which of
    many fair models is taken: the one that changes predictions least.
    """

    place: Place
    """``place.vector`` is v, what the aggregation rule returned."""
    directions: Directions
    notions: Sequence[GroupNotion]
    sharpness: float
    expect: Callable[[Rates], Counts]
    """Rates among synthetic rows -> the count tables that are expected of the federation."""
    reference: Margins
    importance: Float[Tensor, " rows"]
    """The paper's rows are balanced over groups; this weighs each row as its group weighs in the federation."""
    harm: float
    steps: int
    longest: float
    """The mean change of the margins that one answer may make at most."""

    def answer(
        self, allowed: Float[Tensor, " gaps"], *, acceptable: Callable[[Counts], bool] = lambda expected: True
    ) -> Answer:
        """The solution; if what is expected of it is not acceptable, the one with the least bias that is.

        Where even the bias of today may not be kept, it is taken as the best that can be had.
        """
        answer = self._solved(allowed, 0.0)
        if acceptable(answer.expected):
            return answer
        low, high = 0.0, self.gaps(self.expect(self._rates(self._margins(self._nowhere)))).values.abs().max().item()
        answer = self._solved(allowed, high)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            tried = self._solved(allowed, middle)
            if acceptable(tried.expected):
                high, answer = middle, tried
            else:
                low = middle
        return answer

    def gaps(self, tables: Counts) -> Gaps:
        """The gaps of all notions, one after another."""
        each = [notion.gaps(tables) for notion in self.notions]
        return Gaps(*(torch.cat([getattr(one, name) for one in each]) for name in ("values", "errors", "known")))

    def _solved(self, allowed: Tensor, loosened: float) -> Answer:
        before = self._margins(self._nowhere).detach()
        weights = (self.importance.unsqueeze(1) * torch.sigmoid(before) * torch.sigmoid(-before)).detach()

        def objective(coordinates: Coordinates) -> Tensor:
            margins = self._margins(coordinates)
            gaps = self.gaps(self.expect(self._rates(margins))).values
            excess = (gaps.abs() - allowed - loosened).clamp(min=0).square().sum()
            return excess + self.harm * (weights * (margins - self.reference).square()).sum()

        found = solve(objective, self._nowhere, steps=self.steps)
        coordinates = found.coordinates
        with torch.no_grad():
            moved = (self._margins(coordinates) - before).abs().mean(dim=0).max().item()
            coordinates = coordinates * min(1.0, self.longest / max(moved, 1e-12))
            margins = self._margins(coordinates)
            vector = self.place.vector + self.directions.change(coordinates)
            return Answer(vector, margins, self.expect(self._rates(margins)), found.steps, loosened)

    @cached_property
    def _nowhere(self) -> Coordinates:
        return self.place.vector.new_zeros(self.directions.size)

    def _margins(self, coordinates: Coordinates) -> Margins:
        vector = self.place.vector + self.directions.change(coordinates)
        return synthetic_margins(self.place.network, vector, self.place.buffers, self.place.synthetic)

    def _rates(self, margins: Margins) -> Rates:
        return synthetic_rates(margins, self.place.synthetic, self.sharpness)
