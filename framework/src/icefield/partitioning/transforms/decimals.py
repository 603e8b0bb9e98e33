"""Columns of decimals as two 64-bit halves of their unscaled integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def halves_of(array: pa.Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The low and the high 64 bits of each unscaled value, as views; anything in null slots."""
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(len(array), np.uint64), np.zeros(len(array), np.int64)
    pairs = np.frombuffer(data, np.uint64, count=2 * len(array), offset=16 * array.offset).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1].view(np.int64)


def interleave(low: npt.NDArray[Any], high: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """The opposite of ``halves_of``: the buffer of a decimal128 array."""
    pairs = np.empty((len(low), 2), np.uint64)
    pairs[:, 0] = low.view(np.uint64)
    pairs[:, 1] = high.view(np.uint64)
    return pairs
