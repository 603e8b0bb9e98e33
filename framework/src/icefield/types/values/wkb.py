"""Shapes as well-known text and well-known binary (OGC Simple Features; ISO codes for Z and M).

In memory and in files a geometry is well-known binary; in JSON it is a string.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from icefield.errors import InvalidArgument

POINT, LINESTRING, POLYGON, MULTIPOINT, MULTILINESTRING, MULTIPOLYGON, COLLECTION = range(1, 8)

_NAMES: Final = {
    POINT: "POINT",
    LINESTRING: "LINESTRING",
    POLYGON: "POLYGON",
    MULTIPOINT: "MULTIPOINT",
    MULTILINESTRING: "MULTILINESTRING",
    MULTIPOLYGON: "MULTIPOLYGON",
    COLLECTION: "GEOMETRYCOLLECTION",
}
_KINDS: Final = {name: kind for kind, name in _NAMES.items()}
_PART: Final = {MULTIPOINT: POINT, MULTILINESTRING: LINESTRING, MULTIPOLYGON: POLYGON}
_LAYOUTS: Final = ("", "Z", "M", "ZM")
_WIDTHS: Final = (2, 3, 3, 4)
_MAX_DEPTH: Final = 32
_TOKEN: Final = re.compile(r"\s*(?:([A-Za-z]+)|([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|([(),]))")

Coordinates = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Geometry:
    """``body``: coordinates or None (point), a list of them (line), of rings (polygon) or of shapes (the others)."""

    kind: int
    layout: int
    body: Any


def wkt_to_wkb(string: str) -> bytes:
    """The little-endian well-known binary of well-known text. Raises ``InvalidArgument``."""
    parser = _TextParser(string)
    shape = parser.shape(0)
    if parser.token is not None:
        raise parser.wrong()
    return b"".join(_binary(shape))


def wkb_to_wkt(data: bytes) -> str:
    """The well-known text of well-known binary of either byte order. Raises ``InvalidArgument``."""
    reader = _BinaryReader(bytes(data))
    shape = reader.shape(0)
    if reader.position != len(data):
        raise InvalidArgument(f"{len(data) - reader.position} bytes follow the shape in well-known binary")
    return _string(shape)


class _TextParser:
    def __init__(self, string: str) -> None:
        self.tokens = self._split(string)
        self.token: str | float | None = None
        self.next()

    @staticmethod
    def _split(string: str) -> Iterator[str | float]:
        position, end = 0, len(string.rstrip())
        while position < end:
            match = _TOKEN.match(string, position)
            if match is None:
                raise InvalidArgument(f"not well-known text: {string[position : position + 40]!r}")
            word, number, sign = match.groups()
            yield word.upper() if word else float(number) if number else sign
            position = match.end()

    def next(self) -> str | float | None:
        """Return the present token, and advance to the next token."""
        token, self.token = self.token, next(self.tokens, None)
        return token

    def wrong(self) -> InvalidArgument:
        return InvalidArgument(f"not well-known text: unexpected {'end' if self.token is None else repr(self.token)}")

    def expect(self, token: str) -> None:
        if self.token != token:
            raise self.wrong()
        self.next()

    def shape(self, depth: int) -> _Geometry:
        if depth > _MAX_DEPTH:
            raise InvalidArgument(f"shapes nested deeper than {_MAX_DEPTH} levels")
        if not isinstance(self.token, str):
            raise self.wrong()
        name, layout = self.token, 0
        for suffix in ("ZM", "Z", "M"):
            if name not in _KINDS and name.removesuffix(suffix) in _KINDS:
                name, layout = name.removesuffix(suffix), _LAYOUTS.index(suffix)
        if name not in _KINDS:
            raise self.wrong()
        self.next()
        if not layout and self.token in ("Z", "M", "ZM"):
            layout = _LAYOUTS.index(str(self.next()))
        kind = _KINDS[name]
        return _Geometry(kind, layout, self.body(kind, layout, depth))

    def body(self, kind: int, layout: int, depth: int) -> Any:
        if self.token == "EMPTY":
            self.next()
            return None if kind == POINT else []
        self.expect("(")
        items = [self.item(kind, layout, depth)]
        while kind != POINT and self.token == ",":
            self.next()
            items.append(self.item(kind, layout, depth))
        self.expect(")")
        return items[0] if kind == POINT else items

    def item(self, kind: int, layout: int, depth: int) -> Any:
        if kind in (POINT, LINESTRING):
            return self.coordinates(layout)
        if kind == POLYGON:
            return self.body(LINESTRING, layout, depth)
        if kind == COLLECTION:
            return self.shape(depth + 1)
        if kind == MULTIPOINT and isinstance(self.token, float):
            return _Geometry(POINT, layout, self.coordinates(layout))
        return _Geometry(_PART[kind], layout, self.body(_PART[kind], layout, depth))

    def coordinates(self, layout: int) -> Coordinates:
        numbers = []
        for _ in range(_WIDTHS[layout]):
            if not isinstance(self.token, float):
                raise self.wrong()
            numbers.append(self.token)
            self.next()
        return tuple(numbers)


class _BinaryReader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, form: str) -> tuple[Any, ...]:
        size = struct.calcsize(form)
        if self.position + size > len(self.data):
            raise InvalidArgument("well-known binary ends too early")
        values = struct.unpack_from(form, self.data, self.position)
        self.position += size
        return values

    def shape(self, depth: int, part_of: int | None = None) -> _Geometry:
        if depth > _MAX_DEPTH:
            raise InvalidArgument(f"shapes nested deeper than {_MAX_DEPTH} levels")
        (order,) = self.take("<B")
        if order > 1:
            raise InvalidArgument(f"well-known binary begins with byte order {order}")
        endian = "<" if order else ">"
        (code,) = self.take(f"{endian}I")
        layout, kind = divmod(code, 1000)
        if kind not in _NAMES or layout > 3 or (part_of is not None and kind != part_of):
            raise InvalidArgument(f"unexpected shape of code {code} in well-known binary")
        return _Geometry(kind, layout, self.body(endian, kind, layout, depth))

    def body(self, endian: str, kind: int, layout: int, depth: int) -> Any:
        if kind == POINT:
            point = self.take(f"{endian}{_WIDTHS[layout]}d")
            return None if all(math.isnan(part) for part in point) else point
        if kind == LINESTRING:
            return self.points(endian, layout)
        count = self.count(endian, 4 if kind == POLYGON else 9)
        if kind == POLYGON:
            return [self.points(endian, layout) for _ in range(count)]
        return [self.shape(depth + 1, _PART.get(kind)) for _ in range(count)]

    def points(self, endian: str, layout: int) -> list[Coordinates]:
        width = _WIDTHS[layout]
        count = self.count(endian, 8 * width)
        return [self.take(f"{endian}{width}d") for _ in range(count)]

    def count(self, endian: str, size: int) -> int:
        """A count of items of at least ``size`` bytes each.

        Raises ``InvalidArgument`` if fewer bytes are left, so that a damaged count makes no caller allocate memory.
        """
        (count,) = self.take(f"{endian}I")
        if count * size > len(self.data) - self.position:
            raise InvalidArgument("well-known binary ends too early")
        return int(count)


def _binary(shape: _Geometry) -> Iterator[bytes]:
    yield struct.pack("<BI", 1, shape.layout * 1000 + shape.kind)
    width = _WIDTHS[shape.layout]
    if shape.kind == POINT:
        yield struct.pack(f"<{width}d", *(shape.body or (math.nan,) * width))
        return
    yield struct.pack("<I", len(shape.body))
    for item in shape.body:
        if shape.kind == LINESTRING:
            yield struct.pack(f"<{width}d", *item)
        elif shape.kind == POLYGON:
            yield struct.pack("<I", len(item))
            yield from (struct.pack(f"<{width}d", *point) for point in item)
        else:
            yield from _binary(item)


def _string(shape: _Geometry) -> str:
    layout = f" {_LAYOUTS[shape.layout]}" if shape.layout else ""
    return f"{_NAMES[shape.kind]}{layout} {_body_string(shape.kind, shape.body)}"


def _body_string(kind: int, body: Any) -> str:
    if not body:
        return "EMPTY"
    match kind:
        case 1:
            return f"({_coordinates_string(body)})"
        case 2:
            return f"({', '.join(map(_coordinates_string, body))})"
        case 3:
            return f"({', '.join(_body_string(LINESTRING, ring) for ring in body)})"
        case 7:
            return f"({', '.join(map(_string, body))})"
    return f"({', '.join(_body_string(part.kind, part.body) for part in body)})"


def _coordinates_string(point: Coordinates) -> str:
    return " ".join(repr(part).removesuffix(".0") for part in point)
