"""Reading a Parquet file: the columns asked for, of the row groups that a split and a filter leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from icefield.abc import FormatReader, InputFile, ReadRequest
from icefield.arrow_reshape import retype
from icefield.arrow_types import field_id, to_arrow_type
from icefield.errors import InvalidFile, UnsupportedFeature
from icefield.expressions import BooleanExpression, bound_leaves, inclusive_metrics
from icefield.metrics import Metrics

from icefield_parquet.errors import reading
from icefield_parquet.row_groups import Run, in_split, row_group_start, runs_of
from icefield_parquet.schema import Leaf, leaves, select_leaves, without_extensions
from icefield_parquet.statistics import RowGroupStatistics, file_metrics

_THRIFT_STRINGS = 256 << 20
_THRIFT_CONTAINERS = 16 << 20
_BATCH_BYTES = 64 << 20
_FEWEST_ROWS = 16
_TAIL = 8
_ENCRYPTED = b"PARE"

POSITION = pa.field("_pos", pa.int64(), nullable=False)


class ParquetReader(FormatReader):
    """An open Parquet file; the footer was read. Not for use by several threads at once."""

    def __init__(self, source: InputFile, location: str) -> None:
        self._source = source
        self._location = location
        self._native = isinstance(source, pa.NativeFile)
        try:
            with reading(location, "the footer"):
                self._file = _open(source, pre_buffer=not self._native)
                self._footer = self._file.metadata
                self._schema = without_extensions(self._file.schema_arrow)
                self._starts = [
                    row_group_start(self._footer.row_group(at)) for at in range(self._footer.num_row_groups)
                ]
                self._rows = [self._footer.row_group(at).num_rows for at in range(self._footer.num_row_groups)]
        except InvalidFile as error:
            encrypted = _is_encrypted(source)
            source.close()
            if encrypted:
                raise UnsupportedFeature(f"{location} has an encrypted footer", location=location) from error
            raise
        if any(rows < 0 for rows in self._rows) or sum(self._rows) != self._footer.num_rows:
            source.close()
            raise self._damaged("the rows of its row groups do not add up")

    @property
    def schema(self) -> pa.Schema:
        return self._schema.remove_metadata()

    @property
    def metadata(self) -> Mapping[str, bytes]:
        pairs = self._footer.metadata or {}
        return {key.decode("utf-8", "replace"): value for key, value in pairs.items()}

    @property
    def split_offsets(self) -> list[int] | None:
        return sorted(self._starts) or None

    def metrics(self) -> Metrics:
        with reading(self._location, "the statistics"):
            return file_metrics(self._footer, self._schema)

    def close(self) -> None:
        self._file.close(force=True)
        self._source.close()

    def read(self, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        with reading(self._location, "the footer"):
            chosen = select_leaves(self._schema, request.columns)
            # pyarrow buffers all that one pass over a remote file will read, so each pass is one row group there.
            runs = runs_of(self._groups(request, chosen), self._rows, join=self._native)
        indices = [index for group in chosen for index in group]
        for run in runs:
            if indices:
                yield from self._read_run(run, indices, request)
            else:
                yield from _bare(run, request)

    def _groups(self, request: ReadRequest, chosen: list[list[int]]) -> list[int]:
        groups = in_split(self._starts, request.split)
        if request.row_filter is None or not groups:
            return groups
        statistics = RowGroupStatistics(
            self._footer, groups, _leaves_by_id(request.columns, chosen), _bound_types(request.row_filter)
        )
        keep = inclusive_metrics(request.row_filter, statistics)
        return [group for group, kept in zip(groups, keep, strict=True) if kept]

    def _read_run(self, run: Run, indices: list[int], request: ReadRequest) -> Iterator[pa.RecordBatch]:
        self._check_counts(run, request, indices)
        position = run.first_row
        with reading(self._location, "the pages"):
            batches = self._file.reader.iter_batches(
                self._batch_rows(run, indices, request.batch_rows),
                row_groups=list(run.groups),
                column_indices=indices,
                use_threads=len(indices) > 1,
            )
        while True:
            with reading(self._location, "the pages"):
                batch = next(batches, None)
                if batch is None:
                    break
                columns = _conformed(batch, request.columns)
            if request.positions:
                columns.append(_positions(position, batch.num_rows))
            position += batch.num_rows
            yield _record_batch(columns, request)
        if position != run.first_row + run.rows:
            raise self._damaged(f"{position - run.first_row} rows where the footer promises {run.rows}")

    def _check_counts(self, run: Run, request: ReadRequest, indices: list[int]) -> None:
        """Refuse a file whose columns hold another number of rows than its row groups: some would be lost."""
        single = [index for index, leaf in zip(indices, leaves(request.columns), strict=True) if not leaf.repeated]
        for group in run.groups:
            row_group = self._footer.row_group(group)
            for index in single:
                if row_group.column(index).num_values != self._rows[group]:
                    raise self._damaged("a column holds another number of rows than its row group")

    def _damaged(self, why: str) -> InvalidFile:
        return InvalidFile(f"{self._location} is damaged: {why}", location=self._location)

    def _batch_rows(self, run: Run, indices: list[int], most: int) -> int:
        """Rows a batch such that it stays within a bound of bytes, by the sizes in the footer."""
        total = 0
        for group in run.groups:
            row_group = self._footer.row_group(group)
            total += sum(row_group.column(index).total_uncompressed_size for index in set(indices))
        width = max(1, total // max(1, run.rows))
        return max(1, min(most, max(_FEWEST_ROWS, _BATCH_BYTES // width)))


def _open(source: InputFile, *, pre_buffer: bool) -> pq.ParquetFile:
    return pq.ParquetFile(
        source,
        pre_buffer=pre_buffer,
        coerce_int96_timestamp_unit="us",
        thrift_string_size_limit=_THRIFT_STRINGS,
        thrift_container_size_limit=_THRIFT_CONTAINERS,
        arrow_extensions_enabled=False,
    )


def _is_encrypted(source: InputFile) -> bool:
    try:
        source.seek(0, 2)
        size = source.tell()
        source.seek(max(0, size - _TAIL))
        return source.read(_TAIL)[-4:] == _ENCRYPTED
    except (OSError, ValueError):
        return False


def _leaves_by_id(columns: pa.Schema, chosen: list[list[int]]) -> dict[int, Leaf]:
    """The asked-for leaves by id: the ids are those of the request, which may come from a name mapping."""
    by_id: dict[int, Leaf] = {}
    for column, indices in zip(columns, chosen, strict=True):
        for leaf, index in zip(leaves([column]), indices, strict=True):
            found = field_id(leaf.field)
            if found is not None:
                by_id[found] = Leaf(index, leaf.field, leaf.repeated)
    return by_id


def _bound_types(row_filter: BooleanExpression) -> dict[int, pa.DataType]:
    """The types that a filter compares in: the table's, to which the file's may have been promoted."""
    return {leaf.field.field_id: to_arrow_type(leaf.field.field_type) for leaf in bound_leaves(row_filter)}


def _conformed(batch: pa.RecordBatch, wanted: pa.Schema) -> list[pa.Array]:
    """The batch's columns in exactly the types asked for; a pruned list has lost its element's name and id."""
    return [
        column if column.type.equals(field.type, check_metadata=True) else retype(column, field.type)
        for column, field in zip(batch.columns, wanted, strict=True)
    ]


def _positions(first: int, rows: int) -> pa.Array:
    return pa.array(np.arange(first, first + rows, dtype=np.int64))


def _record_batch(columns: list[pa.Array], request: ReadRequest) -> pa.RecordBatch:
    schema = request.columns.remove_metadata()
    return pa.RecordBatch.from_arrays(columns, schema=schema.append(POSITION) if request.positions else schema)


def _bare(run: Run, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """Rows without columns, or with their positions alone: nothing needs to be read."""
    for first in range(0, run.rows, request.batch_rows):
        rows = min(request.batch_rows, run.rows - first)
        if request.positions:
            yield pa.RecordBatch.from_arrays([_positions(run.first_row + first, rows)], schema=pa.schema([POSITION]))
        else:
            yield pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))
