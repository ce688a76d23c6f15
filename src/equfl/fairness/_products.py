"""Nearest rows by matrix products: for rows with many columns."""

from collections.abc import Iterator

import numpy as np

from equfl.fairness._best import Best, Floats, Ints, kth_smallest_at_most

QUERIES, CANDIDATES = 1024, 4096
"""How many rows are compared with how many at a time."""


def search_by_products(rows: Floats, best: Best) -> Iterator[int]:
    """Compare all pairs; yields how many rows are done, again and again.

    ``|x|^2 + |y|^2 - 2 x.y`` is rounded by at most ``loss (|x|^2 + |y|^2)``. Taken off in advance, the product is never
    above the true distance, so a pair whose product is out of reach need not be measured. The few others are measured
    by their differences: equal rows are exactly 0 apart, and what is found does not depend on how products round.
    """
    squares = np.einsum("nd,nd->n", rows, rows, dtype=np.float64)
    # Single precision, unless so many columns or so large numbers are lost in it.
    kind: type[np.floating] = np.float32 if rows.shape[1] < 2**14 and squares.max() < 2**100 else np.float64
    loss = 2 * (rows.shape[1] + 5) * float(np.finfo(kind).eps)
    lowered, one = (squares * (1 - loss))[:, None], np.ones((len(rows), 1))
    left: Floats = np.concatenate([rows, lowered, one], axis=1, dtype=kind)
    right: Floats = np.concatenate([-2 * rows, one, lowered], axis=1, dtype=kind)
    everybody = np.arange(len(rows))
    for start in range(0, len(rows), QUERIES):
        members = everybody[start : start + QUERIES]
        for first in range(0, len(rows), CANDIDATES):
            products = left[members] @ right[first : first + CANDIDATES].T
            limit = best.reach(members)
            if products.shape[1] >= best.k:
                # If D is a distance and p its product, D <= p + 2 loss (|x|^2 + |y|^2) and |y|^2 <= 2 |x|^2 + 2 D.
                highest = kth_smallest_at_most(products, best.k) + 6 * loss * squares[members]
                limit = np.minimum(limit, highest / (1 - 4 * loss))
            limit = np.nextafter(limit.astype(kind), kind(np.inf))
            at, near = np.divmod(np.flatnonzero(products <= limit[:, None]), products.shape[1])
            best.improve(members, at, _measure(rows, members[at], first + near), first + near)
        yield len(members)


def _measure(rows: Floats, left: Ints, right: Ints) -> Floats:
    distances = np.empty(len(left))
    at_a_time = max(1, 2**22 // rows.shape[1])
    for start in range(0, len(left), at_a_time):
        span = slice(start, start + at_a_time)
        distances[span] = np.square(rows[left[span]] - rows[right[span]].astype(np.float64)).sum(axis=1)
    return distances
