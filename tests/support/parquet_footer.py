"""The footer of a Parquet file, parsed directly, because a library could fill in absent fields."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from parquet_thrift import Struct, read_struct
from vectors import VECTORS

PHYSICAL = ("boolean", "int32", "int64", "int96", "float", "double", "binary", "fixed_len_byte_array")
REPETITION = ("required", "optional", "repeated")
CONVERTED: dict[str, int] = VECTORS["parquet_converted_type_codes"]
LOGICAL: dict[str, int] = VECTORS["parquet_logical_union_ids"]
UNITS = ("MILLIS", "MICROS", "NANOS")
EDGES = ("SPHERICAL", "VINCENTY", "THOMAS", "ANDOYER", "KARNEY")
_CONVERTED_NAMES = {code: name for name, code in CONVERTED.items()}
_LOGICAL_NAMES = {code: name for name, code in LOGICAL.items()}


@dataclass(frozen=True)
class Element:
    """One element of the schema. Fields that are absent from the footer are None."""

    name: str
    repetition: str | None
    physical: str | None
    length: int | None
    children: int | None
    converted: str | None
    logical: str | None
    scale: int | None
    precision: int | None
    field_id: int | None


def footer(data: bytes) -> dict[int, Any]:
    """The file's metadata as numbered fields."""
    assert data[:4] == data[-4:] == b"PAR1"
    (length,) = struct.unpack("<I", data[-8:-4])
    fields, end = read_struct(data[-8 - length : -8])
    assert end == length, "bytes after the metadata"
    return fields


def elements(data: bytes) -> list[Element]:
    """The elements of the file's schema after its root, depth first."""
    return [_element(fields) for fields in footer(data)[2][1:]]


def element(data: bytes, name: str) -> Element:
    """The only element of that name."""
    (found,) = [each for each in elements(data) if each.name == name]
    return found


def _element(fields: dict[int, Any]) -> Element:
    return Element(
        fields[4].decode(),
        None if 3 not in fields else REPETITION[fields[3]],
        None if 1 not in fields else PHYSICAL[fields[1]],
        fields.get(2),
        fields.get(5),
        None if 6 not in fields else _CONVERTED_NAMES[fields[6]],
        None if 10 not in fields else logical_text(fields[10]),
        fields.get(7),
        fields.get(8),
        fields.get(9),
    )


def logical_text(union: dict[int, Any]) -> str:
    """A logical type as ``TIME(false,MICROS)``, ``INTEGER(8,true)``, ``DECIMAL(9,2)``, ``STRING``."""
    ((code, held),) = union.items()
    name = _LOGICAL_NAMES[code]
    match name:
        case "TIME" | "TIMESTAMP":
            ((unit, _),) = held[2].items()
            arguments = [str(held[1]).lower(), UNITS[unit - 1]]
        case "INTEGER":
            arguments = [str(held[1]), str(held[2]).lower()]
        case "DECIMAL":
            arguments = [str(held[2]), str(held[1])]
        case "VARIANT":
            arguments = [str(held[1])] if held else []
        case "GEOMETRY" | "GEOGRAPHY":
            arguments = [held[1].decode()] if 1 in held else []
            arguments += [EDGES[held[2]]] if 2 in held else []
        case _:
            arguments = []
    return f"{name}({','.join(arguments)})" if arguments else name


def logical_type(name: str, arguments: tuple[str, ...]) -> Struct:
    """Return the union for such a string; ``UNION`` with a number makes a type that no version of the format has."""
    held = Struct()
    match name:
        case "TIME" | "TIMESTAMP":
            unit = UNITS.index(arguments[1]) + 1 if arguments[1] in UNITS else int(arguments[1])
            held.boolean(1, arguments[0] == "true").struct(2, Struct().struct(unit, Struct()))
        case "INTEGER":
            held.byte(1, int(arguments[0])).boolean(2, arguments[1] == "true")
        case "DECIMAL":
            held.i32(1, int(arguments[1])).i32(2, int(arguments[0]))
        case "VARIANT":
            held.byte(1, 1)
        case "UNION":
            return Struct().struct(int(arguments[0]), held)
    return Struct().struct(LOGICAL[name], held)
