"""The nearest rows of every row: exact, and quick where most columns are codes.

Census rows are a few numbers and many codes. Rows with the same codes make a *bucket*; between two buckets the codes
alone already keep a distance. So every row is first compared with its own bucket, and after that only with buckets that
its codes do not already put out of reach. The reference is scikit-learn's brute force, which takes a hundred times as
long on census rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.neighbors import KDTree

from equfl.core.arrays import Inputs, Neighbours

LARGE = 4096
"""Rows above which a bucket is searched by a tree, and numbers of rows that are compared at a time."""
FEW = 12
"""Columns up to which all rows of a bucket are compared one by one; with more, matrix products find the likely ones."""
SPARE = 8
"""Rows that are found beyond the nearest, so that ties at the last place are seen and settled."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
    rows = inputs.detach().flatten(1).cpu().double().numpy()
    found = min(k, len(rows) if include_self else len(rows) - 1)
    if found < 1:
        return torch.empty(len(rows), 0, dtype=torch.long, device=inputs.device)
    buckets = Buckets.of(rows)
    # One more than asked for, because the row itself is among the nearest unless enough others are the same.
    wanted = found if include_self else found + 1
    result = np.empty((len(rows), found), dtype=np.int64)
    done = 0
    for bucket in range(len(buckets)):
        members, chosen = buckets.nearest(bucket, wanted)
        result[members] = chosen if include_self else _without(members, chosen)
        done += len(members)
        progress("search the nearest rows", done, len(rows))
    return torch.from_numpy(result).to(inputs.device)


