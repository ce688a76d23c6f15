"""Flower's Arrays, read and written without numpy's file reader, which takes longer than a small model's training.

An Array holds a whole ``.npy`` file: a header that type and shape determine, and the numbers. The readable reference is
Flower's own ``Array(values)`` and ``array.numpy()``, which also does what is out of the ordinary.
"""

from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np
from flwr.app import Array
from numpy.lib.format import dtype_to_descr, write_array_header_1_0
from numpy.typing import NDArray

STYPE = "numpy.ndarray"


class LocalArray(Array):
    """An Array that is written as a file only if somebody asks for it; for replies that stay in this process."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.dtype, self.shape, self.stype = _name(values.dtype), values.shape, STYPE
        self._values = values

    @property
    def data(self) -> bytes:  # type: ignore[override]
        """The values as a file."""
        return array_of(self._values).data

    def numpy(self) -> NDArray[Any]:
        """The values, as a copy that may be changed."""
        return self._values.copy()


def array_of(values: NDArray[Any]) -> Array:
    """The values as an Array."""
    shape, name = values.shape, _name(values.dtype)
    return Array(dtype=name, shape=shape, stype=STYPE, data=_header(name, shape) + values.tobytes())


def values_of(array: Array) -> NDArray[Any]:
    """The values of an Array, as a copy that may be changed; ``ValueError`` or ``TypeError`` if they cannot be read."""
    if isinstance(array, LocalArray):
        return array.numpy()
    header, shape = _header(array.dtype, tuple(array.shape)), tuple(array.shape)
    if array.stype != STYPE or not array.data.startswith(header):
        values = Array.numpy(array)
        if values.shape != shape:
            raise ValueError(f"shape {values.shape} where {shape} was declared")
        return values
    return np.frombuffer(array.data, dtype=array.dtype, offset=len(header)).reshape(shape).copy()


@lru_cache
def _name(dtype: np.dtype[Any]) -> str:
    return str(dtype)


@lru_cache(maxsize=4096)
def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    buffer = BytesIO()
    told = {"descr": dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    write_array_header_1_0(buffer, told)
    return buffer.getvalue()
