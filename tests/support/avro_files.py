"""Avro files made by hand, byte by byte, and read through the plugin.

The encoder here is the plain reading of the Avro specification: it shares nothing with the plugin, and it can lay
arrays out in ways that no writer at hand does (several blocks, blocks that state their size).
"""

from __future__ import annotations

import io
import json
import random
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import icefield_avro.decoding as decoding
import pyarrow as pa
from hypothesis import strategies as st
from icefield.abc import ManifestReadRequest
from icefield.schema import Schema
from icefield.toolkit import BytesInput
from icefield_avro.avro_format import AvroFormat

FORMAT = AvroFormat()
SYNC = bytes(range(100, 116))


class Sink(io.BytesIO):
    """An output stream that keeps the published bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.published: bytes | None = None

    def close(self) -> None:
        if not self.closed:
            self.published = self.getvalue()
            super().close()

    def abort(self) -> None:
        super().close()


def write_file(
    schema: Schema,
    batches: Sequence[pa.RecordBatch],
    properties: Mapping[str, str] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """The bytes of a file that the plugin writes."""
    sink = Sink()
    with FORMAT.open_writer(sink, schema, properties=properties, metadata=metadata) as writer:
        for batch in batches:
            writer.write(batch)
        writer.close()
    assert sink.published is not None
    return sink.published


def open_file(data: bytes):
    """A reader of the plugin."""
    return FORMAT.open_reader(BytesInput(data), "memory://test/file.avro", size=len(data))


def read_file(data: bytes, columns: pa.Schema | None = None, **request: Any) -> pa.Table:
    """Read a file with the plugin as a table; all columns by default."""
    with open_file(data) as reader:
        wanted = reader.schema if columns is None else columns
        batches = list(reader.read(ManifestReadRequest(wanted, **request)))
        position = pa.field("_pos", pa.int64(), nullable=False)
        full = wanted.append(position) if request.get("positions") else wanted
        return pa.Table.from_batches(batches, full)


@contextmanager
def by_value() -> Iterator[None]:
    """Decode all files value by value."""
    before = decoding._FEW_ROWS, decoding._FEW_BYTES
    decoding._FEW_ROWS = decoding._FEW_BYTES = 1 << 60
    try:
        yield
    finally:
        decoding._FEW_ROWS, decoding._FEW_BYTES = before


@contextmanager
def vectorized_only(*, strictly: bool = True) -> Iterator[None]:
    """Decode even a few rows by the vectorized decoder; with ``strictly``, fail when that decoder gives up."""
    before = decoding._FEW_ROWS, decoding._FEW_BYTES, decoding.Decoder._by_row
    decoding._FEW_ROWS = decoding._FEW_BYTES = 0

    def refuse(self: Any, *given: Any) -> Any:
        assert self._vectorized is None, "the vectorized decoder gave up"
        return before[2](self, *given)

    if strictly:
        decoding.Decoder._by_row = refuse
    try:
        yield
    finally:
        decoding._FEW_ROWS, decoding._FEW_BYTES, decoding.Decoder._by_row = before


# -- the encoder


def long(number: int) -> bytes:
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    out = []
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*out, rest])


def sized(data: bytes) -> bytes:
    return long(len(data)) + data


def check(data: bytes, **request: Any) -> pa.Table:
    """Read a file with both decoders: they agree, and the fast decoder never falls back to the slow one."""
    with by_value():
        expected = read_file(data, **request)
    with vectorized_only():
        got = read_file(data, **request)
    got.validate(full=True)
    assert got.equals(expected)
    return got


def encode(schema: Any, value: Any, rng: random.Random | None = None) -> bytes:
    """A value as Avro: records are sequences in the order of the fields, maps sequences of pairs.

    With ``rng``, arrays and maps are cut into random blocks.
    """
    if isinstance(schema, list):
        branch = next(i for i, kind in enumerate(schema) if (kind == "null") == (value is None))
        return long(branch) + encode(schema[branch], value, rng)
    kind = schema["type"] if isinstance(schema, dict) else schema
    match kind:
        case "null":
            return b""
        case "boolean":
            return b"\1" if value else b"\0"
        case "int" | "long":
            return long(value)
        case "float":
            return struct.pack("<f", value)
        case "double":
            return struct.pack("<d", value)
        case "string":
            return sized(value.encode())
        case "bytes":
            return sized(value)
        case "fixed":
            assert len(value) == schema["size"]
            return value
        case "enum":
            return long(schema["symbols"].index(value))
        case "record":
            fields = schema["fields"]
            return b"".join(encode(field["type"], part, rng) for field, part in zip(fields, value, strict=True))
        case "array":
            return _blocks([encode(schema["items"], item, rng) for item in value], rng)
        case "map":
            return _blocks([sized(key.encode()) + encode(schema["values"], item, rng) for key, item in value], rng)
    return encode(kind, value, rng)


def _blocks(items: list[bytes], rng: random.Random | None) -> bytes:
    out = b""
    while items:
        count = rng.randint(1, len(items)) if rng is not None and rng.random() < 0.3 else len(items)
        body = b"".join(items[:count])
        if rng is not None and rng.random() < 0.2:
            out += long(-count) + long(len(body)) + body
        else:
            out += long(count) + body
        items = items[count:]
    return out + b"\0"


def container(
    schema: Any,
    blocks: Sequence[Sequence[bytes]],
    codec: str = "null",
    metadata: Mapping[str, bytes] | None = None,
    pack: Callable[[bytes], bytes] | None = None,
) -> bytes:
    """A whole file of encoded records, by block."""
    header = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode(), **(metadata or {})}
    out = [b"Obj\x01", long(len(header)), *(sized(k.encode()) + sized(v) for k, v in header.items()), b"\0", SYNC]
    for records in blocks:
        body = b"".join(records)
        packed = pack(body) if pack is not None else body
        out += [long(len(records)), sized(packed), SYNC]
    return b"".join(out)


def deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def cut(items: Sequence[Any], rng: random.Random, most: int = 40) -> list[Sequence[Any]]:
    """The items in runs of random length."""
    out, start = [], 0
    while start < len(items):
        end = start + rng.randint(1, most)
        out.append(items[start:end])
        start = end
    return out


# -- any schema with values for it


@dataclass(frozen=True)
class Kind:
    """An Avro schema, values for ``encode``, and a function from such a value to the argument of ``pyarrow.array``."""

    schema: Any
    values: st.SearchStrategy[Any]
    expected: Callable[[Any], Any] = lambda value: value


_INT = st.integers(-(2**31), 2**31 - 1) | st.integers(-70, 70)
_LONG = st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70) | st.integers(-(2**40), 2**40)
_TEXT = st.text(max_size=6) | st.text("ab/", min_size=5, max_size=20) | st.just("x" * 130)
_FLOAT = st.floats(width=32, allow_nan=False)

_PLAIN = (
    Kind("boolean", st.booleans()),
    Kind("int", _INT),
    Kind("long", _LONG),
    Kind("float", _FLOAT),
    Kind("double", st.floats(allow_nan=False)),
    Kind("string", _TEXT),
    Kind("bytes", st.binary(max_size=20)),
    Kind({"type": "int", "logicalType": "date"}, _INT),
    Kind({"type": "int", "logicalType": "time-millis"}, st.integers(0, 86_399_999), lambda ms: ms * 1000),
    Kind({"type": "long", "logicalType": "time-micros"}, st.integers(0, 86_399_999_999)),
    Kind({"type": "long", "logicalType": "timestamp-micros"}, _LONG),
    Kind({"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}, _LONG),
    Kind({"type": "long", "logicalType": "local-timestamp-micros"}, _LONG),
    Kind({"type": "long", "logicalType": "timestamp-millis"}, st.integers(-(2**50), 2**50), lambda ms: ms * 1000),
    Kind({"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True}, _LONG),
    Kind({"type": "string", "logicalType": "unknown-to-all"}, _TEXT),
    Kind("null", st.none()),
)


class _Names:
    def __init__(self) -> None:
        self.made = 0

    def take(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made}"


def _decimal(draw: Any, names: _Names) -> Kind:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
    top = 10**precision - 1
    numbers = st.integers(-top, top) | st.integers(-min(top, 99), min(top, 99))
    least = (top.bit_length() + 8) // 8

    def expected(data: bytes) -> Decimal:
        return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, Context(prec=60))

    if draw(st.booleans()):
        values = numbers.map(lambda n: n.to_bytes((n.bit_length() + 8) // 8, "big", signed=True))
        return Kind({"type": "bytes", **logical}, values, expected)
    size = least + draw(st.integers(0, 2))
    values = numbers.map(lambda n: n.to_bytes(size, "big", signed=True))
    return Kind({"type": "fixed", "name": names.take("d"), "size": size, **logical}, values, expected)


def _optional(draw: Any, inner: Kind) -> Kind:
    union = ["null", inner.schema] if draw(st.booleans()) else [inner.schema, "null"]
    values = st.none() | inner.values | inner.values
    return Kind(union, values, lambda value: None if value is None else inner.expected(value))


def _record(draw: Any, names: _Names, depth: int) -> Kind:
    kinds = [_kind(draw, names, depth - 1) for _ in range(draw(st.integers(0, 4)))]
    fields = [{"name": names.take("f"), "type": kind.schema} for kind in kinds]

    def expected(values: Any) -> dict[str, Any]:
        parts = zip(fields, kinds, values, strict=True)
        return {field["name"]: kind.expected(value) for field, kind, value in parts}

    schema = {"type": "record", "name": names.take("r"), "fields": fields}
    return Kind(schema, st.tuples(*(kind.values for kind in kinds)), expected)


def _array(draw: Any, names: _Names, depth: int) -> Kind:
    item = _kind(draw, names, depth - 1)
    values = st.lists(item.values, max_size=4) | st.just([])
    return Kind({"type": "array", "items": item.schema}, values, lambda v: [item.expected(x) for x in v])


def _map(draw: Any, names: _Names, depth: int) -> Kind:
    value = _kind(draw, names, depth - 1)

    def expected(pairs: Any) -> list[tuple[Any, Any]]:
        return [(key.expected(k), value.expected(v)) for k, v in pairs]

    if draw(st.booleans()):
        key = Kind("string", _TEXT)
        schema: Any = {"type": "map", "values": value.schema}
    else:
        key = draw(st.sampled_from((Kind("int", st.integers(0, 200)), Kind("long", _LONG), Kind("string", _TEXT))))
        fields = [{"name": "key", "type": key.schema}, {"name": "value", "type": value.schema}]
        entry = {"type": "record", "name": names.take("k"), "fields": fields}
        schema = {"type": "array", "logicalType": "map", "items": entry}
    return Kind(schema, st.lists(st.tuples(key.values, value.values), max_size=4), expected)


def _kind(draw: Any, names: _Names, depth: int) -> Kind:
    choice = draw(st.integers(0, 9))
    if choice == 0 and depth > 0:
        kind = _record(draw, names, depth)
    elif choice == 1 and depth > 0:
        kind = _array(draw, names, depth)
    elif choice == 2 and depth > 0:
        kind = _map(draw, names, depth)
    elif choice == 3:
        kind = _decimal(draw, names)
    elif choice == 4:
        size = draw(st.integers(1, 40))
        schema = {"type": "fixed", "name": names.take("x"), "size": size}
        kind = Kind(schema, st.binary(min_size=size, max_size=size))
    elif choice == 5:
        symbols = ["A", "B", "C"]
        schema = {"type": "enum", "name": names.take("e"), "symbols": symbols}
        kind = Kind(schema, st.sampled_from(symbols))
    else:
        kind = draw(st.sampled_from(_PLAIN))
    return kind if kind.schema == "null" or draw(st.booleans()) else _optional(draw, kind)


@dataclass(frozen=True, repr=False)
class MadeFile:
    """A file, its schema, and its contents as an Arrow table built by pyarrow alone."""

    data: bytes
    schema: Any
    rows: list[Any]
    expected: list[dict[str, Any]]

    def __repr__(self) -> str:
        return f"MadeFile({json.dumps(self.schema)}, {len(self.rows)} rows like {self.rows[:3]})"

    def table(self, arrow: pa.Schema) -> pa.Table:
        """The rows as ``pyarrow`` makes them of Python values, in the types of ``arrow``."""
        columns = [pa.array([row[field.name] for row in self.expected], field.type) for field in arrow]
        return pa.Table.from_arrays(columns, schema=arrow)


@st.composite
def files(draw: Any, depth: int = 2) -> MadeFile:
    """Files of any schema that can be read, with some hundred rows in blocks of any size."""
    names = _Names()
    kinds = [_kind(draw, names, depth) for _ in range(draw(st.integers(1, 5)))]
    fields = [{"name": f"c{i}", "type": kind.schema} for i, kind in enumerate(kinds)]
    schema = {"type": "record", "name": "top", "fields": fields}
    samples = draw(st.lists(st.tuples(*(kind.values for kind in kinds)), min_size=1, max_size=12))
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    rows = [rng.choice(samples) for _ in range(rng.choice((1, 3, 30, 200, 500)))]
    most = rng.choice((1, 2, 30, 1000))
    layout = rng if rng.random() < 0.3 else None
    encoded = [encode(schema, row, layout) for row in rows]
    data = container(schema, cut(encoded, rng, most))
    expected = [
        {f"c{i}": kind.expected(value) for i, kind, value in zip(range(len(row)), kinds, row, strict=True)}
        for row in rows
    ]
    return MadeFile(data, schema, rows, expected)


def uncompressed(data: bytes) -> bytes:
    """The same Avro file with its deflated blocks uncompressed."""
    source = io.BytesIO(data[4:])
    header: dict[bytes, bytes] = {}
    while count := _read_long(source):
        for _ in range(count):
            key = source.read(_read_long(source))
            header[key] = source.read(_read_long(source))
    sync = source.read(16)
    assert header.get(b"avro.codec") == b"deflate"
    header[b"avro.codec"] = b"null"
    pairs = b"".join(sized(part) for pair in header.items() for part in pair)
    blocks = b""
    while source.tell() < len(data) - 4:
        records = long(_read_long(source))
        blocks += records + sized(zlib.decompress(source.read(_read_long(source)), -15)) + sync
        source.read(16)
    return data[:4] + long(len(header)) + pairs + long(0) + sync + blocks


def _read_long(source: io.BytesIO) -> int:
    number = shift = 0
    while True:
        byte = source.read(1)[0]
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1)
