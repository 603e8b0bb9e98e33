"""Numbers, each once and in order."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.integer)


def distinct(*parts: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The whole numbers that occur in some arrays, ascending."""
    together = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if np.all(together[1:] > together[:-1]):
        return together
    # Not np.unique, which puts integers into a hash table first and takes twenty times as long.
    together = np.sort(together)
    found: npt.NDArray[Number] = together[np.concatenate(([True], together[1:] > together[:-1]))]
    return found
