"""The table of deleted positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.abc import ReadRequest
from icefield.base import compute as pc
from icefield.base.concurrency import read_ahead
from icefield.catalog.inspection.manifest_pruning import ManifestPruning, bounded, constants
from icefield.catalog.inspection.metadata_scan import MetadataTable
from icefield.catalog.inspection.selection import MetadataSelection, narrow
from icefield.catalog.inspection.source import MetadataSource
from icefield.errors import InvalidFile
from icefield.expressions import (
    AlwaysTrue,
    BooleanExpression,
    FieldSummaries,
    PartitionSummaries,
    bound_leaves,
    manifests_may_match,
)
from icefield.manifest import DataFile, DataFileContent, ManifestContent, ManifestEntries, ManifestList, ManifestRequest
from icefield.manifest import schemas as f
from icefield.manifest.columns import PLAN_COLUMNS
from icefield.manifest.manifest_list import CONTENT
from icefield.metadata.snapshots import Snapshot
from icefield.scan.columns.projection import ColumnProjection
from icefield.scan.deletes.positions import read_vector
from icefield.scan.opening import deleted_rows, open_file
from icefield.scan.planning.pruning import Mask
from icefield.schema import Schema
from icefield.types import NestedField, StructType
from icefield.types.arrow.types import to_arrow_type
from icefield.types.reserved import DELETE_FILE_PATH, DELETE_FILE_POS, DELETE_FILE_ROW
from icefield.types.values import from_bytes_array

_BATCH_ROWS: Final = 65_536
_OF_FILE: Final = {"content_offset": f.CONTENT_OFFSET, "content_size_in_bytes": f.CONTENT_SIZE}
_PATH_BOUNDS: Final = (f.LOWER_BOUNDS, f.UPPER_BOUNDS)


@dataclass(frozen=True, slots=True)
class _DeleteFile:
    """A delete file, and the columns with one value for all its rows, such as its partition."""

    file: DataFile
    constants: pa.StructArray


class PositionDeletesTable(MetadataTable):
    """One row per position in the position delete files and deletion vectors of a snapshot.

    ``row`` is the deleted row in the table's schema, if the delete file contains it, else null. In version 3 and later
    two more columns state the offset and size of a deletion vector.
    """

    def __init__(self, source: MetadataSource, snapshots: Sequence[Snapshot]) -> None:
        self._source = source
        self._snapshots = snapshots
        # The row in a delete file may lack required columns of the table.
        row_type = StructType(*(replace(field, required=False) for field in source.metadata.schema().fields))
        self._row = NestedField(DELETE_FILE_ROW.field_id, DELETE_FILE_ROW.name, row_type, False, DELETE_FILE_ROW.doc)
        partition = source.united.arrow_type
        is_partitioned, has_vectors = partition.num_fields > 0, source.metadata.format_version >= 3
        self.schema = pa.schema(
            [
                pa.field("file_path", pa.string(), nullable=False),
                pa.field("pos", pa.int64(), nullable=False),
                pa.field("row", to_arrow_type(row_type)),
                *([pa.field("partition", partition, nullable=False)] if is_partitioned else ()),
                pa.field("spec_id", pa.int32(), nullable=False),
                pa.field("delete_file_path", pa.string(), nullable=False),
                *((pa.field(name, pa.int64()) for name in _OF_FILE) if has_vectors else ()),
            ]
        )

    def batches(self, selection: MetadataSelection) -> Iterator[pa.RecordBatch]:
        workers = self._source.io.workers()
        return read_ahead(self._files(selection), lambda one: self._read(one, selection), workers)

    # -- which files ----------------------------------------------------------------------------------------------

    def _files(self, selection: MetadataSelection) -> Iterator[_DeleteFile]:
        """The delete files that may hold a row that matches."""
        pruning = ManifestPruning(self._source, selection.row_filter)

        def choice(manifests: ManifestList) -> Mask:
            kept = (manifests.integers(CONTENT) == ManifestContent.DELETES) & manifests.may_have_live_files()
            return pruning.may_match(manifests, kept)

        by_path = any(leaf.path == ("file_path",) for leaf in bound_leaves(selection.row_filter))
        ids = frozenset({DELETE_FILE_PATH.field_id})
        request = ManifestRequest(PLAN_COLUMNS, dict.fromkeys(_PATH_BOUNDS, ids) if by_path else {})
        for entries in self._source.entries(self._snapshots, choice, request):
            live = entries.filter(entries.live())
            files = live.filter(np.asarray(live.column(f.CONTENT)) == DataFileContent.POSITION_DELETES)
            files = files.filter(self._may_match(files, selection.row_filter))
            same = self._constants(files)
            for number, file in enumerate(files.data_files()):
                yield _DeleteFile(file, same.slice(number, 1))

    def _may_match(self, files: ManifestEntries, row_filter: BooleanExpression) -> Mask | None:
        """Which files may match, by their constant columns and by the bounds of the paths in them."""
        if isinstance(row_filter, AlwaysTrue) or not len(files):
            return None
        same = self._constants(files)
        known: dict[int, FieldSummaries] = {}
        for leaf in bound_leaves(row_filter):
            if leaf.path == ("file_path",):
                known[leaf.field.field_id] = _paths(files)
            elif same.type.get_field_index(leaf.path[0]) >= 0:
                values: pa.Array = same
                for name in leaf.path:
                    values = values.field(values.type.get_field_index(name))
                known[leaf.field.field_id] = constants(values)
        return manifests_may_match(row_filter, PartitionSummaries(len(files), known))

    def _constants(self, files: ManifestEntries) -> pa.StructArray:
        columns = {
            "partition": self._source.partitions(files),
            "spec_id": pa.array(np.full(len(files), files.spec_id, np.int32)),
            "delete_file_path": files.column(f.FILE_PATH),
            **{name: files.column(number) for name, number in _OF_FILE.items()},
        }
        fields = [field for field in self.schema if field.name in columns]
        return pa.StructArray.from_arrays([columns[field.name] for field in fields], fields=fields)

    # -- their rows -----------------------------------------------------------------------------------------------

    def _read(self, one: _DeleteFile, selection: MetadataSelection) -> Iterator[pa.RecordBatch]:
        names = set(selection.read.names)
        rows = self._vector(one.file) if one.file.is_deletion_vector else self._rows(one.file, "row" in names)
        for columns, count in rows:
            places = pa.array(np.zeros(count, np.int64))
            arrays = []
            for field in selection.read:
                if field.name in columns:
                    arrays.append(narrow(columns[field.name], field.type))
                else:
                    same = one.constants.field(one.constants.type.get_field_index(field.name))
                    arrays.append(narrow(same.take(places), field.type))
            yield selection.of(pa.RecordBatch.from_arrays(arrays, schema=selection.read))

    def _vector(self, vector: DataFile) -> Iterator[tuple[dict[str, pa.Array], int]]:
        path = vector.referenced_data_file
        if path is None:
            raise InvalidFile(
                f"{vector.file_path}: its manifest does not state which data file a deletion vector is of",
                location=vector.file_path,
            )
        positions = read_vector(self._source.io, vector)
        for start in range(0, len(positions), _BATCH_ROWS):
            part = positions[start : start + _BATCH_ROWS]
            paths = pa.repeat(pa.scalar(path, pa.string()), len(part))
            row = pa.nulls(len(part), self.schema.field("row").type)
            yield {"file_path": paths, "pos": pa.array(part), "row": row}, len(part)

    def _rows(self, file: DataFile, with_row: bool) -> Iterator[tuple[dict[str, pa.Array], int]]:
        wanted = Schema(DELETE_FILE_PATH, DELETE_FILE_POS, *([self._row] if with_row else []))
        with open_file(self._source.io, file) as reader:
            projection = ColumnProjection.resolve(wanted, reader.schema, location=file.file_path)
            request = ReadRequest(projection.file_columns, batch_rows=_BATCH_ROWS)
            for batch in deleted_rows(self._source.io, file, reader, request):
                made = projection.apply(batch)
                named = made.filter(made.column(0).is_valid())  # a row without a path applies to nothing
                if named.column(1).null_count:
                    raise InvalidFile(f"{file.file_path} deletes a row without a position", location=file.file_path)
                yield dict(zip(named.schema.names, named.columns, strict=True)), named.num_rows


def _paths(files: ManifestEntries) -> FieldSummaries:
    """Bounds of the data file paths in each delete file: its referenced data file, or the path bounds of its entry."""
    kind = DELETE_FILE_PATH.field_type
    referenced = files.column(f.REFERENCED_DATA_FILE)
    bounds = []
    for number in _PATH_BOUNDS:
        encoded = files.statistic(number, DELETE_FILE_PATH.field_id)
        bounds.append(referenced if encoded is None else pc.coalesce(referenced, from_bytes_array(kind, encoded)))
    return bounded(*bounds)
