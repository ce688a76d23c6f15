"""How far the updates lie from each other."""

import torch
from torch import Tensor

from equfl.core.arrays import Updates

BLOCK = 512
"""Rows at a time: each pair of blocks is multiplied once, which leaves out nearly half of the work."""


def squared_distances(updates: Updates) -> Tensor:
    """``||g_i - g_j||^2`` for every two rows, in units of their own; infinite where a row is too far off to say.

    By ``|a|^2 + |b|^2 - 2 ab``, so by matrix products, after two precautions. The mean of the shorter half of the rows
    (no far row is among these) is taken from all of them, so that what they have in common does not swallow their
    differences in single precision. And lengths are in units of the typical one, so that their squares stay in range.
    The reference is ``squared_distances_one_by_one``.
    """
    centred = updates - _middle(updates)
    scale = row_norms(centred).quantile(0.5)
    centred /= (scale if scale > 0 else torch.ones_like(scale)).to(updates.dtype)
    squares = centred.square().sum(dim=1)
    far = not squares.isfinite().all()
    out = updates.new_empty(len(updates), len(updates))
    for first in range(0, len(updates), BLOCK):
        rows, rest = slice(first, first + BLOCK), slice(first, None)
        sums = squares[rows, None] + squares[None, rest]
        block = torch.addmm(sums, centred[rows], centred[rest].T, alpha=-2).clamp_(min=0)
        if far:  # infinity less infinity is not a number, but far all the same
            block.nan_to_num_(nan=torch.inf, posinf=torch.inf)
        out[rows, rest] = block
        out[rest, rows] = block.T
    return out.fill_diagonal_(0)


def squared_distances_one_by_one(updates: Updates) -> Tensor:
    """The definition, in double precision, in the updates' own unit."""
    rows = updates.double()
    return torch.stack([(rows - row).square().sum(dim=1) for row in rows])


def row_norms(updates: Updates) -> Tensor:
    """Length of each row, in double precision: the square of a large single number is infinite."""
    return torch.linalg.vector_norm(updates, dim=1, dtype=torch.float64)


def _middle(updates: Updates) -> Tensor:
    norms = row_norms(updates)
    near = (norms <= norms.quantile(0.5, interpolation="lower")).to(updates.dtype)
    # Zero times a far row is zero, as all rows are finite.
    return (near / near.sum()) @ updates
