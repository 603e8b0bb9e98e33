"""Thrift's compact protocol, as far as Parquet footers need it: structs that are built field by field, and read."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

TRUE, FALSE, BYTE, I32, I64, DOUBLE, BINARY, LIST, STRUCT = 1, 2, 3, 5, 6, 7, 8, 9, 12


class Struct:
    """A Thrift struct; fields are added in ascending order."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._last = 0

    def i32(self, number: int, value: int) -> Struct:
        return self._field(number, I32, zigzag(value))

    def i64(self, number: int, value: int) -> Struct:
        return self._field(number, I64, zigzag(value))

    def boolean(self, number: int, value: bool) -> Struct:
        return self._field(number, TRUE if value else FALSE, b"")

    def byte(self, number: int, value: int) -> Struct:
        return self._field(number, BYTE, struct.pack("b", value))

    def binary(self, number: int, value: bytes) -> Struct:
        return self._field(number, BINARY, varint(len(value)) + value)

    def text(self, number: int, value: str) -> Struct:
        return self.binary(number, value.encode())

    def struct(self, number: int, value: Struct) -> Struct:
        return self._field(number, STRUCT, value.encode())

    def list(self, number: int, kind: int, values: Sequence[Any]) -> Struct:
        head = bytes([len(values) << 4 | kind]) if len(values) < 15 else bytes([0xF0 | kind]) + varint(len(values))
        encode = {I32: zigzag, BINARY: lambda v: varint(len(v)) + v, STRUCT: lambda v: v.encode()}[kind]
        return self._field(number, LIST, head + b"".join(encode(value) for value in values))

    def _field(self, number: int, kind: int, data: bytes) -> Struct:
        delta = number - self._last
        assert delta > 0, "fields come in ascending order"
        self._data += bytes([delta << 4 | kind]) if delta < 16 else bytes([kind]) + zigzag(number)
        self._data += data
        self._last = number
        return self

    def encode(self) -> bytes:
        return bytes(self._data) + b"\0"


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    return varint((value << 1) ^ (value >> 63))


def read_struct(data: bytes, at: int = 0) -> tuple[dict[int, Any], int]:
    """The fields of a struct by number, and where it ends; a struct inside is such a dict again, a list a list."""
    fields: dict[int, Any] = {}
    last = 0
    while data[at] & 0x0F:
        kind, step = data[at] & 0x0F, data[at] >> 4
        at += 1
        if step:
            last += step
        else:
            number, at = _read_varint(data, at)
            last = (number >> 1) ^ -(number & 1)
        assert last not in fields, f"field {last} comes twice"
        fields[last], at = (kind == TRUE, at) if kind in (TRUE, FALSE) else _read_value(data, at, kind)
    return fields, at + 1


def _read_value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == STRUCT:
        return read_struct(data, at)
    if kind == BINARY:
        length, at = _read_varint(data, at)
        return data[at : at + length], at + length
    if kind == LIST:
        count, inner = data[at] >> 4, data[at] & 0x0F
        at += 1
        if count == 15:
            count, at = _read_varint(data, at)
        items = []
        for _ in range(count):
            item, at = _read_value(data, at, inner)
            items.append(item)
        return items, at
    if kind in (BYTE, TRUE, FALSE):
        return struct.unpack_from("b", data, at)[0], at + 1
    if kind == DOUBLE:
        return struct.unpack_from("<d", data, at)[0], at + 8
    number, at = _read_varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
