"""Decoding groups of blocks: in lock-step where its proof holds, value by value where it does not."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from icefield_avro.scalar import ScalarDecoder
from icefield_avro.selection import Selection


class Decoder:
    """Decodes blocks of one writer's schema into arrays of structs."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self.failed_block = 0
        self._scalar = ScalarDecoder(selection)

    def decode(self, payloads: list[bytes], counts: list[int]) -> Iterator[pa.Array]:
        """Yield the records of the blocks in order.

        Raises ``Malformed``; ``failed_block`` then tells which block is damaged.
        """
        for index, (payload, count) in enumerate(zip(payloads, counts, strict=True)):
            self.failed_block = index
            yield self._scalar.decode(payload, count)
