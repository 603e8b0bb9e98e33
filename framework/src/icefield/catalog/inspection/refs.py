"""The table of branches and tags."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from icefield.catalog.inspection.source import Source

SCHEMA: Final = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("max_reference_age_in_ms", pa.int64()),
        pa.field("min_snapshots_to_keep", pa.int32()),
        pa.field("max_snapshot_age_in_ms", pa.int64()),
    ]
)


def refs_table(source: Source) -> pa.Table:
    """One row a branch or tag."""
    return pa.Table.from_pylist(
        [
            {
                "name": name,
                "type": ref.type.value.upper(),
                "snapshot_id": ref.snapshot_id,
                "max_reference_age_in_ms": ref.max_ref_age_ms,
                "min_snapshots_to_keep": ref.min_snapshots_to_keep,
                "max_snapshot_age_in_ms": ref.max_snapshot_age_ms,
            }
            for name, ref in source.metadata.refs.items()
        ],
        schema=SCHEMA,
    )
