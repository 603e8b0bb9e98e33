"""Thrift structs as dictionaries: a description states names and types; fields without one are kept unchanged.

A newer metastore sends fields without a description in this module. They are kept by number, with their type, so that a
changed table is sent back with all of its fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from icefield.errors import StorageError
from icefield.toolkit import lazy
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TTransportException

MAX_DEPTH: Final = 64
"""The greatest depth of nested structs, lists and maps."""

Record = dict[str | int, Any]
"""The fields of a struct that are set: described ones by name, others by number, as ``Undescribed``."""


class MalformedStruct(Exception):
    """Bytes that contradict the protocol or the description."""


class _Found(Record):
    """A struct that was read. A missing field that the caller reads is an error of the service."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __missing__(self, key: str | int) -> Any:
        raise StorageError(f"an answer of the Hive Metastore has a {self._name} without the field '{key}'")


class TooManyItems(MalformedStruct):
    """A list with more items than the limit."""


@dataclass(frozen=True)
class Plain:
    """A type without parts."""

    code: int


@dataclass(frozen=True)
class ListOf:
    """A list of one type."""

    element: Kind
    code: int = TType.LIST


@dataclass(frozen=True)
class MapOf:
    """A map of strings to strings. The interface has no other maps."""

    code: int = TType.MAP


@dataclass(frozen=True)
class Struct:
    """Fields by name: their number and type."""

    name: str
    fields: Mapping[str, tuple[int, Kind]]
    code: int = TType.STRUCT

    @lazy
    def by_number(self) -> dict[int, tuple[str, Kind]]:
        """Fields by number: their name and type."""
        return {number: (name, kind) for name, (number, kind) in self.fields.items()}


Kind = Plain | ListOf | MapOf | Struct

BOOL, STRING = Plain(TType.BOOL), Plain(TType.STRING)
I16, I32, I64 = Plain(TType.I16), Plain(TType.I32), Plain(TType.I64)
STRINGS = MapOf()


@dataclass(frozen=True)
class Undescribed:
    """The value of a field without a description; it contains the types of its parts."""

    code: int
    value: Any


_READ: Final = {
    TType.BOOL: "readBool",
    TType.BYTE: "readByte",
    TType.I16: "readI16",
    TType.I32: "readI32",
    TType.I64: "readI64",
    TType.DOUBLE: "readDouble",
}
_WRITE: Final = {code: name.replace("read", "write") for code, name in _READ.items()}


def write_struct(wire: TBinaryProtocol, struct: Struct, record: Mapping[str | int, Any]) -> None:
    """Write the fields of a record. Raises ``KeyError`` for a name that the struct does not have."""
    for key, value in record.items():
        if value is None:
            continue
        number, kind = struct.fields[key] if isinstance(key, str) else (key, value)
        wire.writeFieldBegin(key, kind.code, number)
        _write(wire, kind, value)
    wire.writeFieldStop()


def _write(wire: TBinaryProtocol, kind: Kind | Undescribed, value: Any) -> None:
    match kind:
        case Undescribed():
            _write_undescribed(wire, kind)
        case Struct():
            write_struct(wire, kind, value)
        case ListOf():
            wire.writeListBegin(kind.element.code, len(value))
            for element in value:
                _write(wire, kind.element, element)
        case MapOf():
            wire.writeMapBegin(TType.STRING, TType.STRING, len(value))
            for key, string in value.items():
                wire.writeString(key)
                wire.writeString(string)
        case Plain(TType.STRING):
            wire.writeString(value)
        case Plain():
            getattr(wire, _WRITE[kind.code])(value)


def _write_undescribed(wire: TBinaryProtocol, item: Undescribed) -> None:
    if item.code in _WRITE:
        getattr(wire, _WRITE[item.code])(item.value)
    elif item.code == TType.STRING:
        wire.writeBinary(item.value)
    elif item.code == TType.STRUCT:
        for number, value in item.value:
            wire.writeFieldBegin("", value.code, number)
            _write_undescribed(wire, value)
        wire.writeFieldStop()
    elif item.code == TType.MAP:
        key_code, value_code, pairs = item.value
        wire.writeMapBegin(key_code, value_code, len(pairs))
        for pair in pairs:
            for part in pair:
                _write_undescribed(wire, part)
    else:
        element_code, elements = item.value
        wire.writeListBegin(element_code, len(elements))  # a set has the same form
        for element in elements:
            _write_undescribed(wire, element)


def read_struct(wire: TBinaryProtocol, struct: Struct, depth: int = 0) -> Record:
    """Read a record. Raises ``MalformedStruct`` for a field of another type than described, and for depth."""
    found = _Found(struct.name)
    while True:
        _, code, number = wire.readFieldBegin()
        if code == TType.STOP:
            return found
        described = struct.by_number.get(number)
        if described is None:
            found[number] = _read_undescribed(wire, code, depth + 1)
            continue
        name, kind = described
        if kind.code != code:
            raise MalformedStruct(f"field '{name}' of {struct.name} is of another type than it should be")
        found[name] = _read(wire, kind, depth + 1)


def _read(wire: TBinaryProtocol, kind: Kind, depth: int) -> Any:
    _check(depth)
    match kind:
        case Struct():
            return read_struct(wire, kind, depth)
        case ListOf():
            try:
                code, size = wire.readListBegin()
            except TTransportException as error:
                if error.type == TTransportException.SIZE_LIMIT:
                    raise TooManyItems("a list of more items than are read") from error
                raise
            if size and code != kind.element.code:
                raise MalformedStruct("the elements of a list are of another type than they should be")
            return [_read(wire, kind.element, depth + 1) for _ in range(size)]
        case MapOf():
            key_code, value_code, size = wire.readMapBegin()
            if size and (key_code, value_code) != (TType.STRING, TType.STRING):
                raise MalformedStruct("a map is of other types than it should be")
            return {wire.readString(): wire.readString() for _ in range(size)}
        case Plain(TType.STRING):
            return wire.readString()
    return getattr(wire, _READ[kind.code])()


def _read_undescribed(wire: TBinaryProtocol, code: int, depth: int) -> Undescribed:
    _check(depth)
    if code in _READ:
        return Undescribed(code, getattr(wire, _READ[code])())
    if code == TType.STRING:
        return Undescribed(code, wire.readBinary())
    if code == TType.STRUCT:
        fields: list[tuple[int, Undescribed]] = []
        while True:
            _, field_code, number = wire.readFieldBegin()
            if field_code == TType.STOP:
                return Undescribed(code, fields)
            fields.append((number, _read_undescribed(wire, field_code, depth + 1)))
    if code == TType.MAP:
        key_code, value_code, size = wire.readMapBegin()
        pairs = [[_read_undescribed(wire, part, depth + 1) for part in (key_code, value_code)] for _ in range(size)]
        return Undescribed(code, (key_code, value_code, pairs))
    if code in (TType.LIST, TType.SET):
        element_code, size = wire.readListBegin()
        return Undescribed(
            code, (element_code, [_read_undescribed(wire, element_code, depth + 1) for _ in range(size)])
        )
    raise MalformedStruct(f"{code} is no type")


def _check(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise MalformedStruct(f"parts are more than {MAX_DEPTH} levels inside one another")
