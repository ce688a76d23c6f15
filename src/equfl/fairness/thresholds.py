"""The most accurate thresholds per group under a bound on the gaps (Hardt, Price & Srebro, 2016), out of histograms.

Symbols: ``h[y, a, b]`` rows with label y, of group a, whose score lies in bin b; ``w[a, t]`` the probability that group
a is judged by threshold t, at which the rows of bin t and above are positive. Rates and accuracy are linear in w, so
the best w solves a linear program; at most a few thresholds per group are mixed.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import linprog
from torch import Tensor

from equfl.core.errors import DataError
from equfl.fairness.base import Notion
from equfl.fairness.counts import rate
from equfl.fairness.demographic_parity import DemographicParity
from equfl.fairness.equalized_odds import EqualizedOdds

Histograms = Float[Tensor, "labels groups bins"]
Chances = Float[Tensor, "groups bins"]
"""How likely a row of that group, with a score in that bin, is predicted positive; never falls with the score."""

BOUNDED = (DemographicParity, EqualizedOdds)
"""The notions whose gaps are linear in the thresholds' probabilities."""


def best_thresholds(histograms: Histograms, notions: Sequence[Notion], *, allowed: float) -> Chances:
    """The chances with the highest accuracy among those whose gaps are at most ``allowed``.

    A cell without rows bounds nothing; a group without any row is judged like all rows together without a bound.
    """
    tables = histograms.double().cpu()
    above = torch.nn.functional.pad(tables.flip(-1).cumsum(-1).flip(-1), (0, 1))
    _, groups, thresholds = above.shape
    there = tables.sum(dim=(0, 2)) > 0
    if not there.any():
        raise DataError("histograms without rows", wanted="scores of some rows", remedy="Look at the clients' reports")

    # One more positive among label 1 is one more hit; among label 0 it is one more error.
    gain = (above[1] - above[0]) / tables.sum()
    bounds, number = _bounds(above, notions)
    free = groups * thresholds
    upper, limits = [], []
    for group, level, rates in bounds:
        row = np.zeros(free + number)
        row[group * thresholds : (group + 1) * thresholds] = rates.numpy()
        row[free + level] = -1
        # level <= rate <= level + allowed
        upper += [row, -row]
        limits += [allowed, 0.0]
    ones = np.zeros((groups, free + number))
    for group in range(groups):
        ones[group, group * thresholds : (group + 1) * thresholds] = 1
    cost = np.concatenate([-gain.flatten().numpy(), np.zeros(number)])
    solution = linprog(
        cost,
        A_ub=np.array(upper) if upper else None,
        b_ub=np.array(limits) if upper else None,
        A_eq=ones,
        b_eq=np.ones(groups),
        bounds=(0, 1),
    )
    # Each group could be judged by 'all positive' or 'nobody', so there always is a solution.
    assert solution.success, solution.message
    mixture = torch.from_numpy(solution.x[:free]).clamp(min=0).view(groups, thresholds)
    chances = (mixture / mixture.sum(dim=1, keepdim=True)).cumsum(dim=1)[:, :-1].clamp(max=1)
    alike = torch.zeros(thresholds, dtype=torch.float64)
    alike[int(gain.sum(dim=0).argmax())] = 1
    return chances.where(there.unsqueeze(1), alike.cumsum(dim=0)[:-1])


def _bounds(above: Tensor, notions: Sequence[Notion]) -> tuple[list[tuple[int, int, Tensor]], int]:
    """Group, number of the level that its rate keeps to, and the rate at each threshold; and the number of levels."""
    found, levels = [], 0
    for notion in notions:
        sides = above if isinstance(notion, EqualizedOdds) else above.sum(dim=0, keepdim=True)
        for side in sides:
            rows = side[:, :1]
            rates = rate(side, rows.expand_as(side))
            found += [(group, levels, rates[group]) for group in range(len(side)) if rows[group] > 0]
            levels += 1
    return found, levels
