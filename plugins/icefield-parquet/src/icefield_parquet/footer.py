"""Corrections of footers, before pyarrow reads and after it writes them.

When a file is read, its last bytes are read here once and passed to pyarrow. When a file is written, pyarrow writes
the footer last: missing annotations are added on the way.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Mapping
from typing import Final

from icefield.abc import InputFile

from icefield_parquet.annotations import (
    CONVERTED,
    FIELD_ID,
    LOGICAL,
    NAME,
    PRECISION,
    SCALE,
    TIME,
    judge,
    kind_of,
    old_annotation,
)
from icefield_parquet.thrift import (
    I32,
    STRUCT,
    Fields,
    FooterSchema,
    RefusedSchema,
    parse_schema,
    read_int,
    read_varint,
    write_int,
    write_struct,
)

_MAGIC: Final = b"PAR1"
_END = 8
_TAIL = 64 << 10
_REMEMBERED: Final = 16
_FINE: Final[list[tuple[bytes, ...]]] = [()]
"""The first bytes of footers without findings, most recent first: the files of a table have similar footers."""

_TYPED: Final = "typed_value"
"""Part of a shredded variant, which distinguishes integers of different widths."""

_ORDERED: Final = bytes([0x1C, 0, 0])
"""``TypeDefinedOrder``, as an item of ``column_orders``, the last field of a footer."""


class ParquetWarning(UserWarning):
    """A file does not follow a recommendation of the format; it is read nevertheless."""


def read_tail(source: InputFile, size: int) -> bytes | None:
    """A footer, followed by its length and the magic bytes; None if the file does not end like a Parquet file."""
    start = max(0, size - _TAIL)
    tail = source.read_at(start, size - start)
    if len(tail) < _END or tail[-4:] != _MAGIC:
        return None
    (length,) = struct.unpack("<I", tail[-_END:-4])
    if length + _END + len(_MAGIC) > size:
        return None
    missing = length + _END - len(tail)
    if missing <= 0:
        return tail[-missing:]
    return source.read_at(size - length - _END, missing) + tail


def checked_tail(tail: bytes, location: str) -> bytes:
    """Return the tail with annotations that make pyarrow follow the format.

    Raises ``InvalidFile`` for an annotation that does not fit its column, ``UnsupportedFeature`` for an annotation of a
    future version of the format. Warns of a decimal that takes twice the space it needs.
    """
    if tail.startswith(_FINE[0]):
        return tail
    try:
        schema = parse_schema(tail[:-_END])
    except RefusedSchema:
        raise
    except ValueError:
        return tail  # pyarrow raises the error for a damaged footer
    stated = changed = False
    for position, (_, fields) in enumerate(schema.elements):
        try:
            verdict = judge(fields)
        except (ValueError, LookupError, struct.error):
            return tail
        if verdict.error is not None:
            where = f"{location}: column '{_name(fields)}': {verdict.reason}"
            raise verdict.error(where, location=location)
        if verdict.reason:
            stated = True
            warnings.warn(f"{location}: column '{_name(fields)}': {verdict.reason}", ParquetWarning, stacklevel=2)
        if verdict.instead is not None and not (verdict.instead == () and _name(fields) == _TYPED):
            kept = {number: each for number, each in fields.items() if number not in _ANNOTATIONS}
            schema.elements[position] = write_struct({**kept, **dict(verdict.instead)}), fields
            changed = True
    if changed:
        return _with_end(schema.encode())
    front = len(tail) - _END - len(schema.after)
    if not stated and front <= _TAIL:
        _FINE[0] = (tail[:front], *_FINE[0][: _REMEMBERED - 1])
    return tail


_ANNOTATIONS: Final = frozenset({CONVERTED, SCALE, PRECISION, LOGICAL})


def _name(fields: Fields) -> str:
    data = fields[NAME][1] if NAME in fields else b"\0"
    return data[read_varint(data, 0)[1] :].decode("utf-8", "replace")


def is_ordered(tail: bytes, columns: int) -> bool:
    """Whether a footer states for every column that its statistics follow the order of the column's type."""
    return tail[:-_END].endswith(_ORDERED * columns + b"\0")


def completed_tail(
    tail: bytes, logical_types: Mapping[int, bytes], known: list[tuple[bytes, bytes]] | None = None
) -> bytes:
    """Add the annotations that pyarrow leaves out to the last bytes it wrote.

    Each time and timestamp gets its converted type, local ones as well. Each field in ``logical_types`` (by id) gets
    its logical type from there, unless the field has one already; a time gets it in any case. Bytes before the footer
    stay unchanged. ``known`` caches the completed schema for the next file with the same schema. Raises ``ValueError``
    for a footer that is not understood.
    """
    (length,) = struct.unpack("<I", tail[-_END:-4])
    start = len(tail) - _END - length
    if tail[-4:] != _MAGIC or start < 0:
        raise ValueError("what pyarrow wrote does not end as a Parquet file does")
    footer = tail[start:-_END]
    for old, new in known or ():
        if footer.startswith(old):
            return tail[:start] + _with_end(new + footer[len(old) :])
    schema = parse_schema(footer)
    front = len(footer) - len(schema.after)
    _complete(schema, logical_types)
    completed = schema.encode()
    if known is not None:
        known[:] = [(footer[:front], completed[: len(completed) - len(schema.after)])]
    return tail[:start] + _with_end(completed)


def _complete(schema: FooterSchema, logical_types: Mapping[int, bytes]) -> None:
    missing = dict(logical_types)
    for position, (_, fields) in enumerate(schema.elements):
        added: Fields = {}
        id_ = read_int(fields[FIELD_ID][1]) if FIELD_ID in fields else None
        logical = None if id_ is None else missing.pop(id_, None)
        # Older releases of pyarrow take each time for one in UTC.
        if logical is not None and (LOGICAL not in fields or kind_of(logical) == TIME):
            added[LOGICAL] = STRUCT, logical
        old = old_annotation(fields) if CONVERTED not in fields else None
        if old is not None:
            added[CONVERTED] = I32, write_int(old)
        if added:
            schema.elements[position] = write_struct({**fields, **added}), fields
    if missing:
        raise ValueError(f"the footer that pyarrow wrote lacks the fields {sorted(missing)}")


def _with_end(footer: bytes) -> bytes:
    return footer + struct.pack("<I", len(footer)) + _MAGIC
