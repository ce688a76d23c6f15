"""Density clusters (HDBSCAN; Campello, Moulavi and Sander, 2013), as DeepSight asks for them."""

import torch
from torch import Tensor

FEWEST = 4
"""With fewer points than this there is nothing to tell apart: all are one cluster."""
NOISE = -1


def clusters(points: Tensor, *, neighbours: int, precomputed: bool = False, one_is_possible: bool = False) -> Tensor:
    """Per row, the number of its cluster; ``NOISE`` for those in none. The rows are points, or all pairs' distances.

    ``neighbours`` is ``min_samples`` as HDBSCAN's own library counts, without the point itself. A cluster has at least
    two members, three where there are twenty points or more.
    """
    # Only for whoever uses it: it takes a second to load.
    from sklearn.cluster import HDBSCAN

    count = len(points)
    if count < FEWEST:
        return torch.zeros(count, dtype=torch.int64)
    if not (points != points[0]).any():
        return torch.zeros(count, dtype=torch.int64)  # all in one place; densities would be infinite
    found = HDBSCAN(
        min_cluster_size=2 if count < 20 else 3,
        min_samples=min(neighbours + 1, count),
        metric="precomputed" if precomputed else "euclidean",
        allow_single_cluster=one_is_possible,
        copy=True,
    ).fit(points.double().cpu().numpy())
    return torch.from_numpy(found.labels_.astype("int64"))


def apart(labels: Tensor) -> Tensor:
    """For every two rows, 1 if they are in different clusters; one in no cluster is apart from all others."""
    different = (labels[:, None] != labels[None, :]) | (labels == NOISE)[:, None]
    return different.double().fill_diagonal_(0)
