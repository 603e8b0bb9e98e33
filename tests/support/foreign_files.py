"""Data files of programs that do not know Iceberg: with names of columns, but without field ids."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import fastavro
import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
from icefield.builtin.memory import MemoryFileSystem

FORMATS = ("parquet", "avro", "orc")


def foreign_file(file_format: str, table: pa.Table) -> str:
    """Write a table as a file without ids; its location in memory."""
    location = f"memory://foreign/{uuid4().hex}.{file_format}"
    with MemoryFileSystem().open_output(location) as out:
        out.write(_WRITERS[file_format](table))
    return location


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def _orc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    po.write_table(table, sink)
    return bytes(sink.getvalue())


def _avro(table: pa.Table) -> bytes:
    schema = {"type": "record", "name": "root", "fields": [_avro_field(field) for field in table.schema]}
    out = io.BytesIO()
    fastavro.writer(out, schema, [_avro_value(row) for row in table.to_pylist()])
    return out.getvalue()


def _avro_field(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": ["null", _avro_type(field.type)], "default": None}


def _avro_type(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        fields = [_avro_field(kind.field(at)) for at in range(kind.num_fields)]
        return {"type": "record", "name": f"r{uuid4().hex}", "fields": fields}
    if pa.types.is_map(kind):
        return {"type": "map", "values": ["null", _avro_type(kind.item_type)]}
    if pa.types.is_list(kind):
        return {"type": "array", "items": ["null", _avro_type(kind.value_type)]}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    return _AVRO_TYPES[kind]


def _avro_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _avro_value(held) for name, held in value.items()}
    if isinstance(value, list):
        pairs = bool(value) and all(isinstance(item, tuple) for item in value)
        return {key: _avro_value(held) for key, held in value} if pairs else [_avro_value(item) for item in value]
    return value


_AVRO_TYPES: dict[pa.DataType, Any] = {
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.bool_(): "boolean",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}
_WRITERS: dict[str, Callable[[pa.Table], bytes]] = {"parquet": _parquet, "avro": _avro, "orc": _orc}
