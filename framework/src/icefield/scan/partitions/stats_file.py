"""Partition statistics files: their columns, and reading them.

Spec: "Partition Statistics File". It is a file in any data file format, with one row per partition of a snapshot.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from icefield.abc import FormatAbility, InputFile, ReadRequest
from icefield.base import compute as pc
from icefield.errors import InvalidArgument, InvalidFile, UnsupportedFeature
from icefield.metadata import PartitionStatisticsFile, TableMetadata
from icefield.scan.columns.projection import ColumnProjection
from icefield.scan.partitions.united import UnitedPartition
from icefield.schema import Schema, schema_to_arrow
from icefield.storage import FileIO
from icefield.types import IntegerType, LongType, NestedField, StructType

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
    united = UnitedPartition.of(metadata)
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


def open_statistics(io: FileIO, metadata: TableMetadata, location: str, *, native: bool = False) -> InputFile:
    """Open a file of statistics; it is encrypted if the table has a key of its location. Raises as ``open_input``."""
    if not metadata.encryption_keys.has(location):
        return io.open_input(location)
    key = io.encryption.stored_key(metadata, location)
    return io.open_input(location, io.encryption.key_metadata(key), native=native)


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
    kind, batches = io.file_format(name), []
    native = FormatAbility.ENCRYPTS in kind.abilities
    source = open_statistics(io, metadata, location, native=native)
    is_stream = not native and metadata.encryption_keys.has(location)
    size = source.size if is_stream or file.file_size_in_bytes <= 0 else file.file_size_in_bytes
    with kind.open_reader(source, location, size=size) as reader:
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
