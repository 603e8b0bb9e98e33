"""Files with one record in each block, like PyIceberg's manifests: as little work for each block as possible."""

from __future__ import annotations

from typing import Final

import numpy as np

from icefield_avro.container import SYNC_SIZE, Container
from icefield_avro.varints import encode_long

_SMALL: Final = 4096  # packed bytes of the first block, beyond which time goes by inflating all the same
_ONE: Final = encode_long(1)


def single_records(container: Container) -> tuple[list[bytes], list[int]] | None:
    """The packed bytes of every block and where each starts, if all of them are sound and hold one record.

    None otherwise, and if a sync marker is inside a block by chance: then the blocks are read one after another.
    """
    start = container.header.size
    data = container.whole()
    first = next(container.blocks(), None) if data is not None else None
    if data is None or first is None or first.records != 1 or len(first.payload) > _SMALL:
        return None
    parts = data[start:].split(container.header.sync)
    if parts.pop():
        return None
    heads: dict[int, bytes | None] = {}
    packed = []
    for part in parts:
        size = len(part)
        if size not in heads:
            heads[size] = _head(size)
        head = heads[size]
        if head is None or not part.startswith(head):
            return None
        packed.append(part[len(head) :])
    ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)) + SYNC_SIZE) + start
    return packed, [start, *ends[:-1].tolist()]


def _head(size: int) -> bytes | None:
    """Return the first bytes of a block with one record and ``size`` bytes without marker; None if there is none."""
    for width in range(1, 10):
        length = encode_long(max(0, size - len(_ONE) - width))
        if len(length) == width:
            return _ONE + length if size > width else None
    return None
