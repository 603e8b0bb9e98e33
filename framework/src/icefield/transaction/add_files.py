"""Adds files that were written elsewhere to a table, without copying them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from os import PathLike
from typing import Any

import pyarrow as pa

from icefield.abc import FormatReader, ReadRequest
from icefield.errors import InvalidArgument
from icefield.manifest.data_file import DataFile
from icefield.metadata import TableMetadata
from icefield.metadata.metrics import Metrics, MetricsCollector, MetricsConfig, apply_modes
from icefield.metadata.properties import NAME_MAPPING_DEFAULT
from icefield.partitioning.spec import check_partition_values, normalised_key, partition_batch
from icefield.partitioning.transforms import IdentityTransform
from icefield.scan.column_projection import ColumnProjection
from icefield.schema import NameMapping, Schema, create_name_mapping, parse_name_mapping
from icefield.schema.name_mapping import carries_ids
from icefield.storage import CanonicalLocations, FileIO, given_location
from icefield.transaction.added_metrics import in_table_types
from icefield.transaction.added_names import check_names
from icefield.transaction.append import refuse_twice
from icefield.transaction.foreign_files import (
    format_of,
    refuse_deletes,
    refuse_folders,
    refuse_nulls,
    refuse_row_ids,
)
from icefield.transaction.summary import distinct_partitions
from icefield.types.arrow.types import field_id
from icefield.types.values import to_arrow_scalar, to_internal


class FileDescriber:
    """Describes files for a table's manifests: their partition, counts and bounds.

    A file with field ids is described by its footer. A file without ids gets them by name, from the table's name
    mapping or else from its schema, and is read once for its statistics. So is a file without statistics in its footer.
    """

    def __init__(self, metadata: TableMetadata, io: FileIO) -> None:
        self._metadata = metadata
        self._io = io
        self._schema = metadata.schema()
        self._config = MetricsConfig.from_properties(metadata.properties, self._schema)
        stored = metadata.properties.get(NAME_MAPPING_DEFAULT.name)
        self._mapping = create_name_mapping(self._schema) if stored is None else parse_name_mapping(stored)
        self.needs_mapping = False
        """Whether a file had no ids, so that the table needs a stored name mapping to read it."""

    @property
    def mapping(self) -> NameMapping:
        """The name mapping for files without field ids."""
        return self._mapping

    def describe(
        self,
        location: str,
        stated: Mapping[str, Any] | None = None,
        *,
        file_format: str | None = None,
        of_one_partition: bool = False,
    ) -> DataFile:
        """Describe a file as an entry of a manifest.

        ``stated``: values of columns that the file lacks and that the table has identity partition fields of; columns
        of the file take precedence. ``file_format``: the name of its format, if neither its suffix nor its first bytes
        show it. ``of_one_partition``: the file is known to hold rows of one partition, shown by its first row, and only
        rows that the table can hold.

        Raises ``InvalidArgument`` for an unknown format, rows of several partitions, row ids, position deletes, and
        folders that name values of columns that the file lacks. Raises ``InvalidFile`` if the table's columns cannot be
        read from the file, if a column would be read as another one, and for nulls in required columns;
        ``FileMissing``.
        """
        size = self._io.stat(location).size
        file_kind = format_of(self._io, location, file_format)
        source = self._io.open_input(location)
        with file_kind.open_reader(source, location, size=size) as reader:
            refuse_deletes(reader.schema, location)
            has_ids = carries_ids(reader.schema)
            self.needs_mapping |= not has_ids
            file_schema = self._mapping.apply(reader.schema)
            lacking = self._lacking(file_schema, stated or {}, location)
            if not of_one_partition:
                there = {field_id(field) for field in file_schema} | lacking.keys()
                refuse_folders(self._schema, there, location)
            mapping = None if has_ids else self._mapping
            check_names(self._metadata, mapping, reader.schema, file_schema, location)
            left = self._schema.select_ids(self._schema.field_ids - lacking.keys()) if lacking else self._schema
            metrics = _SchemaReading(left, reader, file_schema, location).metrics(has_ids)
            if not of_one_partition:
                refuse_row_ids(file_schema, metrics, location)
                rows = partial(_rows, reader, file_schema, location)
                refuse_nulls(left, file_schema, metrics, location, rows)
            partition = self._partition(reader, file_schema, location, lacking, of_one_partition)
            splits = reader.split_offsets
        encoded = apply_modes(metrics, self._config, self._schema)
        return DataFile(
            file_path=location,
            file_format=file_kind.name,
            record_count=metrics.record_count,
            file_size_in_bytes=size,
            partition=partition,
            spec_id=self._metadata.default_spec_id,
            column_sizes=encoded.column_sizes,
            value_counts=encoded.value_counts,
            null_value_counts=encoded.null_value_counts,
            nan_value_counts=encoded.nan_value_counts,
            lower_bounds=encoded.lower_bounds,
            upper_bounds=encoded.upper_bounds,
            split_offsets=tuple(splits) if splits else None,
        )

    def _lacking(self, file_schema: pa.Schema, stated: Mapping[str, Any], location: str) -> dict[int, pa.Scalar]:
        """The values of the columns that the file lacks, by field id.

        Readers take such a value from the identity partition field of the column.
        """
        there = {field_id(field) for field in file_schema}
        found: dict[int, pa.Scalar] = {}
        for name, value in stated.items():
            field = self._schema.find_field((name,))
            if field.field_id in there:
                continue
            kinds = [each.transform for each in self._metadata.spec().fields if each.source_ids == (field.field_id,)]
            if not any(isinstance(kind, IdentityTransform) for kind in kinds):
                raise InvalidArgument(
                    f"{location} has no column '{name}', and only one that the table is partitioned by as it is can "
                    "have its value stated in place of that",
                    location=location,
                )
            if value is None and field.required:
                raise InvalidArgument(f"{location}: column '{name}' is required, and null is stated", location=location)
            internal = None if value is None else to_internal(field.field_type, value)
            found[field.field_id] = to_arrow_scalar(field.field_type, internal)
        return found

    def _partition(
        self,
        reader: FormatReader,
        file_schema: pa.Schema,
        location: str,
        lacking: Mapping[int, pa.Scalar],
        is_known_to_be_one: bool,
    ) -> tuple[Any, ...]:
        """The partition of the file, from the values of its columns and the stated values of missing columns."""
        spec = self._metadata.spec()
        if spec.is_unpartitioned:
            return (None,) * len(spec.fields)
        sources = {source_id for field in spec.fields for source_id in field.source_ids}
        columns = self._schema.select_ids(sources - lacking.keys())
        constants = {str(self._schema.find_column_name(id_)): value for id_, value in lacking.items()}
        batches: Iterable[pa.RecordBatch] = [pa.record_batch({"": [None]})]  # a row for constants alone
        if columns.fields:
            batches = _SchemaReading(columns, reader, file_schema, location).batches()
        if is_known_to_be_one:
            batches = (batch.slice(0, 1) for batch in islice(batches, 1))
        found: dict[Any, tuple[Any, ...]] = {}
        for batch in batches:
            for name, value in constants.items():
                batch = batch.append_column(name, pa.repeat(value, batch.num_rows))
            values = partition_batch(spec, self._schema, batch)
            check_partition_values(spec, values)
            partitions = distinct_partitions(values)
            found.update((normalised_key(values), values) for values in partitions)
            if len(found) > 1:
                one, other = list(found.values())[:2]
                raise InvalidArgument(
                    f"{location} holds rows of several partitions, {one} and {other}, and a file is in one; write "
                    "its rows with append instead",
                    location=location,
                )
        return next(iter(found.values()), (None,) * len(spec.fields))


class _SchemaReading:
    """A file read under (a part of) the table's schema."""

    def __init__(self, schema: Schema, reader: FormatReader, file_schema: pa.Schema, location: str) -> None:
        self._reader = reader
        self._schema = schema
        self._file_schema = file_schema
        # Resolved at once: a file that cannot be read under the table's schema must not be added.
        self._projection = ColumnProjection.resolve(schema, file_schema, location=location)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of the file."""
        for batch in self._reader.read(ReadRequest(columns=self._projection.file_columns)):
            yield self._projection.apply(batch)

    def metrics(self, has_ids: bool) -> Metrics:
        """The statistics of the file by the table's field ids."""
        if has_ids:
            stated = self._reader.metrics()
            if stated.value_counts or not stated.record_count:
                return in_table_types(stated, self._file_schema, self._schema)
        collector = MetricsCollector(self._projection.schema)
        for batch in self.batches():
            collector.update(batch)
        return collector.metrics()


def _rows(reader: FormatReader, file_schema: pa.Schema, location: str, schema: Schema) -> Iterator[pa.RecordBatch]:
    return _SchemaReading(schema, reader, file_schema, location).batches()


def distinct_locations(
    io: FileIO, place: str, locations: Iterable[str | PathLike[str]] | str | PathLike[str]
) -> list[str]:
    """The locations as a list, for a table at ``place``. Raises ``InvalidArgument`` when two are one file."""
    found = [given_location(each) for each in ([locations] if isinstance(locations, str | PathLike) else locations)]
    refuse_twice(CanonicalLocations(io, place, follows_links=True), found)
    return found
