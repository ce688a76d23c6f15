"""The nearest rows found so far, while more are being looked at."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]

NOBODY = np.iinfo(np.int64).max
"""The row number of a place that is not taken yet."""


@dataclass(frozen=True)
class Best:
    """Squared distances and row numbers of each row's nearest, nearest first, ties by row number; improved in place."""

    distances: Floats
    rows: Ints

    @classmethod
    def none(cls, members: int, k: int) -> "Best":
        """Nothing found yet."""
        return cls(np.full((members, k), np.inf), np.full((members, k), NOBODY))

    @property
    def k(self) -> int:
        """How many are kept."""
        return self.rows.shape[1]

    def reach(self, members: Ints) -> Floats:
        """Beyond this distance nothing can be among a row's nearest any more."""
        return self.distances[members, -1]

    def improve(self, members: Ints, at: Ints, distances: Floats, rows: Ints) -> None:
        """Take finds into account: ``at`` says for which of the members each one is, in ascending order."""
        if len(at) == 0:
            return
        finds = np.bincount(at, minlength=len(members))
        place = self.k + np.arange(len(at)) - np.repeat(np.cumsum(finds) - finds, finds)
        merged = Best.none(len(members), self.k + int(finds.max()))
        merged.distances[:, : self.k], merged.rows[:, : self.k] = self.distances[members], self.rows[members]
        merged.distances[at, place], merged.rows[at, place] = distances, rows
        order = np.lexsort((merged.rows, merged.distances), axis=1)[:, : self.k]
        self.distances[members] = np.take_along_axis(merged.distances, order, axis=1)
        self.rows[members] = np.take_along_axis(merged.rows, order, axis=1)

    def improve_from_all(self, members: Ints, distances: Floats, rows: Ints) -> None:
        """Take the same candidates into account for all members, given all distances."""
        limit = self.reach(members)
        close = np.flatnonzero(distances <= limit[:, None])
        if len(close) > 4 * self.k * len(members) and len(rows) > self.k:
            limit = np.minimum(limit, kth_smallest_at_most(distances, self.k))
            close = np.flatnonzero(distances <= limit[:, None])
        at, found = np.divmod(close, len(rows))
        self.improve(members, at, distances.ravel()[close], rows[found])


def kth_smallest_at_most(values: Floats, k: int) -> Floats:
    """Of each row, a value that at least k others do not exceed: the k-th smallest, or seldom a little more.

    The smallest of each of many blocks is quick to find, and any k blocks hold k values.
    """
    blocks = 16 * k
    width = values.shape[1] // blocks
    if width > 1:
        values = values[:, : width * blocks].reshape(len(values), width, blocks).min(axis=1)
    return np.partition(values, k - 1, axis=1)[:, k - 1]
