"""Reading an ORC file: the columns asked for, stripe after stripe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.orc as po
from icefield.abc import FormatReader, InputFile, ReadRequest
from icefield.errors import UnsupportedFeature
from icefield.toolkit import Metrics, all_skipped, validate_full

from icefield_orc.checking import PrefetchedFile, check_stripe
from icefield_orc.conversion import check_nulls, converter
from icefield_orc.errors import damaged, reading
from icefield_orc.out_of_range_timestamps import has_timestamps, out_of_range, read_columns
from icefield_orc.picking import Pick, PickedColumns, decoded, select, whole
from icefield_orc.schema import Node, read_tree
from icefield_orc.skipping import may_match
from icefield_orc.statistics import file_metrics
from icefield_orc.stripes import column_sizes, read_footers, read_stripe_footer
from icefield_orc.tail import read_stripe_statistics, read_tail

_LARGEST_STRIPE = 4 << 30
"""The most bytes that a stripe's values of fixed width may take in memory. A few bytes of a hostile file can claim any
number of rows, and Arrow allocates memory for them first."""

_STRING_WIDTH = 16
POSITION = pa.field("_pos", pa.int64(), nullable=False)


class OrcReader(FormatReader):
    """An open ORC file; its tail was read. Not for use by several threads at once."""

    def __init__(self, source: InputFile, location: str, size: int | None) -> None:
        self._source = source
        self._location = location
        self._ahead = PrefetchedFile(source)
        try:
            with reading(location, "the tail", self._ahead.storage_error):
                self._tail = read_tail(source, source.size if size is None else size)
                self._root = read_tree(self._tail.types, self._tail.metadata)
                self._file = po.ORCFile(self._ahead.arrow_file())
                if self._file.nstripes != len(self._tail.stripes) or self._file.nrows != self._tail.rows:
                    raise ValueError("its tail is ambiguous")
        except BaseException:
            source.close()
            raise
        self._schema = pa.schema([child.arrow_field() for child in self._root.children])
        self._first_rows = [0, *accumulate(stripe.rows for stripe in self._tail.stripes)]

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def metadata(self) -> Mapping[str, bytes]:
        return self._tail.metadata

    @property
    def record_count(self) -> int:
        return self._tail.rows

    @property
    def split_offsets(self) -> list[int] | None:
        return [stripe.start for stripe in self._tail.stripes] or None

    def metrics(self) -> Metrics:
        with reading(self._location, "the statistics"):
            stated = file_metrics(self._tail, self._root)
            footers = read_footers(self._source, self._tail)
            return stated if footers is None else replace(stated, column_sizes=column_sizes(footers, self._root))

    def close(self) -> None:
        self._ahead.hold(())
        self._source.close()

    def read(self, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        selection = select(self._root, request.columns)
        for stripe in self._stripes(request, selection):
            if not len(request.columns):
                yield from _bare(self._first_rows[stripe], self._tail.stripes[stripe].rows, request)
            elif self._tail.stripes[stripe].rows:
                yield from self._read_stripe(stripe, selection, request)

    def _stripes(self, request: ReadRequest, selection: PickedColumns) -> list[int]:
        split = request.split
        inside = [
            number
            for number, stripe in enumerate(self._tail.stripes)
            if split is None or split.start <= stripe.start < split.start + split.length
            if not all_skipped(request.skipped_rows, self._first_rows[number], stripe.rows)
        ]
        if request.row_filter is None or not inside or not self._tail.postscript.sound_statistics:
            return inside
        with reading(self._location, "the stripe statistics"):
            stated = read_stripe_statistics(self._source, self._tail)
            if len(stated) != len(self._tail.stripes):
                return inside
            rows, columns = (
                [self._tail.stripes[number].rows for number in inside],
                [stated[number] for number in inside],
            )
            kept = may_match(request.row_filter, selection, request.columns, rows, columns)
        return [number for number, wanted in zip(inside, kept, strict=True) if wanted]

    def _read_stripe(self, stripe: int, selection: PickedColumns, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        rows, first = self._tail.stripes[stripe].rows, self._first_rows[stripe]
        self._check_size(rows, selection)
        with reading(self._location, f"stripe {stripe}", self._ahead.storage_error):
            self._check(stripe, decoded(self._root, selection))
            columns = self._columns(stripe, selection, request.columns)
        if any(len(column) != rows for column in columns):
            raise damaged(self._location, f"stripe {stripe} holds another number of rows than the footer promises")
        schema = request.columns.remove_metadata()
        if request.positions:
            columns.append(_positions(first, rows))
            schema = schema.append(POSITION)
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        for start in range(0, rows, request.batch_rows):
            yield batch.slice(start, request.batch_rows)

    def _check(self, stripe: int, nodes: list[Node]) -> None:
        """Check a stripe's claims for some types, and read their streams ahead."""
        place = self._tail.stripes[stripe]
        footer = read_stripe_footer(self._source, place, self._tail)
        check_stripe(self._ahead, footer, place, self._tail.postscript, nodes)

    def _columns(self, stripe: int, selection: PickedColumns, wanted: pa.Schema) -> list[pa.Array]:
        """The columns of a stripe in exactly the requested types."""
        paths = None if selection.paths is None else list(selection.paths)
        try:
            batch = self._file.read_stripe(stripe, columns=paths)
        except pa.ArrowInvalid as error:
            if not out_of_range(error):
                raise
            return self._far_columns(stripe, wanted)
        # Arrow decodes damaged bytes to decimals with too many digits, and to offsets and strings that crash a process
        # that uses them.
        for column in batch.columns:
            if _may_be_unsound(column.type):
                validate_full(column)
            else:
                column.validate()
        parts = zip(selection.root.parts, wanted, strict=True)
        return [_finished(batch.column(place), pick, field) for (place, pick), field in parts]

    def _far_columns(self, stripe: int, wanted: pa.Schema) -> list[pa.Array]:
        """Read the columns of a stripe with timestamps outside Arrow's range: such columns are read by pyorc."""
        picks = [whole(self._root, field) for field in wanted]
        far = [pick.node.column for pick in picks if has_timestamps(pick.node)]
        below = (node for pick in picks if pick.node.column in far for node in pick.node.below())
        self._check(stripe, [self._root, *below])
        places = {child.column: place for place, child in enumerate(self._root.children)}
        arrays = read_columns(self._source, self._root, stripe, [places[column] for column in far])
        found = dict(zip(far, arrays, strict=True))
        near = pa.schema([field for field, pick in zip(wanted, picks, strict=True) if pick.node.column not in found])
        rest = iter(self._columns(stripe, select(self._root, near), near) if len(near) else [])
        return [
            _finished(found[pick.node.column], pick, field) if pick.node.column in found else next(rest)
            for pick, field in zip(picks, wanted, strict=True)
        ]

    def _check_size(self, rows: int, selection: PickedColumns) -> None:
        width = sum(_width(node.data_type) for node in selection.root.leaves())
        if rows * max(1, width) > _LARGEST_STRIPE:
            raise UnsupportedFeature(
                f"{self._location} has a stripe of {rows} rows, whose columns would take more than "
                f"{_LARGEST_STRIPE >> 30} GiB",
                location=self._location,
            )


def _finished(array: pa.Array, pick: Pick, field: pa.Field) -> pa.Array:
    made = converter(pick, field.type)(array)
    check_nulls(made, field)
    return made


def _may_be_unsound(data_type: pa.DataType) -> bool:
    kinds = pa.types
    strings = kinds.is_string(data_type) or kinds.is_binary(data_type)
    return bool(kinds.is_nested(data_type) or strings or kinds.is_decimal(data_type))


def _width(data_type: pa.DataType) -> int:
    try:
        return max(1, int(data_type.bit_width) // 8)
    except ValueError:
        return _STRING_WIDTH


def _positions(first: int, rows: int) -> pa.Array:
    return pa.array(np.arange(first, first + rows, dtype=np.int64))


def _bare(first_row: int, count: int, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """Batches without columns, or with only the positions of rows: nothing needs to be read."""
    for start in range(0, count, request.batch_rows):
        rows = min(request.batch_rows, count - start)
        if request.positions:
            yield pa.RecordBatch.from_arrays([_positions(first_row + start, rows)], schema=pa.schema([POSITION]))
        else:
            yield pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))
