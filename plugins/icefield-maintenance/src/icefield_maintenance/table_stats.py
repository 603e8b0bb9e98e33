"""Counting the distinct values of the columns of a snapshot, as theta sketches in a Puffin file.

Spec: "Table Statistics" and Puffin, "apache-datasketches-theta-v1". Each value goes into the sketch in its binary
single-value form, as in Java's library, so that other engines can merge the sketches with their own.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from icefield.abc import Attempt, Done, FileKey, Work, WorkRunner
from icefield.engine import open_statistics
from icefield.errors import IcefieldError, InvalidArgument
from icefield.metadata import BlobMetadata, Snapshot, StatisticsFile, TableMetadata
from icefield.puffin import Blob, BlobType, PuffinWriter, writer_name
from icefield.scan import FileScanTask, ScanContext, TableScan, read_tasks
from icefield.schema import Schema
from icefield.storage import FileIO, LocationProvider
from icefield.types import (
    BinaryType,
    GeographyType,
    GeometryType,
    IcebergType,
    NestedField,
    StringType,
    UnknownType,
    VariantType,
)

from icefield_maintenance.local_runner import LocalRunner
from icefield_maintenance.puffin_reader import PuffinReader
from icefield_maintenance.theta import ThetaSketch
from icefield_maintenance.theta.binary_values import to_bytes_array

_log = logging.getLogger(__name__)

_WITHOUT_VALUES = (UnknownType, VariantType, GeometryType, GeographyType)


@dataclass(slots=True)
class CountedColumn:
    """A column to count: its full name, its path, and the sketch of its values."""

    name: str
    field_id: int
    kind: IcebergType
    path: tuple[str, ...]
    sketch: ThetaSketch = field(default_factory=ThetaSketch)

    def add(self, batch: pa.RecordBatch) -> None:
        values = batch.column(self.path[0])
        for child in self.path[1:]:
            values = pc.struct_field(values, child)
        if isinstance(values, pa.DictionaryArray):
            values = values.dictionary.take(pc.unique(values.indices).drop_null())
        self.sketch.update(to_bytes_array(self.kind, values))


def sketched_columns(schema: Schema, names: Sequence[str] | str | None) -> list[CountedColumn]:
    """The columns of some names, or of one name; by default every top-level column of a primitive type.

    Raises ``InvalidArgument`` for a missing column, and for a column with values that cannot be counted: a nested
    column, a column inside a list or map, or a type without a binary form.
    """
    if names is None:
        found = [each for each in schema.fields if _has_values(each)]
        return [CountedColumn(each.name, each.field_id, each.field_type, (each.name,)) for each in found]
    columns: dict[int, CountedColumn] = {}
    for name in [names] if isinstance(names, str) else names:
        wanted = schema.find_field(name)
        repeated = schema.is_repeated(wanted.field_id)
        if repeated or not _has_values(wanted):
            raise InvalidArgument(
                f"distinct values are counted of columns of primitive types that are in no list or map, and column "
                f"'{name}' is {'inside one' if repeated else wanted.field_type}",
                column=name,
            )
        columns[wanted.field_id] = CountedColumn(
            name, wanted.field_id, wanted.field_type, schema.name_path(wanted.field_id)
        )
    return list(columns.values())


class SketchRows(Work[Sequence[FileScanTask], list[ThetaSketch]]):
    """Adds the values of columns to sketches, one list of files after another."""

    def __init__(self, context: ScanContext, columns: Sequence[CountedColumn]) -> None:
        self._context, self._columns = context, columns

    def do(self, item: Sequence[FileScanTask], attempt: Attempt) -> list[ThetaSketch]:
        """A sketch of each column."""
        columns = [replace(column, sketch=ThetaSketch()) for column in self._columns]
        for batch in read_tasks(item, self._context, workers=attempt.threads):
            for column in columns:
                column.add(batch)
        for column in columns:
            column.sketch.settle()  # makes the sketch small before it is sent
        return [column.sketch for column in columns]


def sketch(
    metadata: TableMetadata,
    io: FileIO,
    snapshot: Snapshot,
    columns: Sequence[CountedColumn],
    runner: WorkRunner | None = None,
    done: Done | None = None,
) -> None:
    """Read the live rows of a snapshot once into the sketches of the columns."""
    texts = [one.name for one in columns if len(one.path) == 1 and isinstance(one.kind, StringType | BinaryType)]
    scan = TableScan(
        metadata=metadata,
        io=io,
        selected_fields=tuple(column.name for column in columns),
        snapshot_id=snapshot.snapshot_id,
        dictionary_columns=tuple(texts),
    )
    lots = [list(scan.plan_files())] if runner is None else scan.plan_tasks()
    work = SketchRows(scan.context, [replace(column, sketch=ThetaSketch()) for column in columns])
    for made in (runner or LocalRunner()).run(work, lots, done=done):
        for column, found in zip(columns, made, strict=True):
            column.sketch.merge(found)


def write_sketches(
    io: FileIO,
    location: str,
    metadata: TableMetadata,
    snapshot: Snapshot,
    columns: Sequence[CountedColumn],
) -> tuple[StatisticsFile, FileKey | None]:
    """Write the file. Blobs of other columns or types in the snapshot's earlier file are kept.

    Returns the key of the file, too, if the table is encrypted.
    """
    sequence_number = snapshot.sequence_number or 0
    file = io.create(location)
    with PuffinWriter(file.sink, {"created-by": writer_name()}) as writer:
        for column in columns:
            writer.add(
                BlobType.THETA_SKETCH,
                column.sketch.to_bytes(),
                fields=[column.field_id],
                snapshot_id=snapshot.snapshot_id,
                sequence_number=sequence_number,
                codec="zstd",
                properties={"ndv": str(round(column.sketch.estimate))},
            )
        for blob, data in _others(
            io, metadata, snapshot, {(BlobType.THETA_SKETCH, (one.field_id,)) for one in columns}
        ):
            writer.add_stored(blob, data)
        footer = file.sink.tell()
        size = writer.close()
    described = tuple(
        BlobMetadata(each.type, each.snapshot_id, each.sequence_number, each.fields, dict(each.strings))
        for each in writer.blobs
    )
    key_metadata = None if file.key is None else key_metadata_at(location)
    stored, _ = file.stored(size)
    made = StatisticsFile(snapshot.snapshot_id, location, stored, size - footer, described, key_metadata)
    return made, file.key


def key_metadata_at(location: str) -> str:
    """The key metadata of an encrypted file of statistics at a location, in base64.

    The format leaves the form of key metadata open. Here it is the id of the key among the keys of the table.
    """
    return base64.b64encode(location.encode()).decode()


def new_location(metadata: TableMetadata, snapshot_id: int) -> str:
    """The location of a new file, with a name as in Java's library."""
    return LocationProvider.from_metadata(metadata).metadata_location(f"{snapshot_id}-{uuid4()}.stats")


def _others(
    io: FileIO, metadata: TableMetadata, snapshot: Snapshot, computed: set[tuple[str, tuple[int, ...]]]
) -> Iterator[tuple[Blob, bytes]]:
    known = next((each for each in metadata.statistics if each.snapshot_id == snapshot.snapshot_id), None)
    if known is None:
        return
    location = known.statistics_path
    kept = []
    try:
        with PuffinReader(open_statistics(io, metadata, location), location) as reader:
            kept = [
                (blob, reader.read_stored(blob)) for blob in reader.blobs if (blob.type, blob.fields) not in computed
            ]
    except IcefieldError as error:
        _log.warning("the statistics in %s are not taken over: %s", location, error)
    yield from kept


def _has_values(column: NestedField) -> bool:
    return column.field_type.is_primitive and not isinstance(column.field_type, _WITHOUT_VALUES)
