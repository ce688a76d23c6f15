"""The nearest rows of every row: exact, ties by row number, and quick.

Three ideas, each in its own file or class. Rows that are the same have the same neighbours, so only distinct rows are
searched (``Distinct``). Census rows are a few numbers and many codes: rows with the same codes make a *bucket*, and
between two buckets the codes alone keep a distance (``_buckets``). Where that does not help, matrix products tell for
all pairs at once which are worth measuring (``_products``). The reference is to compare all pairs, as scikit-learn's
brute force does.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from equfl.core.arrays import Inputs, Neighbours
from equfl.fairness._best import NOBODY, Best, Floats, Ints
from equfl.fairness._buckets import Buckets
from equfl.fairness._products import search_by_products

AT_A_TIME = 2**22
"""How many numbers are worked on at a time."""
FEW_ROWS = 4096
"""Up to so many rows, all pairs are compared by one or two matrix products, and buckets are not worth their making."""


def nearest(
    inputs: Inputs,
    *,
    k: int = 5,
    include_self: bool = True,
    progress: Callable[[str, int, int], None] = lambda task, done, total: None,
) -> Neighbours:
    """Row numbers of the k nearest rows of each row by Euclidean distance, nearest first, ties by row number.

    A row is its own nearest unless ``include_self`` is false. Among n rows k is capped at n (n - 1 without the row).
    """
    found = min(k, len(inputs) if include_self else len(inputs) - 1)
    if found < 1:
        return torch.empty(len(inputs), 0, dtype=torch.long, device=inputs.device)
    # One more than asked for, because the row itself is among the nearest unless enough others are the same.
    wanted = found if include_self else found + 1
    rows = inputs.detach().flatten(1).cpu()
    # Adding zero turns -0 into 0, so that equal rows have equal bytes.
    distinct = Distinct.of(rows.to(torch.promote_types(rows.dtype, torch.float32)).numpy() + 0.0)
    chosen = distinct.expand(_search(distinct.rows, min(wanted, len(distinct.rows)), progress), wanted)
    if not include_self:
        chosen = _without_self(chosen)
    return torch.from_numpy(chosen).to(inputs.device)


def _search(rows: Floats, k: int, progress: Callable[[str, int, int], None]) -> Best:
    best = Best.none(len(rows), k)
    buckets = Buckets.of(rows) if len(rows) > FEW_ROWS else None
    steps = search_by_products(rows, best) if buckets is None else buckets.search(best)
    done = 0
    for step in steps:
        done += step
        progress("search the nearest rows", done, len(rows))
    return best


@dataclass(frozen=True)
class Distinct:
    """Rows without repetitions, in the order of their first appearance, and where each of them appears."""

    rows: Floats
    number: Ints
    """Of each original row, the number of the distinct row that it equals."""
    order: Ints
    """The original row numbers, distinct row after distinct row, ascending within each."""
    starts: Ints
    """Where each distinct row's appearances begin in ``order``, and where the last one's end."""

    @classmethod
    def of(cls, rows: Floats) -> "Distinct":
        """Rows are compared by their bytes."""
        if rows.shape[1] == 0:
            rows = np.zeros((len(rows), 1))
        keys = np.ascontiguousarray(rows).view(f"V{rows.itemsize * rows.shape[1]}").ravel()
        _, firsts, inverse, sizes = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        by_appearance = np.argsort(firsts)
        number = np.empty_like(by_appearance)
        number[by_appearance] = np.arange(len(firsts))
        number = number[inverse]
        starts = np.concatenate([[0], np.cumsum(sizes[by_appearance])])
        return cls(rows[firsts[by_appearance]], number, np.argsort(number, kind="stable"), starts)

    def expand(self, best: Best, k: int) -> Ints:
        """The k nearest of all rows, out of the nearest distinct ones.

        As each distinct row stands for its first appearance when ties are settled, any of its later appearances that
        belongs to the k nearest has fewer than k distinct rows before it: nothing is missed.
        """
        if len(self.rows) == len(self.number):
            return best.rows
        chosen = np.empty((len(self.rows), k), dtype=np.int64)
        at_a_time = max(1, AT_A_TIME // (k * best.k))
        for start in range(0, len(self.rows), at_a_time):
            span = slice(start, start + at_a_time)
            # Of each near distinct row, its first k appearances: at most so many can be among the nearest.
            places = self.starts[best.rows[span]][:, :, None] + np.arange(k)
            missing = places >= self.starts[best.rows[span] + 1][:, :, None]
            rows = np.where(missing, NOBODY, self.order[np.minimum(places, len(self.order) - 1)])
            distances = np.where(missing, np.inf, best.distances[span][:, :, None])
            rows, distances = rows.reshape(len(rows), -1), distances.reshape(len(rows), -1)
            chosen[span] = np.take_along_axis(rows, np.lexsort((rows, distances), axis=1)[:, :k], axis=1)
        return chosen[self.number]


def _without_self(chosen: Ints) -> Ints:
    """The chosen rows without the row itself, or without the last where enough others equal it."""
    drop = chosen == np.arange(len(chosen))[:, None]
    drop[~drop.any(axis=1), -1] = True
    return chosen[~drop].reshape(len(chosen), -1)
