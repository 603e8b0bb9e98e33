"""Describes files that were written elsewhere, so that a table takes them without a copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa
from icefield import FileIO, Schema
from icefield.abc import FormatReader, ReadRequest
from icefield.engine import (
    NAME_MAPPING_DEFAULT,
    IncompatibleType,
    apply_modes,
    carries_ids,
    check_partition_values,
    constant_array,
    conversion,
    distinct_partitions,
    normalised_key,
    partition_batch,
    to_arrow_scalar,
    to_internal,
)
from icefield.errors import IcefieldError, InvalidArgument
from icefield.manifest import DataFile
from icefield.metadata import TableMetadata
from icefield.scan import ColumnProjection
from icefield.schema import create_name_mapping, parse_name_mapping
from icefield.toolkit import (
    Metrics,
    MetricsCollector,
    MetricsConfig,
    child_fields,
    field_id,
    from_arrow_scalar,
    from_arrow_type,
    to_arrow_type,
)
from icefield.types import IcebergType

from icefield_import.checks import (
    format_of,
    refuse_deletes,
    refuse_folders,
    refuse_nulls,
    refuse_row_ids,
)
from icefield_import.names import check_names


class FileDescriber:
    """Describes files for a table's manifests: their partition, counts and bounds.

    A file with field ids is described by its footer. A file without ids gets them by name, from the table's name
    mapping or else from its schema, and is read once for its statistics. So is a file without statistics in its footer.
    """

    def __init__(self, metadata: TableMetadata, io: FileIO) -> None:
        self._metadata = metadata
        self._io = io
        self._schema = metadata.schema()
        self._config = MetricsConfig.from_properties(
            metadata.properties, self._schema, metadata.sort_order().ordered_ids
        )
        stored = metadata.properties.get(NAME_MAPPING_DEFAULT.name)
        self.mapping = create_name_mapping(self._schema) if stored is None else parse_name_mapping(stored)
        """The name mapping for files without field ids."""
        self.needs_mapping = False
        """Whether a file had no ids, so that the table needs a stored name mapping to read it."""

    def describe(
        self,
        location: str,
        stated: Mapping[str, Any] | None = None,
        *,
        file_format: str | None = None,
        of_one_partition: bool = False,
    ) -> DataFile:
        """Describe a file as an entry of a manifest.

        ``stated``: values of columns that the file lacks; the table has an identity partition field for each of them.
        Columns of the file take precedence. ``file_format``: the name of its format, if neither its suffix nor its
        first bytes show it. ``of_one_partition``: the file is known to hold rows of one partition, shown by its first
        row, and only rows that the table can hold.

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
            if not has_ids:  # several threads may describe files
                self.needs_mapping = True
            file_schema = self.mapping.apply(reader.schema)
            lacking = self._lacking(file_schema, stated or {}, location)
            if not of_one_partition:
                there = {field_id(field) for field in file_schema} | lacking.keys()
                refuse_folders(self._schema, there, location)
            mapping = None if has_ids else self.mapping
            check_names(self._metadata, mapping, reader.schema, file_schema, location)
            left = self._schema.select_ids(self._schema.field_ids - lacking.keys()) if lacking else self._schema
            rows = _ForeignRows(reader, file_schema, location)
            metrics = rows.metrics(left, has_ids)
            if not of_one_partition:
                refuse_row_ids(file_schema, metrics, location)
                refuse_nulls(left, file_schema, metrics, location, rows.under)
            partition = self._partition(rows, lacking, of_one_partition)
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
            if "identity" not in map(str, kinds):
                raise InvalidArgument(
                    f"{location} has no column '{name}', and only one that the table is partitioned by as it is can "
                    "have its value stated in place of that",
                    location=location,
                )
            if value is None and field.required:
                raise InvalidArgument(f"{location}: column '{name}' is required, and null is stated", location=location)
            try:
                internal = None if value is None else to_internal(field.field_type, value)
            except InvalidArgument as error:
                raise InvalidArgument(
                    f"{location} lacks column '{name}', and the value for it does not fit: {error}",
                    location=location,
                    field_id=field.field_id,
                ) from None
            found[field.field_id] = to_arrow_scalar(field.field_type, internal)
        return found

    def _partition(
        self, rows: _ForeignRows, lacking: Mapping[int, pa.Scalar], is_known_to_be_one: bool
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
            batches = rows.under(columns)
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
                    f"{rows.location} holds rows of several partitions, {one} and {other}, and a file is in one; write "
                    "its rows with append instead",
                    location=rows.location,
                )
        return next(iter(found.values()), (None,) * len(spec.fields))


