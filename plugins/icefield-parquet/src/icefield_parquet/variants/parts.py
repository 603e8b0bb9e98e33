"""Encoding and decoding of objects and arrays of variants, with their values left encoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from icefield.errors import InvalidArgument

_OBJECT, _ARRAY = 2, 3
_WIDTHS: Final = {0: 0, 1: 0, 2: 0, 3: 1, 4: 2, 5: 4, 6: 8, 7: 8, 8: 5, 9: 9, 10: 17, 11: 4, 12: 8, 13: 8, 14: 4, 17: 8,
                  18: 8, 19: 8, 20: 16}  # fmt: skip
"""How many bytes primitives of a kind have after their first one."""


def encode_array(parts: Sequence[bytes]) -> bytes:
    """An array of encoded values."""
    offsets, size = _offsets(parts)
    large = len(parts) > 0xFF
    header = _ARRAY | (size - 1 | large << 2) << 2
    return b"".join([bytes([header]), len(parts).to_bytes(4 if large else 1, "little"), offsets, *parts])


def encode_object(fields: Mapping[int, bytes], names: Mapping[str, int]) -> bytes:
    """Encode an object from its values by name id; the fields are sorted by name."""
    ids = sorted(fields) if len(fields) < 2 else [id_ for _, id_ in sorted(_named(fields, names))]
    parts = [fields[id_] for id_ in ids]
    offsets, size = _offsets(parts)
    id_size = max(1, (max(ids, default=0).bit_length() + 7) // 8)
    large = len(parts) > 0xFF
    header = _OBJECT | (size - 1 | id_size - 1 << 2 | large << 4) << 2
    count = len(parts).to_bytes(4 if large else 1, "little")
    return b"".join([bytes([header]), count, *(id_.to_bytes(id_size, "little") for id_ in ids), offsets, *parts])


def _named(fields: Mapping[int, bytes], names: Mapping[str, int]) -> list[tuple[bytes, int]]:
    found = [(name.encode(), id_) for name, id_ in names.items() if id_ in fields]
    if len(found) != len(fields):
        raise InvalidArgument("a field of a variant has no name in its metadata")
    return found


def _offsets(parts: Sequence[bytes]) -> tuple[bytes, int]:
    """The encoded offsets of the parts and of their end, and the width of an offset in bytes."""
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + len(part))
    size = max(1, (ends[-1].bit_length() + 7) // 8)
    return b"".join(end.to_bytes(size, "little") for end in ends), size


def object_fields(value: bytes) -> dict[int, bytes]:
    """The fields of an encoded object by the ids of their names."""
    if value[:1] and value[0] & 3 == _OBJECT:
        header = value[0] >> 2
        count_size, id_size, size = 4 if header & 0x10 else 1, (header >> 2 & 3) + 1, (header & 3) + 1
        count = int.from_bytes(value[1 : 1 + count_size], "little")
        first = 1 + count_size
        starts = first + count * id_size
        begin = starts + (count + 1) * size
        if begin <= len(value):
            ids = [value[first + at * id_size :][:id_size] for at in range(count)]
            offsets = [begin + int.from_bytes(value[starts + at * size :][:size], "little") for at in range(count)]
            found = {int.from_bytes(id_, "little"): at for id_, at in zip(ids, offsets, strict=True)}
            spans = {id_: (at, at + _size(value, at)) for id_, at in found.items()}
            # Several offsets may point to the same bytes.
            if sum(end - at for at, end in spans.values()) <= len(value):
                return {id_: value[at:end] for id_, (at, end) in spans.items()}
    raise InvalidArgument("a shredded variant holds fields next to a value that is no object")


def _size(data: bytes, at: int) -> int:
    """How many bytes the value at a place has."""
    if at >= len(data):
        raise InvalidArgument("a variant ends too early")
    kind, header = data[at] & 3, data[at] >> 2
    if kind == 1:
        size = 1 + header
    elif kind == 0:
        size = _primitive_size(data, at, header)
    else:
        large = header & (0x10 if kind == _OBJECT else 4)
        count_size, offset_size = 4 if large else 1, (header & 3) + 1
        count = int.from_bytes(data[at + 1 : at + 1 + count_size], "little")
        ids = count * ((header >> 2 & 3) + 1) if kind == _OBJECT else 0
        last = 1 + count_size + ids + count * offset_size
        size = last + offset_size + int.from_bytes(data[at + last : at + last + offset_size], "little")
    if at + size > len(data):
        raise InvalidArgument("a variant ends too early")
    return size


def _primitive_size(data: bytes, at: int, kind: int) -> int:
    if kind in (15, 16):
        return 5 + int.from_bytes(data[at + 1 : at + 5], "little")
    if kind not in _WIDTHS:
        raise InvalidArgument(f"a variant has a primitive of unknown kind {kind}")
    return 1 + _WIDTHS[kind]
