"""Footers before pyarrow sees them, and after it wrote them.

When a file is read, its last bytes are read here once and handed to pyarrow. When one is written, pyarrow's
footer is the last thing it writes: what its annotations lack is put in on the way.
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
    Schema,
    TooManyElements,
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
"""How footers begin of which nothing is to be said, the last ones first: the files of a table are much alike."""

_TYPED: Final = "typed_value"
"""Part of a shredded variant, which distinguishes integers of different widths."""

_ORDERED: Final = bytes([0x1C, 0, 0])
"""A column whose order is that of its type, as the last field of a footer lists them."""


class ParquetWarning(UserWarning):
    """A file is not as the format recommends, and is read all the same."""


def read_tail(source: InputFile, size: int) -> bytes | None:
    """A file's footer with the length and the mark behind it; None where the end of the file is not that of Parquet."""
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
    """The tail with annotations that pyarrow reads as the format means them.

    Raises ``InvalidFile`` for an annotation that may not stand where it does, ``UnsupportedFeature`` for one of a
    version of the format to come. Warns of a decimal that takes twice the room it needs.
    """
    if tail.startswith(_FINE[0]):
        return tail
    try:
        schema = parse_schema(tail[:-_END])
    except TooManyElements:
        raise
    except ValueError:
        return tail  # what is wrong with it is for pyarrow to say
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
    """Whether a footer says of each column that its statistics are in the order of its type."""
    return tail[:-_END].endswith(_ORDERED * columns + b"\0")


def completed_tail(
    tail: bytes, logical_types: Mapping[int, bytes], known: list[tuple[bytes, bytes]] | None = None
) -> bytes:
    """What pyarrow wrote last, with the annotations that it leaves out.

    Each time and timestamp gets its old annotation, local ones as well; each field in ``logical_types`` (by id) gets
    that logical type unless it has one, a time in any case. Bytes before the footer stay. ``known`` keeps what was made
    of the schema for the next file of the same one. Raises ``ValueError`` where pyarrow's footer is not understood.
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


def _complete(schema: Schema, logical_types: Mapping[int, bytes]) -> None:
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
