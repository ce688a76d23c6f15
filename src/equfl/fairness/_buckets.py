"""Nearest rows bucket by bucket: for rows that are a few numbers and many codes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from equfl.fairness._best import Best, Floats, Ints

FEW_NUMBERS = 12
"""With more columns of numbers neither trees nor differences are quick."""
SMALL = 16
"""Buckets with fewer rows are searched together with those next to them, as their own rows tell too little."""
ENOUGH = 512
"""Buckets next to one another are compared together until they hold so many rows."""
LARGE = 1024
"""Buckets with more rows are searched by a tree."""
SPARE = 8
"""Rows that a tree finds beyond the nearest, so that ties at the last place are seen and settled."""
QUERIES, PAIRS = 1024, 2**22
"""How many rows are searched at a time, and how many pairs are measured at a time."""


@dataclass(frozen=True)
class Buckets:
    """Rows sorted by their codes. A *place* is a row's position in that order."""

    numbers: Floats
    """The columns that take more than two values, by place."""
    codes: Floats
    """The other columns, one row per bucket."""
    order: Ints
    """The row number at each place, ascending within each bucket."""
    starts: Ints
    """The first place of each bucket, and the place after the last one."""

    @classmethod
    def of(cls, rows: Floats) -> "Buckets | None":
        """Columns with at most two values are codes. ``None`` if there are too many numbers or too many buckets."""
        lowest, highest = rows.min(axis=0), rows.max(axis=0)
        coded = ((rows == lowest) | (rows == highest)).all(axis=0)
        if len(coded) - coded.sum() > FEW_NUMBERS:
            return None
        bits = np.packbits(rows[:, coded] == highest[coded], axis=1)
        if bits.shape[1] == 0:
            bits = np.zeros((len(rows), 1), dtype=np.uint8)
        keys = np.ascontiguousarray(bits).view(f"V{bits.shape[1]}").ravel()
        _, firsts, bucket, sizes = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        if len(sizes) > max(1, len(rows) // 8):
            return None
        order = np.argsort(bucket, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)])
        numbers, codes = rows[:, ~coded].astype(np.float64), rows[firsts][:, coded].astype(np.float64)
        return cls(numbers[order], codes, order, starts)

    @cached_property
    def sizes(self) -> Ints:
        return np.diff(self.starts)

    def search(self, best: Best) -> Iterator[int]:
        """Fill in the nearest of all rows; yields how many rows are done, again and again."""
        for bucket in range(len(self.sizes)):
            members = np.arange(self.starts[bucket], self.starts[bucket + 1])
            if len(members) >= SMALL:
                self._search_within(best, members)
            self._search_beyond(best, bucket, members)
            yield len(members)

    def _search_within(self, best: Best, members: Ints) -> None:
        if len(members) <= LARGE:
            self._compare(best, members, members)
            return
        numbers = self.numbers[members]
        tree, many = KDTree(numbers), min(best.k + SPARE, len(members))
        for part in np.array_split(np.arange(len(members)), -(-len(members) // QUERIES)):
            likely = tree.query(numbers[part], k=many)[1]
            # What was found by other arithmetic is measured again. Where a row that was left out might be as near as
            # the last one found, all rows are compared.
            distances = np.square(numbers[part][:, None] - numbers[likely]).sum(axis=2)
            last = np.partition(distances, best.k - 1, axis=1)[:, best.k - 1]
            sure = distances.max(axis=1) > last * (1 + 1e-9)
            at = np.repeat(np.arange(sure.sum()), many)
            found = members[likely[sure]].ravel()
            best.improve(self.order[members[part[sure]]], at, distances[sure].ravel(), self.order[found])
            self._compare(best, members[part[~sure]], members)

    def _search_beyond(self, best: Best, bucket: int, members: Ints) -> None:
        reach = best.reach(self.order[members])
        gaps = cdist(self.codes[bucket : bucket + 1], self.codes, "sqeuclidean")[0]
        near = np.flatnonzero(gaps <= reach.max())
        if len(members) >= SMALL:
            near = near[near != bucket]
        near = near[np.argsort(gaps[near], kind="stable")]
        total = np.cumsum(self.sizes[near])
        at = 0
        while at < len(near):
            reach = best.reach(self.order[members])
            members = members[reach >= gaps[near[at]]]
            if len(members) == 0:
                break
            # All buckets that are equally far, and farther ones until there is enough to compare, but none out of
            # reach.
            enough = np.searchsorted(total, (total[at - 1] if at else 0) + ENOUGH)
            level = min(gaps[near[min(enough, len(near) - 1)]], reach.max())
            stop = int(np.searchsorted(gaps[near], level, side="right"))
            candidates = _ranges(self.starts[near[at:stop]], self.sizes[near[at:stop]])
            self._compare(best, members, candidates, np.repeat(gaps[near[at:stop]], self.sizes[near[at:stop]]))
            at = stop

    def _compare(self, best: Best, members: Ints, candidates: Ints, apart: Floats | None = None) -> None:
        """Measure all pairs; ``apart`` is how far the candidates' codes are from the members'."""
        numbers, rows = self.numbers[candidates], self.order[candidates]
        for start in range(0, len(members), QUERIES):
            part = members[start : start + QUERIES]
            at_a_time = PAIRS // len(part)
            for first in range(0, len(candidates), at_a_time):
                span = slice(first, first + at_a_time)
                distances = cdist(self.numbers[part], numbers[span], "sqeuclidean")
                if apart is not None:
                    distances += apart[span]
                best.improve_from_all(self.order[part], distances, rows[span])


def _ranges(starts: Ints, sizes: Ints) -> Ints:
    ends = np.cumsum(sizes)
    return np.arange(ends[-1]) + np.repeat(starts - (ends - sizes), sizes)
