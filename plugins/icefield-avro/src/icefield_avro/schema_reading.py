"""From the Avro schema in a file's header to nodes, and to the Arrow schema that the file is read as.

Appendix A of the table spec ("Avro") maps Iceberg's types to Avro's types, and states the places of the ids. The schema
is not trusted: its length, depth and expanded size are bounded, and recursion of named types is refused.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from icefield.errors import UnsupportedFeature
from icefield.toolkit import DOC_KEY, FIELD_ID_KEY, TYPE_KEY

from icefield_avro.nodes import Array, Field, Map, Node, Optional, Primitive, Record
from icefield_avro.varints import Malformed

MAX_SCHEMA_BYTES: Final = 8 * 1024 * 1024
MAX_DEPTH: Final = 100
MAX_NODES: Final = 100_000
MAX_FIXED: Final = 16 * 1024 * 1024
_CACHED_BYTES: Final = 256 * 1024
NAME_KEY: Final = "iceberg-field-name"

_PLAIN: Final = {
    "null": Primitive("null", pa.null()),
    "boolean": Primitive("boolean", pa.bool_()),
    "int": Primitive("int", pa.int32()),
    "long": Primitive("long", pa.int64()),
    "float": Primitive("float", pa.float32()),
    "double": Primitive("double", pa.float64()),
    "bytes": Primitive("bytes", pa.binary()),
    "string": Primitive("string", pa.string()),
}

# Logical type -> unit of the Arrow timestamp, and the factor that converts a stored number to this unit. ``local-``
# never has a zone.
_TIMESTAMPS: Final = {
    "timestamp-millis": ("us", 1000),
    "timestamp-micros": ("us", 1),
    "timestamp-nanos": ("ns", 1),
}


def parse_schema(string: bytes) -> Record:
    """Parse a schema to nodes. Raises ``Malformed``, or ``UnsupportedFeature`` for types that no table holds."""
    if len(string) > MAX_SCHEMA_BYTES:
        raise Malformed(f"a schema of more than {MAX_SCHEMA_BYTES:,} bytes")
    return _parse(string) if len(string) > _CACHED_BYTES else _parse_cached(string)


def _parse(string: bytes) -> Record:
    try:
        root = json.loads(string)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"a schema that is not JSON: {str(error)[:100]}") from None
    node = _Parser().node(root, "", 0)
    if not isinstance(node, Record):
        raise UnsupportedFeature("the schema of an Avro file must be a record to be read as a table")
    return node


_parse_cached = lru_cache(maxsize=128)(_parse)


class _Parser:
    """Resolves names in the order of the string. ``expanded`` counts nodes as if each reference were a copy."""

    def __init__(self) -> None:
        self.named: dict[str, tuple[Node, int] | None] = {}  # None: being defined
        self.expanded = 0

    def node(self, schema: Any, namespace: str, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise Malformed(f"a schema nested deeper than {MAX_DEPTH} levels")
        self.expanded += 1
        if self.expanded > MAX_NODES:
            raise Malformed(f"a schema of more than {MAX_NODES:,} types")
        if isinstance(schema, str):
            return self._reference(schema, namespace)
        if isinstance(schema, list):
            return self._union(schema, namespace, depth)
        if not isinstance(schema, dict):
            raise Malformed("a schema with a type that is neither name, object nor list")
        return self._object(schema, namespace, depth)

    def _reference(self, name: str, namespace: str) -> Node:
        plain = _PLAIN.get(name)
        if plain is not None:
            return plain
        key = name if "." in name or not namespace else f"{namespace}.{name}"
        if key not in self.named and name in self.named:
            key = name
        if key not in self.named:
            raise Malformed(f"a schema with the unknown type {name[:60]!r}")
        known = self.named[key]
        if known is None:
            raise UnsupportedFeature(f"the Avro type {name[:60]!r} contains itself, which no table type does")
        self.expanded += known[1]
        return known[0]

    def _union(self, branches: list[Any], namespace: str, depth: int) -> Node:
        nulls = [i for i, branch in enumerate(branches) if branch in ("null", {"type": "null"})]
        if len(branches) == 1 and not nulls:
            return Optional(self.node(branches[0], namespace, depth + 1), None)
        if len(branches) != 2 or len(nulls) != 1:
            raise UnsupportedFeature("an Avro union other than of null and one type is no table type")
        inner = self.node(branches[1 - nulls[0]], namespace, depth + 1)
        if isinstance(inner, Optional):
            raise Malformed("a union directly inside a union")
        return Optional(inner, nulls[0])

    def _object(self, schema: dict[str, Any], namespace: str, depth: int) -> Node:
        kind = schema.get("type")
        if isinstance(kind, dict | list):  # {"type": {"type": "int", ...}}
            return self.node(kind, namespace, depth + 1)
        match kind:
            case "record" | "error":
                return self._record(schema, namespace, depth)
            case "array":
                return self._array(schema, namespace, depth)
            case "map":
                key = Field("key", "key", _PLAIN["string"], _id(schema, "key-id"))
                value = self.node(schema.get("values"), namespace, depth + 1)
                return Map(key, Field("value", "value", value, _id(schema, "value-id")), is_avro_map=True)
            case "fixed" | "enum":
                node = _fixed(schema) if kind == "fixed" else _enum(schema)
                self.named[self._full_name(schema, namespace)] = (node, 1)
                return node
            case str():
                return _with_logical_type(self._reference(kind, namespace), schema)
        raise Malformed("a schema with an object that has no type")

    def _full_name(self, schema: dict[str, Any], namespace: str) -> str:
        name = schema.get("name")
        if not isinstance(name, str) or not name:
            raise Malformed("a named type without a name")
        own = schema.get("namespace", namespace)
        own = own if isinstance(own, str) else ""
        full = name if "." in name or not own else f"{own}.{name}"
        if full in self.named or full in _PLAIN:
            raise Malformed(f"a schema that defines {full[:60]!r} twice")
        return full

    def _record(self, schema: dict[str, Any], namespace: str, depth: int) -> Record:
        name = self._full_name(schema, namespace)
        self.named[name] = None
        before = self.expanded
        listed = schema.get("fields")
        if not isinstance(listed, list):
            raise Malformed(f"the record {name[:60]!r} without fields")
        inner = name.rpartition(".")[0]
        fields = tuple(self._field(field, inner, depth) for field in listed)
        if len({field.avro_name for field in fields}) != len(fields):
            raise Malformed(f"the record {name[:60]!r} with two fields of one name")
        record = Record(fields, schema.get("logicalType") == "variant")
        self.named[name] = (record, self.expanded - before + 1)
        return record

    def _field(self, field: Any, namespace: str, depth: int) -> Field:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str) or "type" not in field:
            raise Malformed("a record with a field that has no name or type")
        original = field.get(NAME_KEY)
        doc = field.get("doc")
        return Field(
            _string(original if isinstance(original, str) and original else field["name"]),
            _string(field["name"]),
            self.node(field["type"], namespace, depth + 1),
            _id(field, "field-id"),
            doc if isinstance(doc, str) else None,
        )

    def _array(self, schema: dict[str, Any], namespace: str, depth: int) -> Node:
        item = self.node(schema.get("items"), namespace, depth + 1)
        if schema.get("logicalType") == "map" and isinstance(item, Record) and len(item.fields) == 2:
            key, value = item.fields
            return Map(_renamed(key, "key"), _renamed(value, "value"))
        return Array(Field("element", "element", item, _id(schema, "element-id")))


def _renamed(field: Field, name: str) -> Field:
    return Field(name, field.avro_name, field.node, field.field_id, field.doc)


def _string(string: str) -> str:
    """Check that Arrow can hold a string: JSON allows half a surrogate pair."""
    try:
        string.encode()
    except UnicodeEncodeError:
        raise Malformed("a schema with a name that is no Unicode text") from None
    return string


def _id(schema: dict[str, Any], key: str) -> int | None:
    """The id under ``key``, which is a JSON integer; anything else is no id."""
    value = schema.get(key)
    return value if type(value) is int and 0 <= value < 2**31 else None


def _fixed(schema: dict[str, Any]) -> Primitive:
    size = schema.get("size")
    if type(size) is not int or not 0 <= size <= MAX_FIXED:
        raise Malformed("a fixed type of impossible size")
    if schema.get("logicalType") == "uuid" and size == 16:
        return Primitive("fixed", pa.binary(16), size, name_in_metadata="uuid")
    decimal = _decimal(schema)
    if decimal is not None:
        return Primitive("fixed", decimal, size)
    return Primitive("fixed", pa.binary(size), size)


def _enum(schema: dict[str, Any]) -> Primitive:
    symbols = schema.get("symbols")
    if not isinstance(symbols, list) or not symbols or not all(isinstance(symbol, str) for symbol in symbols):
        raise Malformed("an enum without symbols")
    return Primitive("enum", pa.string(), symbols=tuple(map(_string, symbols)))


def _decimal(schema: dict[str, Any]) -> pa.DataType | None:
    """Return the decimal type of a schema; None without one, or if it is invalid (Avro: ignore)."""
    if schema.get("logicalType") != "decimal":
        return None
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or not 0 < precision <= 38:
        return None
    return pa.decimal128(precision, scale)


def _with_logical_type(plain: Node, schema: dict[str, Any]) -> Node:
    if not isinstance(plain, Primitive):
        return plain
    logical = schema.get("logicalType")
    wire = plain.wire
    if wire == "bytes" and logical == "decimal":
        decimal = _decimal(schema)
        return plain if decimal is None else Primitive("bytes", decimal)
    if wire == "int" and logical == "date":
        return Primitive("int", pa.date32())
    if wire == "int" and logical == "time-millis":
        return Primitive("int", pa.time64("us"), factor=1000)
    if wire == "long" and logical == "time-micros":
        return Primitive("long", pa.time64("us"))
    if wire != "long" or not isinstance(logical, str):
        return plain
    local = logical.startswith("local-")
    known = _TIMESTAMPS.get(logical.removeprefix("local-"))
    if known is None:
        return plain
    unit, factor = known
    zone = "UTC" if not local and schema.get("adjust-to-utc") is True else None
    return Primitive("long", pa.timestamp(unit, zone), factor=factor)


def arrow_type(node: Node) -> pa.DataType:
    """The Arrow type that a node is read as, with the ids that the file gives."""
    match node:
        case Primitive():
            return node.arrow
        case Optional():
            return arrow_type(node.inner)
        case Record():
            return pa.struct([arrow_field(field) for field in node.fields])
        case Array():
            return pa.list_(arrow_field(node.item))
        case Map():
            return pa.map_(arrow_field(node.key).with_nullable(False), arrow_field(node.value))


def arrow_field(field: Field) -> pa.Field:
    """The Arrow field that a field is read as."""
    metadata: dict[bytes, bytes] = {}
    if field.field_id is not None:
        metadata[FIELD_ID_KEY] = str(field.field_id).encode()
    if field.doc is not None:
        metadata[DOC_KEY] = field.doc.encode("utf-8", "replace")
    inner = field.node.inner if isinstance(field.node, Optional) else field.node
    if isinstance(inner, Primitive) and inner.name_in_metadata:
        metadata[TYPE_KEY] = inner.name_in_metadata.encode()
    if isinstance(inner, Record) and inner.is_variant:
        metadata[TYPE_KEY] = b"variant"
    nullable = (isinstance(field.node, Optional) and field.node.null_branch is not None) or (
        isinstance(inner, Primitive) and inner.wire == "null"
    )
    return pa.field(field.name, arrow_type(field.node), nullable=nullable, metadata=metadata or None)


@lru_cache(maxsize=128)
def arrow_schema(record: Record) -> pa.Schema:
    """The Arrow schema that a file is read as."""
    return pa.schema([arrow_field(field) for field in record.fields])
