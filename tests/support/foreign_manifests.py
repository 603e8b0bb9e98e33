"""Manifests as other writers make them: of any fields, names and order, written by fastavro."""

from __future__ import annotations

import io as _io
from typing import Any

import fastavro
from icefield.abc import PutMode
from icefield.manifest import ManifestEntries, ManifestFile, read_manifest
from planned_tables import PlannedTable


def map_of(key_id: int, value: str) -> dict[str, Any]:
    return {
        "type": "array",
        "logicalType": "map",
        "items": {
            "type": "record",
            "name": f"k{key_id}_v{key_id + 1}",
            "fields": [
                {"name": "key", "type": "int", "field-id": key_id},
                {"name": "value", "type": value, "field-id": key_id + 1},
            ],
        },
    }


FILE_FIELDS: dict[str, tuple[int, Any]] = {
    "content": (134, "int"),
    "file_path": (100, "string"),
    "file_format": (101, "string"),
    "partition": (102, {"type": "record", "name": "r102", "fields": []}),
    "record_count": (103, "long"),
    "file_size_in_bytes": (104, "long"),
}
ENTRY_FIELDS: dict[str, tuple[int, Any]] = {
    "status": (0, "int"),
    "snapshot_id": (1, ["null", "long"]),
    "sequence_number": (3, ["null", "long"]),
    "file_sequence_number": (4, ["null", "long"]),
}


def avro_field(name: str, number: int, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": number}


class Foreign:
    """A manifest that fastavro writes, of any fields."""

    def __init__(self, made: PlannedTable, entry: dict[str, Any] | None = None, file: dict[str, Any] | None = None):
        self.made = made
        self.entry = ENTRY_FIELDS if entry is None else entry
        self.file = FILE_FIELDS if file is None else file
        self.header = {"format-version": "2", "content": "data"}

    def row(self, name: str, status: int = 1, **given: Any) -> dict[str, Any]:
        values = {"status": status, "snapshot_id": None, "sequence_number": None, "file_sequence_number": None}
        data = {
            "content": 0,
            "file_path": self.made.path(name),
            "file_format": "PARQUET",
            "partition": {},
            "record_count": 10,
            "file_size_in_bytes": 100,
        }
        values.update({k: v for k, v in given.items() if k in self.entry})
        data.update({k: v for k, v in given.items() if k not in self.entry})
        return {**{k: v for k, v in values.items() if k in self.entry}, "data_file": data}

    def write(self, rows: list[dict[str, Any]], codec: str = "deflate", **manifest: Any) -> ManifestFile:
        record = {"type": "record", "name": "r2", "fields": [avro_field(k, *v) for k, v in self.file.items()]}
        schema = {
            "type": "record",
            "name": "manifest_entry",
            "fields": [*(avro_field(k, *v) for k, v in self.entry.items()), avro_field("data_file", 2, record)],
        }
        out = _io.BytesIO()
        fastavro.writer(out, schema, rows, codec=codec, metadata=self.header)
        return put(self.made, out.getvalue(), **manifest)


def put(made: PlannedTable, data: bytes, **given: Any) -> ManifestFile:
    made._files += 1
    location = made.path(f"metadata/foreign-{made._files}.avro")
    made.io.put(location, data, PutMode.CREATE)
    return ManifestFile(
        **{
            "manifest_path": location,
            "manifest_length": len(data),
            "added_snapshot_id": 1000,
            "sequence_number": 7,
            "min_sequence_number": 1,
            **given,
        }
    )


def read(made: PlannedTable, manifest: ManifestFile, **given: Any) -> ManifestEntries:
    spec_of = next(one for one in made.specs if one.spec_id == manifest.partition_spec_id)
    return read_manifest(made.io, manifest, spec_of.partition_type(made.schema, made.schemas), **given)
