"""Decoding groups of blocks: in lock-step where its proof holds, value by value where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from icefield_avro.lockstep import Doubt, LockStepDecoder, Unfit
from icefield_avro.nodes import Record
from icefield_avro.scalar import ScalarDecoder
from icefield_avro.selection import Selection

_FEW_ROWS: Final = 16
_FEW_BYTES: Final = 16 * 1024


class Decoder:
    """Decodes blocks of one writer's schema into arrays of structs."""

    def __init__(self, record: Record, selection: Selection) -> None:
        self.failed_block = 0
        self._scalar = ScalarDecoder(selection)
        self._lock_step: LockStepDecoder | None = None
        self._record = record
        self._selection = selection
        self._fit = True

    def decode(self, payloads: list[bytes], counts: list[int]) -> Iterator[pa.Array]:
        """Yield the records of the blocks in order.

        Raises ``Malformed``; ``failed_block`` then tells which block is damaged.
        """
        done = 0
        if self._fit and (sum(counts) > _FEW_ROWS or sum(map(len, payloads)) > _FEW_BYTES):
            try:
                for rows in self._in_lock_step().decode(payloads, counts):
                    yield rows
                    done += len(rows)
                return
            except Unfit:
                self._fit = False
            except Doubt:
                pass
        yield from self._by_value(payloads, counts, done)

    def _in_lock_step(self) -> LockStepDecoder:
        if self._lock_step is None:
            self._lock_step = LockStepDecoder(self._record, self._selection)
        return self._lock_step

    def _by_value(self, payloads: list[bytes], counts: list[int], done: int) -> Iterator[pa.Array]:
        """Decode value by value, without the first ``done`` records."""
        for index, (payload, count) in enumerate(zip(payloads, counts, strict=True)):
            self.failed_block = index
            if done >= count:
                done -= count
                continue
            yield self._scalar.decode(payload, count)[done:]
            done = 0
