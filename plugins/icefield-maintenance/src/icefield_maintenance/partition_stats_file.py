"""Writing partition statistics files, and their rows as sums.

Spec: "Partition Statistics File". It is a file in any data file format, with one row per partition of a snapshot.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield.abc import FileKey, FormatAbility
from icefield.engine import SUMS, PartitionSums, UnitedPartition, one_array, stats_schema
from icefield.errors import InvalidFile
from icefield.metadata import TableMetadata
from icefield.schema import schema_to_arrow
from icefield.storage import FileIO, LocationProvider

COUNTS_OF_FILES: Final = [at for at, name in enumerate(SUMS) if name.endswith(("file_count", "dv_count"))]
"""The indexes of the sums that count files."""

_COUNTS_OF_DELETES: Final = [name for name in SUMS if "delete" in name or name == "dv_count"]


def stats_table(metadata: TableMetadata, united: UnitedPartition, found: PartitionSums) -> pa.Table:
    """The rows of the file: partitions in ascending order, nulls first.

    ``total_record_count`` is only set for partitions without deletes; otherwise it is unknown without reading data.
    """
    found = found.take(np.flatnonzero((found.sums[:, COUNTS_OF_FILES] != 0).any(axis=1)))
    found = found.take(_ascending(found))
    columns: dict[str, Any] = dict(zip(SUMS, found.sums.T, strict=True))
    known = found.times >= 0
    deletes = [columns[name] for name in _COUNTS_OF_DELETES]
    unpartitioned = [spec.spec_id for spec in metadata.partition_specs if spec.is_unpartitioned]
    everywhere = columns["equality_delete_file_count"][np.isin(found.spec_ids, unpartitioned)].any()
    undeleted = (np.sum(deletes, axis=0) == 0) & ~everywhere
    columns |= {
        "partition": found.partition,
        "spec_id": found.spec_ids,
        "total_record_count": pa.array(columns["data_record_count"], mask=~undeleted),
        "last_updated_at": pa.array(found.times, mask=~known),
        "last_updated_snapshot_id": pa.array(found.snapshot_ids, mask=~known),
    }
    schema = schema_to_arrow(stats_schema(united.type, metadata.format_version))
    arrays = [_typed(columns[field.name], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_stats(
    io: FileIO, metadata: TableMetadata, location: str, file_format: str, united: UnitedPartition, rows: pa.Table
) -> tuple[int, FileKey | None]:
    """Write the file; returns its size in bytes, and its key if the table is encrypted."""
    kind = io.file_format(file_format)
    schema = stats_schema(united.type, metadata.format_version)
    file = io.create(location, native=FormatAbility.ENCRYPTS in kind.abilities)
    try:
        writer = kind.open_writer(file.sink, schema, properties=metadata.properties)
    except BaseException:
        file.sink.abort()
        raise
    with writer:
        for batch in rows.to_batches():
            writer.write(batch)
        size, _ = file.stored(writer.close().size)
    return size, file.key


def new_location(io: FileIO, metadata: TableMetadata, snapshot_id: int, file_format: str) -> str:
    """The location of a new file, named as in Java's library."""
    name = f"partition-stats-{snapshot_id}-{uuid4()}.{io.file_format(file_format).extension}"
    return LocationProvider.from_metadata(metadata).metadata_location(name)


def sums_of(rows: pa.Table, location: str) -> PartitionSums:
    """The sums from the rows of a file, to be updated incrementally. Raises ``InvalidFile`` for negative counts."""
    columns = {name: pc.fill_null(rows.column(name), 0) if name in rows.column_names else None for name in SUMS}
    none = np.zeros(len(rows), np.int64)
    sums = np.stack([none if one is None else one.to_numpy().astype(np.int64) for one in columns.values()], axis=1)
    if len(sums) and sums.min() < 0:
        raise InvalidFile(f"{location} is damaged: it states a negative count", location=location)
    times, ids = (rows.column(name) for name in ("last_updated_at", "last_updated_snapshot_id"))
    return PartitionSums(
        one_array(rows.column("partition")),
        rows.column("spec_id").to_numpy().astype(np.int64),
        sums,
        pc.fill_null(times, -1).to_numpy(),
        pc.fill_null(ids, -1).to_numpy(),
    )


def _typed(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, np.ndarray):
        values = pa.array(values)
    return values if values.type == kind else values.cast(kind)


def _ascending(found: PartitionSums) -> Any:
    """The order of the partitions, nulls first; of equal tuples the older spec comes first."""
    fields = [_sortable(found.partition.field(place)) for place in range(found.partition.type.num_fields)]
    # Each column is preceded by its validity: false (null) sorts before true.
    columns = [each for field in fields for each in (field.is_valid(), field)] + [pa.array(found.spec_ids)]
    table = pa.table(columns, names=[str(place) for place in range(len(columns))])
    return pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names]).to_numpy()


def _sortable(column: pa.Array) -> pa.Array:
    """A column that sorts in Arrow as in Iceberg: -0.0 before 0.0, NaN after all numbers."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), pa.int8())
    if not pa.types.is_floating(column.type):
        return column
    wide = column.cast(pa.float64())
    bits = pc.fill_null(wide, 0.0).to_numpy().copy().view(np.int64)
    bits[np.isnan(bits.view(np.float64))] = 0x7FF8 << 48
    ordered = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    return pa.array(ordered, mask=~wide.is_valid().to_numpy(zero_copy_only=False))
