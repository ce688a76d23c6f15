"""The middle of each column: what the median and the trimmed mean have in common."""

import numpy as np
import torch

from equfl.core.arrays import Updates, Vector

BLOCK = 64
"""Columns at a time: with thousands of clients, so many fit into the processor's cache."""


def trimmed(updates: Updates, drop: int) -> Vector:
    """Per coordinate, the mean without the ``drop`` smallest and the ``drop`` largest values.

    Only which values lie in the middle is asked for, not their order, so nothing is sorted. The reference is
    ``trimmed_by_sorting``.
    """
    if drop == 0 or updates.device.type != "cpu":
        return trimmed_by_sorting(updates, drop)
    stop = len(updates) - drop
    out = torch.empty_like(updates[0])
    for first in range(0, updates.shape[1], BLOCK):
        columns = updates[:, first : first + BLOCK].T.clone(memory_format=torch.contiguous_format).numpy()
        columns.partition(sorted({drop, stop - 1}), axis=1)
        out[first : first + BLOCK] = torch.from_numpy(columns[:, drop:stop].mean(axis=1, dtype=np.float64))
    return out


def trimmed_by_sorting(updates: Updates, drop: int) -> Vector:
    """The same in one line; also what a graphics card does best."""
    middle = updates.sort(dim=0).values[drop : len(updates) - drop]
    return middle.mean(dim=0, dtype=torch.float64).to(updates.dtype)
