"""The sample of files to open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def sampled(items: Sequence[T], most: int | None) -> list[T]:
    """At most ``most`` items, spread evenly from the first to the last; all items for None."""
    if most is None or len(items) <= most:
        return list(items)
    places = np.unique(np.linspace(0, len(items) - 1, num=max(most, 0)).round().astype(np.int64))
    return [items[place] for place in places.tolist()]
