"""A file of one page, built so that pyarrow decodes numbers and lengths faster than a loop.

The guards ``repeated_entries`` and ``prefixes`` use it. Their reproducers justify this module, which may go with them.
"""

from __future__ import annotations

import struct
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from icefield_parquet.thrift import BINARY, I32, I64, LIST, STRUCT, write_int, write_struct

_MAGIC: Final = b"PAR1"
_LEVELS: Final = 3


def decoded_page(page: bytes, physical: int, count: int, encoding: int) -> pa.ChunkedArray:
    """The values of a page without levels; ``physical`` is the number of its physical type.

    Raises pyarrow's errors for damage.
    """
    header = {1: _i32(0), 2: _i32(len(page)), 3: _i32(len(page))}
    page = write_struct({**header, 5: _struct(_i32(count), _i32(encoding), _i32(_LEVELS), _i32(_LEVELS))}) + page
    places = {5: _i64(count), 6: _i64(len(page)), 7: _i64(len(page)), 9: _i64(len(_MAGIC))}
    encodings = _list(I32, write_int(encoding))
    chunk = write_struct({1: _i32(physical), 2: encodings, 3: _list(BINARY, b"\1t"), 4: _i32(0), **places})
    group = {1: _list(STRUCT, write_struct({2: _i64(len(_MAGIC)), 3: (STRUCT, chunk)})), 2: _i64(len(page))}
    schema = _list(
        STRUCT,
        write_struct({4: (BINARY, b"\6schema"), 5: _i32(1)}),
        write_struct({1: _i32(physical), 3: _i32(0), 4: (BINARY, b"\1t")}),
    )
    groups = _list(STRUCT, write_struct({**group, 3: _i64(count)}))
    footer = write_struct({1: _i32(1), 2: schema, 3: _i64(count), 4: groups})
    file = b"".join([_MAGIC, page, footer, struct.pack("<I", len(footer)), _MAGIC])
    found = pq.ParquetFile(pa.BufferReader(file)).read().column(0)
    if len(found) != count:
        raise ValueError("a page with fewer values than it says")
    return found


def _i32(value: int) -> tuple[int, bytes]:
    return I32, write_int(value)


def _i64(value: int) -> tuple[int, bytes]:
    return I64, write_int(value)


def _struct(*values: tuple[int, bytes]) -> tuple[int, bytes]:
    return STRUCT, write_struct(dict(enumerate(values, 1)))


def _list(kind: int, *values: bytes) -> tuple[int, bytes]:
    return LIST, bytes([len(values) << 4 | kind]) + b"".join(values)
