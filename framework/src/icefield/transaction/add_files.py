"""Taking files that were written elsewhere into a table, without copying them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from os import PathLike
from typing import Any

import pyarrow as pa

from icefield.abc import FormatReader, ReadRequest
from icefield.errors import InvalidArgument, MissingPlugin
from icefield.manifest.data_file import DataFile
from icefield.metadata import TableMetadata
from icefield.metadata.metrics import Metrics, MetricsCollector, MetricsConfig, apply_modes
from icefield.metadata.properties import NAME_MAPPING_DEFAULT
from icefield.partitioning.spec import check_partition_values, normalised_key, partition_batch
from icefield.partitioning.transforms import IdentityTransform
from icefield.scan.column_projection import ColumnProjection
from icefield.schema import NameMapping, Schema, create_name_mapping, parse_name_mapping
from icefield.schema.name_mapping import carries_ids
from icefield.storage import FileIO, given_location
from icefield.transaction.added_metrics import in_table_types
from icefield.transaction.added_names import check_names
from icefield.transaction.summary import distinct_partitions
from icefield.types.arrow.types import field_id
from icefield.types.reserved import DELETE_FILE_PATH, DELETE_FILE_POS
from icefield.types.values import to_arrow_scalar, to_internal


class FileDescriber:
    """Describes files for a table's manifests: their partition, counts and bounds.

    A file whose columns have field ids is described by its footer. One without ids gets them by name, from the
    table's name mapping or else from its schema, and is read once for its statistics, as is one without a footer
    that states columns.
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
        """The ids that columns without ids get."""
        return self._mapping

    def describe(
        self, location: str, stated: Mapping[str, Any] | None = None, *, of_one_partition: bool = False
    ) -> DataFile:
        """The file as a manifest will describe it.

        ``stated``: what the rows have in columns that the file lacks and that the table is partitioned by as they are;
        what the file has counts before. ``of_one_partition``: whoever wrote the file is known to have put rows of one
        partition into it, so that the first row tells which.

        Raises ``InvalidArgument`` for a file of no known format, with rows of several partitions, or of position
        deletes, ``InvalidFile`` for one that the table's columns cannot be read from, or whose columns would be read
        as others, ``FileMissing``.
        """
        size = self._io.stat(location).size
        kind = location.rpartition(".")[2].lower()
        try:
            file_format = self._io.file_format(kind)
        except MissingPlugin as error:
            raise InvalidArgument(f"cannot find the format of {location} by its name: {error}") from error
        source = self._io.open_input(location)
        with file_format.open_reader(source, location, size=size) as reader:
            _refuse_deletes(reader.schema, location)
            has_ids = carries_ids(reader.schema)
            self.needs_mapping |= not has_ids
            file_schema = self._mapping.apply(reader.schema)
            mapping = None if has_ids else self._mapping
            check_names(self._metadata, mapping, reader.schema, file_schema, location)
            lacking = self._lacking(file_schema, stated or {}, location)
            left = self._schema.select_ids(self._schema.field_ids - lacking.keys()) if lacking else self._schema
            metrics = _Reading(left, reader, file_schema, location).metrics(has_ids)
            partition = self._partition(reader, file_schema, location, lacking, of_one_partition)
            splits = reader.split_offsets
        encoded = apply_modes(metrics, self._config, self._schema)
        return DataFile(
            file_path=location,
            file_format=file_format.name,
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

        Readers take such a value from the partition, where that has the column as it is.
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
        """The one partition of the file, from the values of its columns, and what is stated of those it lacks."""
        spec = self._metadata.spec()
        if spec.is_unpartitioned:
            return (None,) * len(spec.fields)
        sources = {source_id for field in spec.fields for source_id in field.source_ids}
        columns = self._schema.select_ids(sources - lacking.keys())
        constants = {str(self._schema.find_column_name(id_)): value for id_, value in lacking.items()}
        batches: Iterable[pa.RecordBatch] = [pa.record_batch({"": [None]})]  # a row for constants alone
        if columns.fields:
            batches = _Reading(columns, reader, file_schema, location).batches()
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


class _Reading:
    """A file read under (a part of) the table's schema."""

    def __init__(self, schema: Schema, reader: FormatReader, file_schema: pa.Schema, location: str) -> None:
        self._reader = reader
        self._schema = schema
        self._file_schema = file_schema
        # Settled at once: a file that the table could not be read from must not get into it.
        self._projection = ColumnProjection.resolve(schema, file_schema, location=location)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its rows."""
        for batch in self._reader.read(ReadRequest(columns=self._projection.file_columns)):
            yield self._projection.apply(batch)

    def metrics(self, has_ids: bool) -> Metrics:
        """Its statistics by the table's field ids."""
        if has_ids:
            stated = self._reader.metrics()
            if stated.value_counts or not stated.record_count:
                return in_table_types(stated, self._file_schema, self._schema)
        collector = MetricsCollector(self._projection.schema)
        for batch in self.batches():
            collector.update(batch)
        return collector.metrics()


def _refuse_deletes(schema: pa.Schema, location: str) -> None:
    """Refuse a position delete file: read as data, it would give rows that hold nothing."""
    if {DELETE_FILE_PATH.field_id, DELETE_FILE_POS.field_id} <= {field_id(field) for field in schema}:
        raise InvalidArgument(
            f"{location} is a position delete file, whose rows are not a table's: add only data files",
            location=location,
        )


def distinct_locations(locations: Iterable[str | PathLike[str]] | str | PathLike[str]) -> list[str]:
    """The locations as a list. Raises ``InvalidArgument`` when one comes twice."""
    found = [given_location(each) for each in ([locations] if isinstance(locations, str | PathLike) else locations)]
    if len(set(found)) < len(found):
        twice = next(location for location in found if found.count(location) > 1)
        raise InvalidArgument(f"file {twice} is added twice", location=twice)
    return found