class _ForeignRows:
    """The rows of an open file, read under (a part of) the table's schema."""

    def __init__(self, reader: FormatReader, schema: pa.Schema, location: str) -> None:
        """``schema`` is the schema of the file, with field ids."""
        self._reader = reader
        self._schema = schema
        self.location = location

    def under(self, schema: Schema) -> Iterator[pa.RecordBatch]:
        """The rows. Raises at once if they cannot be read under the schema."""
        return self._read(ColumnProjection.resolve(schema, self._schema, location=self.location))

    def metrics(self, schema: Schema, has_ids: bool) -> Metrics:
        """The statistics by the table's field ids. Raises if the rows cannot be read under the schema."""
        projection = ColumnProjection.resolve(schema, self._schema, location=self.location)
        if has_ids:
            stated = self._reader.metrics()
            if stated.value_counts or not stated.record_count:
                return in_table_types(stated, self._schema, schema)
        collector = MetricsCollector(projection.schema)
        for batch in self._read(projection):
            collector.update(batch)
        return collector.metrics()

    def _read(self, projection: ColumnProjection) -> Iterator[pa.RecordBatch]:
        for batch in self._reader.read(ReadRequest(columns=projection.file_columns)):
            yield projection.apply(batch)


def in_table_types(metrics: Metrics, file_schema: pa.Schema, schema: Schema) -> Metrics:
    """Metrics with bounds as values of the table's types.

    A file may hold a type that the table's type was promoted from, or another unit of time: a number of days bounds no
    microseconds. Bounds that do not convert are left out.
    """
    held = dict(_types_by_id(file_schema))
    lower, upper = dict(metrics.lower_bounds), dict(metrics.upper_bounds)
    for id_ in metrics.lower_bounds.keys() | metrics.upper_bounds.keys():
        field = schema.id_to_field.get(id_)
        if field is None or id_ not in held:
            continue
        try:
            kind = from_arrow_type(held[id_])
            if kind == field.field_type:
                continue
            bounds = [_converted(kind, field.field_type, each.get(id_)) for each in (lower, upper)]
        except (IcefieldError, IncompatibleType, pa.ArrowException):
            bounds = [None, None]
        for each, bound in zip((lower, upper), bounds, strict=True):
            each[id_] = bound
    return replace(metrics, lower_bounds=_present(lower), upper_bounds=_present(upper))


def _types_by_id(fields: Iterable[pa.Field]) -> Iterator[tuple[int, pa.DataType]]:
    """The Arrow types of a file's columns and of the fields of its structs."""
    for field in fields:
        id_ = field_id(field)
        if pa.types.is_struct(field.type):
            yield from _types_by_id(child_fields(field.type))
        elif id_ is not None:
            yield id_, field.type


def _converted(kind: IcebergType, wanted: IcebergType, value: Any) -> Any:
    convert = conversion(wanted, to_arrow_type(kind))
    array = constant_array(kind, value, 1)
    return from_arrow_scalar(wanted, (array if convert is None else convert(array))[0])


def _present(bounds: dict[int, Any]) -> dict[int, Any]:
    return {id_: bound for id_, bound in bounds.items() if bound is not None}
