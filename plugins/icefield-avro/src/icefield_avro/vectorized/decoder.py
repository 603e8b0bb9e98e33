"""Decodes groups of blocks, all records at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from icefield_avro.arrays import Vector
from icefield_avro.nodes import Record, reach
from icefield_avro.selection import Selection
from icefield_avro.skipping import Budget, skipper
from icefield_avro.varints import Data
from icefield_avro.vectorized.building import build
from icefield_avro.vectorized.byte_buffer import ByteBuffer, Memory, Unproven
from icefield_avro.vectorized.nested import RecordStep
from icefield_avro.vectorized.rows import Rows
from icefield_avro.vectorized.starts import find_starts, marks_of, one_for_each_record

CHUNK_ROWS: Final = 16_384
"""Rows that are read together once their positions are known: vectors of this size stay in the processor's cache."""


class VectorizedDecoder:
    """Decodes blocks of one writer's schema. Raises ``Unfit`` for an unsupported schema."""

    def __init__(self, record: Record, selection: Selection) -> None:
        self._steps: RecordStep = build(record, selection)
        self._padding = 2 * reach(record) + 64
        self._slow_skip = skipper(record, Budget())

    def decode(self, payloads: list[Data], counts: list[int], memory: Memory) -> Iterator[pa.Array]:
        """The records of the blocks in order, as arrays of structs. Raises ``Unproven`` without a proof."""
        try:
            buffer = ByteBuffer(payloads, self._padding, memory)
            numbers = np.array(counts, np.int64)
            marks = marks_of(buffer, numbers, self._steps)
            done = 0
            if one_for_each_record(marks, buffer, numbers):
                for rows in self._read_at_guesses(buffer, marks):
                    yield rows
                    done += len(rows)
            if done < len(marks) or done < sum(counts):
                starts = find_starts(buffer, marks, numbers, self._steps, self._slow_skip)
                for first in range(done, len(starts), CHUNK_ROWS):
                    yield self._read(buffer, starts[first : first + CHUNK_ROWS])
        except (IndexError, OverflowError, pa.ArrowInvalid) as error:
            raise Unproven(str(error)) from None

    def _read_at_guesses(self, buffer: ByteBuffer, marks: Vector) -> Iterator[pa.Array]:
        """Read a record from each mark, while each record ends where the next one starts."""
        edges = np.append(marks, buffer.end)
        for first in range(0, len(marks), CHUNK_ROWS):
            starts = marks[first : first + CHUNK_ROWS]
            finish, ends = self._steps.read(buffer, starts, Rows(len(starts)))
            if not np.array_equal(ends, edges[first + 1 : first + len(starts) + 1]):
                return
            yield finish()

    def _read(self, buffer: ByteBuffer, starts: Vector) -> pa.Array:
        finish, reached = self._steps.read_wanted(buffer, starts, Rows(len(starts)))
        if reached.max() > buffer.end:
            raise Unproven("an integer that is too long")
        return finish()
