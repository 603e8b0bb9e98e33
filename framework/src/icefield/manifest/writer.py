"""Manifests written, from data files or from the columns of other manifests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.manifest import schemas as f
from icefield.manifest.cache import KeptOutput
from icefield.manifest.columns import ALL_COLUMNS, DATA_FILE_IDS, identify, struct_array
from icefield.manifest.data_file import COUNTS, DataFile, DataFileContent, EntryStatus, counts_by_status
from icefield.manifest.encoding import data_file_columns
from icefield.manifest.entries import ManifestEntries
from icefield.manifest.manifest_file import UNASSIGNED, FieldSummary, ManifestContent, ManifestFile
from icefield.metadata.metrics import Metrics, MetricsCollector
from icefield.partitioning import PartitionSpec
from icefield.partitioning.spec import fields_to_json
from icefield.partitioning.transforms import VoidTransform
from icefield.schema import Schema, schema_to_arrow, schema_to_json
from icefield.storage import FileIO
from icefield.storage.encrypted_files import is_encrypted
from icefield.types import NestedField, StructType, UnknownType
from icefield.types.arrow.types import from_arrow_type, to_arrow_type
from icefield.types.values import value_to_bytes

_FILES_AT_ONCE: Final = 8192
_AVRO: Final = {"avro.record-name": "manifest_entry"}


class ManifestWriter(AbstractContextManager["ManifestWriter"]):
    """Writes one manifest: files of one spec, data files or delete files, never both.

    An exception in the ``with`` block leaves no file. ``close`` publishes the file and returns the ``ManifestFile``,
    which has no sequence number yet: ``write_manifest_list`` assigns it, so that all attempts of a commit use the same
    manifest.

    ``schema`` is the table's, for the header and the types of the partition; ``schemas`` are older ones, for a spec
    over dropped columns. If no schema has a source, the first entries that are carried over give the type. Raises
    ``UnsupportedFeature`` for delete files in version 1, for a spec with an unknown transform, and for new files if no
    schema gives the partition types.
    """

    def __init__(
        self,
        io: FileIO,
        location: str,
        spec: PartitionSpec,
        schema: Schema,
        format_version: int,
        snapshot_id: int,
        content: ManifestContent = ManifestContent.DATA,
        *,
        schemas: Iterable[Schema] = (),
        properties: Mapping[str, str] | None = None,
    ) -> None:
        if format_version == 1 and content is not ManifestContent.DATA:
            raise UnsupportedFeature("format version 1 has no row-level deletes, and so no manifest of them")
        unknown = next((field for field in spec.fields if not field.is_known), None)
        if unknown is not None:
            raise UnsupportedFeature(f"partition field '{unknown.name}' has a transform that this version cannot write")
        self.location = location
        self._version = format_version
        self._spec = spec
        self._snapshot_id = snapshot_id
        self._content = content
        self._partition_type = spec.partition_type(schema, schemas)
        self._counts = Counter(dict.fromkeys(COUNTS, 0))
        self._lowest: int | None = None
        self._paths: list[pa.Array] = []
        self._is_encrypted = io.key_length is not None
        self._result: ManifestFile | None = None
        self._open = partial(
            _Open,
            io,
            location,
            format_version,
            properties={**_AVRO, **(properties or {})},
            metadata=_header(schema, spec, format_version, content),
        )
        # The first field with values of an unknown type, because no schema has its source.
        pairs = zip(spec.fields, self._partition_type.fields, strict=True)
        untyped = (field for field, typed in pairs if isinstance(typed.field_type, UnknownType))
        self._forgotten = next(
            (field.name for field in untyped if not isinstance(field.transform, VoidTransform)), None
        )
        self._file = None if self._forgotten else self._open(self._partition_type)

    @property
    def estimated_size(self) -> int:
        """Bytes the manifest would have if closed now; rough."""
        return 0 if self._file is None else self._file.writer.estimated_size

    def add(self, files: Iterable[DataFile], *, data_sequence_number: int | None = None) -> None:
        """Write files as ADDED by this snapshot.

        They inherit their sequence numbers, except for an explicit data sequence number (for rewritten files that must
        stay older than concurrent deletes). Raises ``InvalidArgument`` for a file of another spec or content.
        """
        remaining = iter(files)
        while batch := list(islice(remaining, _FILES_AT_ONCE)):
            self._add(batch, data_sequence_number)

    def add_entries(self, entries: ManifestEntries) -> None:
        """Write entries with their status and snapshot unchanged; their sequence numbers become explicit.

        ADDED entries of this snapshot still inherit their sequence numbers. Raises ``InvalidArgument`` if the entries
        are of another spec or content, or were read without their statistics.
        """
        status = entries.status()
        own = (np.asarray(entries.columns[f.SNAPSHOT_ID]) == self._snapshot_id) & (status == EntryStatus.ADDED)
        self._carry(entries, status, entries.columns[f.SNAPSHOT_ID], own)

    def existing(self, entries: ManifestEntries) -> None:
        """Write entries as EXISTING: their snapshot and sequence numbers stay, and become explicit."""
        status = np.full(len(entries), EntryStatus.EXISTING, np.int32)
        self._carry(entries, status, entries.columns.get(f.SNAPSHOT_ID), None)

    def delete(self, entries: ManifestEntries) -> None:
        """Write entries as DELETED by this snapshot; their sequence numbers stay, and become explicit."""
        status = np.full(len(entries), EntryStatus.DELETED, np.int32)
        self._carry(entries, status, self._constant(self._snapshot_id, len(entries)), None)

    def close(self) -> ManifestFile:
        """Publish the manifest. Raises ``InvalidArgument``, and publishes nothing, when a live path occurs twice."""
        if self._result is not None:
            return self._result
        file = self._file = self._file or self._open(self._partition_type)
        try:
            self._check_distinct()
            written = file.writer.close()
        except BaseException:
            file.writer.abort()
            raise
        length, key_metadata = file.new.stored(written.size)
        self._result = ManifestFile(
            manifest_path=self.location,
            manifest_length=length,
            partition_spec_id=self._spec.spec_id,
            content=self._content,
            sequence_number=UNASSIGNED,
            min_sequence_number=UNASSIGNED if self._lowest is None else self._lowest,
            added_snapshot_id=self._snapshot_id,
            **self._counts,
            partitions=file.summaries(),
            key_metadata=key_metadata,
        )
        return self._result

    def abort(self) -> None:
        """Leave no file."""
        if self._file is not None:
            self._file.writer.abort()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def _add(self, files: list[DataFile], data_sequence_number: int | None) -> None:
        for file in files:
            self._check_file(file)
        if self._forgotten:
            raise UnsupportedFeature(
                f"no schema of the table has the column of partition field '{self._forgotten}' any more, so that no "
                f"new files can be added to partitions of spec {self._spec.spec_id}: rewrite_data_files with "
                "rewrite_all takes their rows to the present spec"
            )
        columns = data_file_columns(files, to_arrow_type(self._partition_type))
        columns[f.STATUS] = pa.array(np.full(len(files), EntryStatus.ADDED, np.int32))
        columns[f.SNAPSHOT_ID] = self._constant(self._snapshot_id, len(files))
        if data_sequence_number is not None:
            columns[f.SEQUENCE_NUMBER] = self._constant(data_sequence_number, len(files))
        # The commit that adds a file assigns its row ids; a first row id that the file has already is dropped.
        columns.pop(f.FIRST_ROW_ID)
        self._write(columns, len(files))

    def _check_file(self, file: DataFile) -> None:
        if file.spec_id != self._spec.spec_id:
            raise InvalidArgument(
                f"{file.file_path} has partition spec {file.spec_id}; this manifest is of spec {self._spec.spec_id}"
            )
        if (file.content is DataFileContent.DATA) != (self._content is ManifestContent.DATA):
            raise InvalidArgument(f"{file.file_path} holds {file.content.name}, and the manifest {self._content.name}")
        if self._is_encrypted and not is_encrypted(file.key_metadata):
            raise UnsupportedFeature(
                f"{file.file_path} is plain, and its table is encrypted: refresh the table, and write the rows to it",
                location=file.file_path,
            )
        if (file.content is DataFileContent.EQUALITY_DELETES) != bool(file.equality_ids):
            raise InvalidArgument(f"{file.file_path}: equality_ids are for equality deletes, which must have them")
        if file.is_deletion_vector:
            if self._version < 3:
                raise UnsupportedFeature(f"{file.file_path}: deletion vectors need format version 3")
            if None in (file.referenced_data_file, file.content_offset, file.content_size_in_bytes):
                raise InvalidArgument(f"{file.file_path}: a deletion vector needs its data file, offset and size")

    def _carry(
        self,
        entries: ManifestEntries,
        status: np.ndarray[Any, Any],
        snapshot_ids: pa.Array | None,
        inheriting: np.ndarray[Any, Any] | None,
    ) -> None:
        if entries.spec_id != self._spec.spec_id:
            raise InvalidArgument(
                f"entries of partition spec {entries.spec_id} do not belong in a manifest of spec {self._spec.spec_id}"
            )
        if entries.manifest.content is not self._content:
            raise InvalidArgument("a manifest holds data files or delete files, never both")
        if not entries.read >= ALL_COLUMNS:
            raise InvalidArgument("entries that were read without their statistics would lose them when rewritten")
        if len(entries) == 0:
            return
        columns = dict(entries.columns)
        columns[f.STATUS] = pa.array(status.astype(np.int32))
        columns[f.SNAPSHOT_ID] = self._constant(entries.manifest.added_snapshot_id, len(entries))
        if snapshot_ids is not None:
            columns[f.SNAPSHOT_ID] = snapshot_ids
        columns[f.FILE_FORMAT] = pc.utf8_upper(columns[f.FILE_FORMAT])
        if inheriting is not None and inheriting.any():
            self._leave_to_inherit(columns, inheriting, entries)
        existing = pa.array(status == EntryStatus.EXISTING)
        for number in (f.SEQUENCE_NUMBER, f.FILE_SEQUENCE_NUMBER):
            if columns[number].filter(existing).null_count:
                raise InvalidArgument("an EXISTING entry needs sequence numbers, which its manifest does not have yet")
        self._write(columns, len(entries))

    def _leave_to_inherit(
        self, columns: dict[int, pa.Array], inheriting: np.ndarray[Any, Any], entries: ManifestEntries
    ) -> None:
        if entries.manifest.sequence_number == UNASSIGNED:
            return  # nothing was inherited yet
        mask, null = pa.array(inheriting), pa.scalar(None, pa.int64())
        for number in (f.FILE_SEQUENCE_NUMBER, f.FIRST_ROW_ID):
            if number in columns:
                columns[number] = pc.if_else(mask, null, columns[number])
        # A number below the manifest's own was written explicitly, and stays.
        numbers = columns[f.SEQUENCE_NUMBER]
        inherited = pc.and_(mask, pc.equal(numbers, entries.manifest.sequence_number))
        columns[f.SEQUENCE_NUMBER] = pc.if_else(inherited, null, numbers)

    def _write(self, columns: dict[int, pa.Array], count: int) -> None:
        if self._version == 1:
            columns[f.BLOCK_SIZE] = self._constant(f.BLOCK_SIZE_DEFAULT, count)
        self._count(columns)
        if self._file is None:
            self._file = self._open(_as_stored(self._partition_type, columns[f.PARTITION].type))
        self._file.write(columns, count)

    def _count(self, columns: dict[int, pa.Array]) -> None:
        status = np.asarray(columns[f.STATUS])
        self._counts.update(counts_by_status(status, np.asarray(columns[f.RECORD_COUNT])))
        live = pa.array(status != EntryStatus.DELETED)
        numbers = columns.get(f.SEQUENCE_NUMBER)
        if numbers is not None:
            lowest = pc.min(numbers.filter(live)).as_py()
            if lowest is not None and (self._lowest is None or lowest < self._lowest):
                self._lowest = lowest
        if self._content is ManifestContent.DATA:
            self._paths.append(columns[f.FILE_PATH].filter(live))

    def _check_distinct(self) -> None:
        paths = pa.chunked_array(self._paths, pa.string())
        if len(paths) and len(paths.unique()) != len(paths):
            counts = paths.value_counts()
            twice = next(row["values"] for row in counts.to_pylist() if row["counts"] > 1)
            raise InvalidArgument(f"data file {twice} is listed twice", location=twice)

    @staticmethod
    def _constant(value: int, count: int) -> pa.Array:
        return pa.array(np.full(count, value, np.int64))


class _Open:
    """The file of a manifest, once the types of its partition tuples are known."""

    def __init__(
        self, io: FileIO, location: str, format_version: int, partition_type: StructType, **header: Mapping[str, str]
    ) -> None:
        entries = f.entry_schema(format_version, partition_type)
        self._arrow = schema_to_arrow(entries)
        self._partition_type = partition_type
        self._metrics = MetricsCollector(pa.schema(list(to_arrow_type(partition_type))))
        sink = KeptOutput(io, location)
        self.new = sink.file
        self.writer = io.manifest_format().open_writer(sink, entries, **header)

    def write(self, columns: Mapping[int, pa.Array], count: int) -> None:
        """Write entries."""
        partition = _tuples(columns[f.PARTITION], to_arrow_type(self._partition_type))
        self._metrics.update(pa.RecordBatch.from_struct_array(partition))
        shaped = _shaped({**columns, f.PARTITION: partition}, self._arrow, count)
        self.writer.write(pa.RecordBatch.from_struct_array(shaped))

    def summaries(self) -> tuple[FieldSummary, ...]:
        """The summary of each partition field over the entries. Spec: "Manifest Lists", struct ``field_summary``."""
        metrics = self._metrics.metrics()
        return tuple(_summary(field, metrics) for field in self._partition_type.fields)


def _summary(field: NestedField, metrics: Metrics) -> FieldSummary:
    number, kind = field.field_id, field.field_type
    null, nan = metrics.null_value_counts[number] > 0, metrics.nan_value_counts.get(number, 0) > 0
    if number not in metrics.lower_bounds or isinstance(kind, UnknownType):
        return FieldSummary(null, nan)
    low, high = metrics.lower_bounds[number], metrics.upper_bounds[number]
    return FieldSummary(null, nan, value_to_bytes(kind, low), value_to_bytes(kind, high))


def _as_stored(partition_type: StructType, stored: pa.StructType) -> StructType:
    """The partition type, with unknown types replaced by the types of stored entries."""
    pairs = zip(partition_type.fields, stored, strict=True)
    return StructType(
        *(
            replace(field, field_type=from_arrow_type(held.type))
            if isinstance(field.field_type, UnknownType)
            else field
            for field, held in pairs
        )
    )


def _tuples(partition: pa.StructArray, wanted: pa.StructType) -> pa.StructArray:
    """Cast partition tuples to the types of a manifest. Raises ``InvalidArgument`` for tuples that do not fit."""
    if partition.type == wanted:
        return partition
    try:
        children = [
            pa.nulls(len(partition), field.type)
            if pa.types.is_null(field.type)  # under void
            else partition.field(place).cast(field.type)
            for place, field in enumerate(wanted)
        ]
    except pa.ArrowException as error:
        raise InvalidArgument(f"partition tuples do not fit into a manifest of {wanted}: {error}") from error
    return struct_array(children, list(wanted), len(partition))


def _header(schema: Schema, spec: PartitionSpec, format_version: int, content: ManifestContent) -> dict[str, str]:
    """The key-value metadata of a manifest; ``partition-spec`` holds the array of fields alone."""
    metadata = {
        "schema": msgspec.json.encode(schema_to_json(schema)).decode(),
        "schema-id": str(schema.schema_id),
        "partition-spec": msgspec.json.encode(fields_to_json(spec)).decode(),
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(format_version),
    }
    if format_version > 1:
        metadata["content"] = content.name.lower()
    return metadata


def _shaped(columns: Mapping[int, pa.Array], fields: Iterable[pa.Field], count: int) -> pa.StructArray:
    """The columns of some fields of a manifest, in their types; encoded maps stay as they are."""
    arrays = [_column(columns, field, count) for field in fields]
    typed = [field.with_type(array.type) for field, array in zip(fields, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=typed)


def _column(columns: Mapping[int, pa.Array], field: pa.Field, count: int) -> pa.Array:
    number = identify(field, DATA_FILE_IDS)
    if number == f.DATA_FILE:
        return _shaped(columns, field.type, count)
    column = columns.get(number)
    if column is None:
        return pa.array(np.zeros(count, np.int32)) if number == f.CONTENT else pa.nulls(count, field.type)
    is_encoded = pa.types.is_map(field.type) and pa.types.is_binary(column.type)
    return column if is_encoded or column.type == field.type else column.cast(field.type)
