"""Arrays are read and written as Flower does it, only faster."""

import numpy as np
import pytest
from flwr.app import Array

from equfl.flower.arrays import LocalArray, array_of, values_of

VALUES = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
    np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2],
    np.asarray(7),
    np.zeros((0, 4), np.float16),
    np.ones((1, 2, 3, 4), bool),
]


@pytest.mark.parametrize("values", VALUES, ids=lambda values: f"{values.dtype}{values.shape}")
@pytest.mark.parametrize("make", [array_of, LocalArray])
def test_what_is_written_is_what_flower_would_read_and_the_other_way_round(values, make):
    ours, theirs = make(values), Array(values)
    assert (ours.dtype, ours.shape, ours.stype) == (theirs.dtype, theirs.shape, theirs.stype)
    for read in (Array.numpy(ours), values_of(ours), values_of(theirs), ours.numpy()):
        assert read.dtype == values.dtype
        assert read.flags.writeable
        np.testing.assert_array_equal(read, values)
    if values.flags.c_contiguous:
        assert ours.data == theirs.data
