"""The table of manifests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from icefield.catalog.inspection.source import Source
from icefield.errors import InvalidArgument
from icefield.manifest import FieldSummary, ManifestContent, ManifestFile
from icefield.metadata.snapshots import Snapshot
from icefield.partitioning.transforms import Transform
from icefield.types import NestedField
from icefield.types.values import from_bytes

_SUMMARY: Final = pa.struct(
    [
        pa.field("contains_null", pa.bool_(), nullable=False),
        pa.field("contains_nan", pa.bool_()),
        pa.field("lower_bound", pa.string()),
        pa.field("upper_bound", pa.string()),
    ]
)
_COUNTS: Final = ("added", "existing", "deleted")
SCHEMA: Final = pa.schema(
    [
        pa.field("content", pa.int8(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("partition_spec_id", pa.int32(), nullable=False),
        pa.field("added_snapshot_id", pa.int64(), nullable=False),
        *(pa.field(f"{count}_data_files_count", pa.int32(), nullable=False) for count in _COUNTS),
        *(pa.field(f"{count}_delete_files_count", pa.int32(), nullable=False) for count in _COUNTS),
        pa.field("partition_summaries", pa.list_(_SUMMARY), nullable=False),
    ]
)
ALL_SCHEMA: Final = SCHEMA.append(pa.field("reference_snapshot_id", pa.int64(), nullable=False)).append(
    pa.field("key_metadata", pa.binary())
)


def manifests_table(source: Source, snapshots: Sequence[Snapshot | None], *, every: bool = False) -> pa.Table:
    """One row a manifest of each snapshot; with ``every``, each with the snapshot that refers to it."""
    rows = []
    for snapshot in snapshots:
        for manifest in source.manifests(snapshot):
            row = _row(source, manifest)
            if every and snapshot is not None:
                row |= {"reference_snapshot_id": snapshot.snapshot_id, "key_metadata": manifest.key_metadata}
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=ALL_SCHEMA if every else SCHEMA)


def _row(source: Source, manifest: ManifestFile) -> dict[str, Any]:
    counts = (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count)
    data = manifest.content is ManifestContent.DATA
    row: dict[str, Any] = {
        "content": int(manifest.content),
        "path": manifest.manifest_path,
        "length": manifest.manifest_length,
        "partition_spec_id": manifest.partition_spec_id,
        "added_snapshot_id": manifest.added_snapshot_id,
        "partition_summaries": _summaries(source, manifest),
    }
    for name, count in zip(_COUNTS, counts, strict=True):
        row[f"{name}_data_files_count"] = (count or 0) if data else 0
        row[f"{name}_delete_files_count"] = 0 if data else (count or 0)
    return row


def _summaries(source: Source, manifest: ManifestFile) -> list[dict[str, Any]]:
    spec = source.metadata.spec_by_id(manifest.partition_spec_id)
    fields = source.partition_type(manifest.partition_spec_id).fields
    rows = []
    for position, (field, summary) in enumerate(zip(fields, manifest.partitions or (), strict=False)):
        transform = spec.fields[position].transform

        lower, upper = (_shown(bound, field, transform) for bound in (summary.lower_bound, summary.upper_bound))
        rows.append(_summary(summary, lower, upper))
    return rows


def _shown(bound: bytes | None, field: NestedField, transform: Transform) -> str | None:
    """A bound as people read it; None for one that is no value of its type, which is unknown to plans as well."""
    if bound is None:
        return None
    try:
        return transform.to_display(field.field_type, from_bytes(field.field_type, bound))
    except InvalidArgument:
        return None


def _summary(summary: FieldSummary, lower: str | None, upper: str | None) -> dict[str, Any]:
    return {
        "contains_null": summary.contains_null,
        "contains_nan": summary.contains_nan,
        "lower_bound": lower,
        "upper_bound": upper,
    }