@dataclass(frozen=True)
class Buckets:
    """Rows sorted by their codes."""

    numbers: Floats
    """The columns that take more than two values, in the order of ``order``."""
    codes: Floats
    """The other columns, one row per bucket."""
    order: Ints
    """Row numbers, bucket after bucket, ascending within each."""
    starts: Ints
    """Where each bucket begins in ``order``, and where the last one ends."""

    @classmethod
    def of(cls, rows: Floats) -> "Buckets":
        """Columns with at most two values are codes; if they tell most rows apart, nothing is gained by buckets."""
        lowest, highest = rows.min(axis=0), rows.max(axis=0)
        coded = ((rows == lowest) | (rows == highest)).all(axis=0)
        bits = np.packbits(rows[:, coded] == highest[coded], axis=1)
        if bits.shape[1] == 0:
            bits = np.zeros((len(rows), 1), dtype=np.uint8)
        keys = np.ascontiguousarray(bits).view(f"V{bits.shape[1]}").ravel()
        _, firsts, bucket, sizes = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        if len(sizes) > max(1, len(rows) // 8):
            everything = np.arange(len(rows))
            return cls(rows, np.zeros((1, 0)), everything, np.array([0, len(rows)]))
        order = np.argsort(bucket, kind="stable")
        return cls(
            np.ascontiguousarray(rows[order][:, ~coded]),
            rows[firsts][:, coded],
            order,
            np.concatenate([[0], np.cumsum(sizes)]),
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def sizes(self) -> Ints:
        return np.diff(self.starts)

    def nearest(self, bucket: int, k: int) -> tuple[Ints, Ints]:
        """The bucket's row numbers, and of each the row numbers of its k nearest rows."""
        span = np.arange(self.starts[bucket], self.starts[bucket + 1])
        best = self._within(span, k)
        # Code columns are few and the differences exact, so a row in reach is never left out by rounding.
        gaps = np.square(self.codes - self.codes[bucket]).sum(axis=1)
        others = np.argsort(gaps, kind="stable")
        others = others[others != bucket]
        at = 0
        while at < len(others):
            reach = best.reach()
            active = np.flatnonzero(reach >= gaps[others[at]])
            if len(active) == 0:
                break
            stop = at + max(1, int(np.searchsorted(np.cumsum(self.sizes[others[at:]]), LARGE, side="right")))
            near = others[at:stop]
            near = near[gaps[near] <= reach.max()]
            candidates = np.concatenate([np.arange(self.starts[b], self.starts[b + 1]) for b in near])
            apart = np.repeat(gaps[near], self.sizes[near])
            for part in np.array_split(active, -(-len(active) // LARGE)):
                best.improve(part, self._distances(span[part], candidates) + apart, self.order[candidates])
            at = stop
        return self.order[span], best.rows

    def _within(self, span: Ints, k: int) -> "Best":
        best = Best.none(len(span), k)
        everybody = np.arange(len(span))
        if len(span) <= LARGE and self.numbers.shape[1] <= FEW:
            best.improve(everybody, self._distances(span, span), self.order[span])
            return best
        for part, likely in self._likely(span, min(k + SPARE, len(span))):
            # What was found by other arithmetic is measured again. Where a row that was left out might be as near as
            # the last one found, all rows are compared.
            differences = self.numbers[span[likely]] - self.numbers[span[part]][:, None]
            distances = np.square(differences).sum(axis=2)
            best.improve(part, distances, self.order[span[likely]])
            unsure = part[distances.max(axis=1) <= best.reach()[part] * (1 + 1e-9) + 1e-9]
            for few in np.array_split(unsure, -(-len(unsure) * len(span) // LARGE**2)) if len(unsure) else ():
                best.forget(few)
                best.improve(few, self._distances(span[few], span), self.order[span])
        return best

    def _likely(self, span: Ints, many: int) -> Iterator[tuple[Ints, Ints]]:
        """Some members of the span, and of each the ``many`` members that are nearest but for rounding."""
        numbers = self.numbers[span]
        if len(span) > LARGE:
            tree = KDTree(numbers)
            for part in np.array_split(np.arange(len(span)), -(-len(span) // LARGE)):
                yield part, tree.query(numbers[part], k=many, return_distance=False)
        else:
            # The row's own square is the same for all its candidates, so it is left out.
            products = np.square(numbers).sum(axis=1) - 2 * numbers @ numbers.T
            yield np.arange(len(span)), np.argpartition(products, many - 1, axis=1)[:, :many]

    def _distances(self, left: Ints, right: Ints) -> Floats:
        # Differences are squared and added, not expanded: equal rows are exactly 0 apart, and ties stay ties.
        total = np.zeros((len(left), len(right)))
        for column in range(self.numbers.shape[1]):
            total += np.square(np.subtract.outer(self.numbers[left, column], self.numbers[right, column]))
        return total


@dataclass(frozen=True)
class Best:
    """The nearest rows found so far, nearest first; improved in place."""

    distances: Floats
    rows: Ints

    @classmethod
    def none(cls, members: int, k: int) -> "Best":
        """Nothing found yet."""
        return cls(np.full((members, k), np.inf), np.full((members, k), np.iinfo(np.int64).max))

    def forget(self, members: Ints) -> None:
        """Begin again for some members."""
        self.distances[members], self.rows[members] = np.inf, np.iinfo(np.int64).max

    def reach(self) -> Floats:
        """Of each row, the distance beyond which nothing can be among its nearest any more."""
        return self.distances[:, -1]

    def improve(self, members: Ints, distances: Floats, candidates: Ints) -> None:
        """Take into account candidates (the same for all members, or one row of them for each)."""
        k = self.distances.shape[1]
        candidates = np.broadcast_to(candidates, distances.shape)
        if distances.shape[1] > k:
            last = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
            close = distances <= np.minimum(last, self.distances[members, -1:])
            # Only what is no farther than the k-th counts; ties beyond it are told apart by the sort below.
            width = max(1, int(close.sum(axis=1).max()))
            order = np.argsort(~close, axis=1, kind="stable")[:, :width]
            keep = np.take_along_axis(close, order, axis=1)
            distances = np.where(keep, np.take_along_axis(distances, order, axis=1), np.inf)
            candidates = np.take_along_axis(candidates, order, axis=1)
        merged = np.concatenate([self.distances[members], distances], axis=1)
        rows = np.concatenate([self.rows[members], candidates], axis=1)
        order = np.lexsort((rows, merged), axis=1)[:, :k]
        self.distances[members] = np.take_along_axis(merged, order, axis=1)
        self.rows[members] = np.take_along_axis(rows, order, axis=1)


def _without(members: Ints, chosen: Ints) -> Ints:
    """The chosen rows without the row itself, or without the last where enough others equal it."""
    drop = chosen == members[:, None]
    drop[~drop.any(axis=1), -1] = True
    return chosen[~drop].reshape(len(chosen), -1)
