"""Tables for planning tests: metadata, manifest lists and manifests in memory, and no data files."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from icefield.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestFile,
    ManifestList,
    ManifestWriter,
    read_manifest_list,
    write_manifest_list,
)
from icefield.metadata import TableMetadata, decode_metadata
from icefield.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from icefield.partitioning.spec import spec_to_json
from icefield.partitioning.transforms import parse_transform
from icefield.plugins import Plugins
from icefield.scan import TableScan
from icefield.schema import Schema, schema_to_json
from icefield.storage import FileIO
from icefield.types import NestedField, parse_type
from icefield.types.values import value_to_bytes

SCHEMA = Schema(
    NestedField(1, "id", parse_type("long")),
    NestedField(2, "name", parse_type("string")),
    NestedField(3, "ts", parse_type("timestamp")),
    NestedField(4, "score", parse_type("double")),
)


def spec(*fields: tuple[int, str, str], spec_id: int = 0, first_id: int = 1000) -> PartitionSpec:
    """A spec of fields (source id, transform, name)."""
    built = [
        PartitionField(source, first_id + position, parse_transform(transform), name)
        for position, (source, transform, name) in enumerate(fields)
    ]
    return PartitionSpec(*built, spec_id=spec_id)


class CountingIO(FileIO):
    """Counts opened files, and refuses to list."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.opened: list[str] = []

    def open_input(self, location: str, *key: Any, **given: Any) -> Any:
        self.opened.append(location)
        return super().open_input(location, *key, **given)

    def list_files(self, prefix: str, *, shallow: bool = False) -> Any:
        raise AssertionError("nothing may be listed")

    def stat(self, location: str) -> Any:
        raise AssertionError("nothing may be asked of a file")


