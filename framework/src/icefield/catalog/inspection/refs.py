"""The table of branches and tags."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from icefield.catalog.inspection.metadata_table import RowsTable
from icefield.catalog.inspection.source import MetadataSource

_SCHEMA: Final = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("max_reference_age_in_ms", pa.int64()),
        pa.field("min_snapshots_to_keep", pa.int32()),
        pa.field("max_snapshot_age_in_ms", pa.int64()),
    ]
)


class RefsTable(RowsTable):
    """One row per branch or tag."""

    schema = _SCHEMA

    def __init__(self, source: MetadataSource) -> None:
        self._metadata = source.metadata

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "type": ref.type.value.upper(),
                "snapshot_id": ref.snapshot_id,
                "max_reference_age_in_ms": ref.max_ref_age_ms,
                "min_snapshots_to_keep": ref.min_snapshots_to_keep,
                "max_snapshot_age_in_ms": ref.max_snapshot_age_ms,
            }
            for name, ref in self._metadata.refs.items()
        ]
