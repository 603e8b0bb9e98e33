"""Reading and writing of partition statistics files.

Spec: "Partition Statistics File". It is a file in any data file format, with one row per partition of a snapshot.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.abc import ReadRequest
from icefield.errors import InvalidArgument, InvalidFile, UnsupportedFeature
from icefield.metadata import PartitionStatisticsFile, TableMetadata
from icefield.scan.column_projection import ColumnProjection
from icefield.scan.partition_sums import SUMS, PartitionSums
from icefield.scan.united_partition import UnitedPartition
from icefield.schema import Schema, schema_to_arrow
from icefield.storage import FileIO, LocationProvider
from icefield.types import IntegerType, LongType, NestedField, StructType
from icefield.types.arrow.pieces import one_array

_PARTITION_ID: Final = 1
_DELETES: Final = {
    "position_delete_record_count": (6, LongType()),
    "position_delete_file_count": (7, IntegerType()),
    "dv_count": (13, IntegerType()),
    "equality_delete_record_count": (8, LongType()),
    "equality_delete_file_count": (9, IntegerType()),
}


def united_partition(metadata: TableMetadata) -> UnitedPartition:
    """The partition tuples of all specs of a table. Raises ``InvalidArgument`` for a table without partition fields."""
    schema, older = metadata.schema(), list(metadata.schemas)
    types = {spec.spec_id: spec.partition_type(schema, older) for spec in metadata.partition_specs}
    united = UnitedPartition(metadata.partition_specs, types)
    if not united.type.fields:
        raise InvalidArgument(
            "partition statistics are of tables with partitions, and no partition spec of this one has a field; "
            "inspect.partitions() counts its files, and compute_table_stats() the distinct values of its columns"
        )
    return united


def stats_schema(partition: StructType, format_version: int) -> Schema:
    """The columns of the file. Before version 3 deletes are optional, and there is no ``dv_count``."""
    deletes = [
        NestedField(number, name, kind, required=True, initial_default=0, write_default=0)
        if format_version >= 3
        else NestedField(number, name, kind)
        for name, (number, kind) in _DELETES.items()
        if format_version >= 3 or name != "dv_count"
    ]
    return Schema(
        NestedField(_PARTITION_ID, "partition", partition, required=True),
        NestedField(2, "spec_id", IntegerType(), required=True),
        NestedField(3, "data_record_count", LongType(), required=True),
        NestedField(4, "data_file_count", IntegerType(), required=True),
        NestedField(5, "total_data_file_size_in_bytes", LongType(), required=True),
        *deletes,
        NestedField(10, "total_record_count", LongType()),
        NestedField(11, "last_updated_at", LongType()),
        NestedField(12, "last_updated_snapshot_id", LongType()),
    )


def stats_table(metadata: TableMetadata, united: UnitedPartition, found: PartitionSums) -> pa.Table:
    """The rows of the file: partitions in ascending order, nulls first.

    ``total_record_count`` is only set for partitions without deletes; otherwise it is unknown without reading data.
    """
    found = found.take(np.flatnonzero(found.has_files))
    found = found.take(_ascending(found))
    columns: dict[str, Any] = dict(zip(SUMS, found.sums.T, strict=True))
    known = found.times >= 0
    deletes = [columns[name] for name in _DELETES]
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
) -> int:
    """Write the file; returns its size in bytes."""
    kind = io.file_format(file_format)
    schema = stats_schema(united.type, metadata.format_version)
    sink = io.open_output(location)
    try:
        writer = kind.open_writer(sink, schema, properties=metadata.properties)
    except BaseException:
        sink.abort()
        raise
    with writer:
        for batch in rows.to_batches():
            writer.write(batch)
        return writer.close().size


def new_location(io: FileIO, metadata: TableMetadata, snapshot_id: int, file_format: str) -> str:
    """The location of a new file, named as in Java's library."""
    name = f"partition-stats-{snapshot_id}-{uuid4()}.{io.file_format(file_format).extension}"
    return LocationProvider.from_metadata(metadata).metadata_location(name)


def read_stats(io: FileIO, metadata: TableMetadata, file: PartitionStatisticsFile) -> pa.Table:
    """The rows of a file with the current columns and the table's current partition fields.

    Raises ``InvalidFile`` for damage, ``FileMissing``, and ``UnsupportedFeature`` if the file name has no format
    suffix.
    """
    location = file.statistics_path
    schema = stats_schema(united_partition(metadata).type, metadata.format_version)
    name = location.rpartition("/")[2].rpartition(".")[2].lower()
    if not name.isalnum():
        raise UnsupportedFeature(f"the name of {location} does not tell its format", location=location)
    size = file.file_size_in_bytes if file.file_size_in_bytes > 0 else None
    batches = []
    with io.file_format(name).open_reader(io.open_input(location), location, size=size) as reader:
        projection = ColumnProjection.resolve(schema, reader.schema, location=location)
        for batch in reader.read(ReadRequest(projection.file_columns)):
            batches.append(projection.apply(batch))
    rows = pa.Table.from_batches(batches, schema=schema_to_arrow(schema))
    for at, field in enumerate(rows.schema):
        if field.nullable or not rows.column(at).null_count:
            continue
        if field.name not in _DELETES:
            raise InvalidFile(f"{location} is damaged: a partition has no {field.name}", location=location)
        # Before version 3 the delete columns are optional.
        rows = rows.set_column(at, field, pc.fill_null(rows.column(at), 0))
    return rows


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