class PlannedTable:
    """Grows snapshot by snapshot: ``add`` writes a manifest and ``commit`` a snapshot of all manifests so far."""

    def __init__(
        self,
        schema: Schema = SCHEMA,
        specs: Sequence[PartitionSpec] = (UNPARTITIONED,),
        format_version: int = 2,
        io: FileIO | None = None,
        location: str | None = None,
    ) -> None:
        self.schema = schema
        self.schemas = [schema]
        self.specs = list(specs)
        self.version = format_version
        self.io = io or CountingIO(Plugins.installed())
        self.location = location or f"memory://planned/{uuid.uuid4()}"
        self.manifests: list[ManifestFile] = []
        self.snapshots: list[dict[str, Any]] = []
        self.log: list[dict[str, Any]] = []
        self.refs: dict[str, dict[str, Any]] = {}
        self.properties: dict[str, str] = {}
        self.next_row_id = 0
        self._files = 0

    def path(self, name: str) -> str:
        return f"{self.location}/{name}"

    def file(self, name: str | None = None, partition: tuple[Any, ...] = (), **given: Any) -> DataFile:
        """A data file; ``bounds={"id": (1, 9)}`` and ``nulls={"id": 0}`` stand for its statistics."""
        self._files += 1
        bounds, nulls = given.pop("bounds", {}), given.pop("nulls", {})
        count = given.setdefault("record_count", 100)
        fields = {key: self.schema.find_field(key) for key in {*bounds, *nulls}}
        statistics = {
            "lower_bounds": {fields[k].field_id: value_to_bytes(fields[k].field_type, v[0]) for k, v in bounds.items()},
            "upper_bounds": {fields[k].field_id: value_to_bytes(fields[k].field_type, v[1]) for k, v in bounds.items()},
            "value_counts": {field.field_id: count for field in fields.values()},
            "null_value_counts": {field.field_id: nulls.get(key, 0) for key, field in fields.items()},
        }
        return DataFile(
            **{
                "file_path": self.path(f"data/{name or self._files}.parquet"),
                "file_format": "parquet",
                "file_size_in_bytes": 1000 + self._files,
                "partition": partition,
                **statistics,
                **given,
            }
        )

    def write(
        self,
        files: Iterable[DataFile] = (),
        *,
        snapshot_id: int | None = None,
        data_sequence_number: int | None = None,
        deleted: Iterable[str] = (),
    ) -> ManifestFile:
        """Write one manifest of files of one spec and content."""
        files = list(files)
        spec_id = files[0].spec_id if files else 0
        data = not files or files[0].content is DataFileContent.DATA
        spec_of = next(one for one in self.specs if one.spec_id == spec_id)
        with ManifestWriter(
            self.io,
            self.path(f"metadata/{uuid.uuid4()}-m0.avro"),
            spec_of,
            self.schema,
            self.version,
            snapshot_id or self.next_snapshot_id,
            ManifestContent.DATA if data else ManifestContent.DELETES,
        ) as writer:
            writer.add(files, data_sequence_number=data_sequence_number)
        return writer.close()

    def add(self, files: Iterable[DataFile], **given: Any) -> ManifestFile:
        """Write one manifest for the next snapshot."""
        manifest = self.write(files, **given)
        self.manifests.append(manifest)
        return manifest

    @property
    def next_snapshot_id(self) -> int:
        return 1000 + len(self.snapshots)

    @property
    def next_sequence_number(self) -> int:
        return len(self.snapshots) + 1 if self.version > 1 else 0

    def commit(self, *, timestamp_ms: int | None = None, **given: Any) -> int:
        """Write the manifest list of a snapshot with all manifests so far, and return the snapshot's id."""
        snapshot_id, number = self.next_snapshot_id, self.next_sequence_number
        self.manifests = [manifest.assigned(snapshot_id, number) for manifest in self.manifests]
        location = self.path(f"metadata/snap-{snapshot_id}-{uuid.uuid4()}.avro")
        written, next_row_id = write_manifest_list(
            self.io,
            location,
            self.manifests,
            format_version=self.version,
            snapshot_id=snapshot_id,
            parent_snapshot_id=self.snapshots[-1]["snapshot-id"] if self.snapshots else None,
            sequence_number=number,
            first_row_id=self.next_row_id if self.version > 2 else None,
        )
        if next_row_id is not None:
            self.manifests, self.next_row_id = list(written.manifests), next_row_id
        self.add_snapshot(location, timestamp_ms=timestamp_ms, **given)
        return snapshot_id

    def add_snapshot(self, manifest_list: str | None, *, timestamp_ms: int | None = None, **given: Any) -> None:
        snapshot = {
            "snapshot-id": self.next_snapshot_id,
            "timestamp-ms": timestamp_ms or 1_700_000_000_000 + len(self.snapshots),
            "summary": {"operation": "append"},
            "schema-id": self.schema.schema_id,
            **({"manifest-list": manifest_list} if manifest_list else {}),
            **({"sequence-number": self.next_sequence_number} if self.version > 1 else {}),
            **({"first-row-id": 0, "added-rows": 0} if self.version > 2 else {}),
            **given,
        }
        self.snapshots.append(snapshot)
        self.log.append({"snapshot-id": snapshot["snapshot-id"], "timestamp-ms": snapshot["timestamp-ms"]})
        self.refs["main"] = {"snapshot-id": snapshot["snapshot-id"], "type": "branch"}

    @property
    def metadata(self) -> TableMetadata:
        document: dict[str, Any] = {
            "format-version": self.version,
            "table-uuid": "00000000-0000-0000-0000-000000000001",
            "location": self.location,
            "last-updated-ms": 1_800_000_000_000,
            "last-column-id": max(schema.highest_field_id for schema in self.schemas),
            "schemas": [schema_to_json(schema) for schema in self.schemas],
            "current-schema-id": self.schema.schema_id,
            "partition-specs": [spec_to_json(one) for one in self.specs],
            "default-spec-id": self.specs[-1].spec_id,
            "last-partition-id": max(one.last_assigned_field_id for one in self.specs),
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": self.properties,
            "current-snapshot-id": self.snapshots[-1]["snapshot-id"] if self.snapshots else None,
            "snapshots": self.snapshots,
            "snapshot-log": self.log,
            "refs": self.refs,
        }
        if self.version > 1:
            document["last-sequence-number"] = self.next_sequence_number - 1
        if self.version == 1:
            document["schema"] = schema_to_json(self.schema)
            document["partition-spec"] = spec_to_json(self.specs[-1])["fields"]
        if self.version > 2:
            document["next-row-id"] = self.next_row_id
        return decode_metadata(json.dumps(document).encode(), self.path("metadata/v1.metadata.json"))

    def scan(self, row_filter: Any = "true", **given: Any) -> TableScan:
        return TableScan(metadata=self.metadata, io=self.io, row_filter=row_filter, **given)

    def manifest_list(self) -> ManifestList:
        metadata = self.metadata
        snapshot = metadata.current_snapshot()
        assert snapshot is not None
        return read_manifest_list(self.io, snapshot, metadata)

    def planned(self, row_filter: Any = "true", **given: Any) -> list[str]:
        """The names of the planned files, without folder and suffix."""
        return [name_of(task.file.file_path) for task in self.scan(row_filter, **given).plan_files()]


def name_of(path: str) -> str:
    return path.rsplit("/", 1)[1].removesuffix(".parquet")
