"""Decoding groups of blocks: vectorized where the result can be proved, else row by row with fastavro."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

import pyarrow as pa

from icefield_avro.nodes import Record
from icefield_avro.row_decoding import RowDecoder
from icefield_avro.selection import Selection, select
from icefield_avro.varints import Data
from icefield_avro.vectorized import Memory, Unfit, Unproven, VectorizedDecoder

_FEW_ROWS: Final = 16
_FEW_BYTES: Final = 16 * 1024


class Decoder:
    """Decodes blocks of one writer's schema into arrays of structs.

    ``memory`` holds the blocks during decoding; the caller must not use other buffers in it meanwhile.
    """

    def __init__(
        self,
        record: Record,
        columns: pa.Schema,
        map_keys: Mapping[int, frozenset[int]],
        memory: Memory | None = None,
    ) -> None:
        self.failed_block = 0
        self._record = record
        self._selection, self._vectorized = _compiled(_Key(record, columns, map_keys))
        self._rows: RowDecoder | None = None
        self._memory = Memory() if memory is None else memory

    def decode(self, payloads: list[Data], counts: list[int]) -> Iterator[pa.Array]:
        """Yield the records of the blocks in order.

        Raises ``Malformed``; ``failed_block`` then states which block is damaged.
        """
        done = 0
        if self._vectorized is not None and (sum(counts) > _FEW_ROWS or sum(map(len, payloads)) > _FEW_BYTES):
            try:
                for rows in self._vectorized.decode(payloads, counts, self._memory):
                    yield rows
                    done += len(rows)
                return
            except Unproven:
                pass
        yield from self._by_row(payloads, counts, done)

    def _by_row(self, payloads: list[Data], counts: list[int], done: int) -> Iterator[pa.Array]:
        """Decode row by row, without the first ``done`` records."""
        if self._rows is None:
            self._rows = RowDecoder(self._record, self._selection)
        for index, (payload, count) in enumerate(zip(payloads, counts, strict=True)):
            self.failed_block = index
            if done >= count:
                done -= count
                continue
            yield self._rows.decode(payload, count)[done:]
            done = 0


class _Key:
    """A cache key: a writer's schema and the requested columns.

    Keys are equal only if ids and all other metadata are equal.
    """

    __slots__ = ("_hash", "columns", "keys", "record", "serialized")

    def __init__(self, record: Record, columns: pa.Schema, map_keys: Mapping[int, frozenset[int]]) -> None:
        self.record = record
        self.columns = columns
        self.keys = {field_id: frozenset(keys) for field_id, keys in map_keys.items()}
        self.serialized = columns.serialize().to_pybytes()
        self._hash = hash((id(record), self.serialized, frozenset(self.keys.items())))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Key):
            return NotImplemented
        return self.record is other.record and self.serialized == other.serialized and self.keys == other.keys


@lru_cache(maxsize=256)
def _compiled(key: _Key) -> tuple[Selection, VectorizedDecoder | None]:
    """Compile a request, cached: one or two compiled requests read all manifests of a table."""
    selection = select(key.record, key.columns, key.keys)
    try:
        return selection, VectorizedDecoder(key.record, selection)
    except Unfit:
        return selection, None
