"""A format by rows that is broken on purpose, one defect each.

Most of them write large blocks unless a property asks for small ones, like a real format.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from icefield.abc import FormatReader, InputFile, ReadRequest, Split, WrittenFile
from icefield.expressions import evaluate
from icefield.toolkit import row_range
from json_lines import BLOCK_ROWS, JsonLinesFormat, JsonLinesReader, JsonLinesWriter

from mutants import Mutant, of

Batches = Iterator[pa.RecordBatch]
LARGE = 70_000


class Right(JsonLinesFormat):
    """JSON lines in blocks of 70,000 rows: the right format that each broken one changes in one respect."""

    block_rows: ClassVar[int | None] = None
    reader: ClassVar[type[JsonLinesReader]] = JsonLinesReader
    writer: ClassVar[type[JsonLinesWriter]] = JsonLinesWriter

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> FormatReader:
        return self.reader(source, location)

    def open_writer(self, sink: Any, schema: Any, *, properties: Any = None, metadata: Any = None) -> JsonLinesWriter:
        block_rows = self.block_rows or int((properties or {}).get(BLOCK_ROWS, LARGE))
        return self.writer(sink, schema, block_rows, metadata or {})


class Reader(JsonLinesReader):
    """A reader that passes each batch through a change."""

    def read(self, request: ReadRequest) -> Batches:
        for batch in super().read(request):
            yield self.changed(batch, request)

    def changed(self, batch: pa.RecordBatch, request: ReadRequest) -> pa.RecordBatch:
        return batch


def positioned(batch: pa.RecordBatch, positions: Any) -> pa.RecordBatch:
    at = batch.schema.get_field_index("_pos")
    return batch if at < 0 else batch.set_column(at, batch.schema.field(at), pa.array(positions, pa.int64()))


class RestartsPositionsWithEachBlock(Right):
    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            first, starts = 0, []
            for block in self.blocks:
                starts.append(first)
                first += block.rows
            for batch in super().read(request):
                positions = batch.column(batch.num_columns - 1).to_pylist() if request.positions else []
                yield positioned(batch, [at - max(start for start in starts if start <= at) for at in positions])


class WrapsPositionsAt65536(Right):
    class reader(Reader):
        def changed(self, batch: pa.RecordBatch, request: ReadRequest) -> pa.RecordBatch:
            if not request.positions:
                return batch
            return positioned(batch, pc.bit_wise_and(batch.column(batch.num_columns - 1), 0xFFFF))


class CountsPositionsFromTheSplit(Right):
    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            row = 0
            for batch in super().read(request):
                yield positioned(batch, range(row, row + batch.num_rows)) if request.positions else batch
                row += batch.num_rows


class CountsPositionsOfWhatAFilterLeaves(Right):
    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            row = 0
            for batch in super().read(request):
                counts = request.positions and request.row_filter is not None
                yield positioned(batch, range(row, row + batch.num_rows)) if counts else batch
                row += batch.num_rows


class ReadsBlocksThatASplitTouches(Right):
    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            split = request.split
            if split is not None:
                before = [block.offset for block in self.blocks if block.offset <= split.start]
                start = before[-1] if before else split.start
                split = Split(start, split.start + split.length - start)
            return super().read(replace(request, split=split))


class TakesTheByteAfterASplit(Right):
    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            split = request.split and Split(request.split.start, request.split.length + 1)
            return super().read(replace(request, split=split))


class LeavesOutTheBlockAtTheStartOfASplit(Right):
    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            split = request.split
            if split is not None and split.start > 0:
                split = Split(split.start + 1, split.length - 1)
            return super().read(replace(request, split=split))


class LosesTheFirstRowOfASplit(Right):
    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            first = request.split is not None and request.split.start > 0
            for batch in super().read(request):
                yield batch.slice(1) if first else batch
                first = False


class IgnoresSplits(Right):
    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            return super().read(replace(request, split=None))


class IsNeverDivided(Right):
    block_rows = 1 << 40


class DividesLargeBlocksOnly(Right):
    """Ignores the property for small blocks, so that no file of the kit is divided."""

    block_rows = LARGE * 10


class LosesRowsBeyond60000(Right):
    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            return row_range(super().read(request), 0, 60_000)


class WritesNoRowsBeyond60000OfABlock(Right):
    class writer(JsonLinesWriter):
        def write(self, batch: pa.RecordBatch) -> None:
            super().write(batch.slice(0, 60_000))


class MakesBatchesOfWholeBlocks(Right):
    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            return super().read(replace(request, batch_rows=max(request.batch_rows, 1 << 20)))


class RepeatsABlock(Right):
    class reader(JsonLinesReader):
        def read_block(self, number: int, columns: pa.Schema) -> Batches:
            return super().read_block(0 if self.blocks[number].rows == self.blocks[0].rows else number, columns)


class TakesAFilterForExclusive(Right):
    """A block is read only when all of its rows match."""

    class reader(JsonLinesReader):
        def read(self, request: ReadRequest) -> Batches:
            for batch in super().read(request):
                if request.row_filter is None or evaluate(request.row_filter, batch).false_count == 0:
                    yield batch


class AppliesAFilterWrongly(Right):
    """Filters row by row, and leaves out rows at the bound of a comparison."""

    class reader(Reader):
        def changed(self, batch: pa.RecordBatch, request: ReadRequest) -> pa.RecordBatch:
            if request.row_filter is None:
                return batch
            mask = evaluate(request.row_filter, batch).to_pylist()
            return batch.filter(
                pa.array([kept and at > 0 and mask[at - 1] for at, kept in enumerate(mask)], pa.bool_())
            )


class TakesNullForAnEmptyString(Right):
    class reader(Reader):
        def changed(self, batch: pa.RecordBatch, request: ReadRequest) -> pa.RecordBatch:
            columns = [column.fill_null("") if pa.types.is_string(column.type) else column for column in batch.columns]
            return pa.RecordBatch.from_arrays(columns, schema=batch.schema) if columns else batch


class LosesRowsWithNulls(Right):
    class writer(JsonLinesWriter):
        def write(self, batch: pa.RecordBatch) -> None:
            super().write(batch.drop_null())


class TellsTheMetricsOfTheLastBlock(Right):
    class writer(JsonLinesWriter):
        def close(self) -> WrittenFile:
            last = self._block if self._rows else None
            written = super().close()
            return written if last is None else replace(written, metrics=last.metrics())


class CountsNoNullsBeyond65536(Right):
    class writer(JsonLinesWriter):
        def close(self) -> WrittenFile:
            written = super().close()
            counts = {number: count & 0xFFFF for number, count in written.metrics.value_counts.items()}
            return replace(written, metrics=replace(written.metrics, value_counts=counts))


class TellsOffsetsOfNoBlock(Right):
    class writer(JsonLinesWriter):
        def close(self) -> WrittenFile:
            written = super().close()
            offsets = [offset + 5 for offset in written.split_offsets or ()]
            return replace(written, split_offsets=offsets or None)


MUTANTS: list[Mutant] = of(
    {
        RestartsPositionsWithEachBlock: ("test_positions_count_rows_of_the_file", "begins again at 0 at row 100"),
        WrapsPositionsAt65536: ("test_positions_go_on_through_a_large_file", "begins again at 0 at row 65,536"),
        CountsPositionsFromTheSplit: (
            "test_positions_are_those_of_the_file_in_every_split",
            "counted from the start of",
        ),
        CountsPositionsOfWhatAFilterLeaves: ("test_positions_are_right_under_filters_and_splits", "under a filter"),
        ReadsBlocksThatASplitTouches: ("test_splits_read_every_row_once", "splits overlap"),
        TakesTheByteAfterASplit: ("test_splits_at_the_offsets_read_every_row_once", "splits overlap"),
        LeavesOutTheBlockAtTheStartOfASplit: ("test_splits_at_the_offsets_read_every_row_once", "no split reads"),
        LosesTheFirstRowOfASplit: ("test_splits_read_every_row_once", "no split reads"),
        IgnoresSplits: ("test_splits_read_every_row_once", "splits overlap"),
        IsNeverDivided: ("test_a_file_of_small_blocks_can_be_divided", "cannot be divided"),
        DividesLargeBlocksOnly: ("test_a_file_of_small_blocks_can_be_divided", "`small_blocks`"),
        LosesRowsBeyond60000: ("test_a_file_of_many_rows_comes_back_whole", "60,000 to "),
        WritesNoRowsBeyond60000OfABlock: ("test_a_file_of_many_rows_comes_back_whole", "60,000 to "),
        MakesBatchesOfWholeBlocks: ("test_batches_of_a_large_file_are_bounded", "a batch of 70,000 rows"),
        RepeatsABlock: ("test_a_file_of_many_rows_comes_back_whole", "come more than once"),
        TakesAFilterForExclusive: ("test_a_filter_leaves_no_matching_row_out", "left out rows that match"),
        AppliesAFilterWrongly: ("test_a_filter_leaves_no_matching_row_out", "left out rows that match"),
        TakesNullForAnEmptyString: ("test_every_primitive_type_reads_back", "row 9 of 'v' is '', not None"),
        LosesRowsWithNulls: ("test_every_primitive_type_reads_back", "rows came back of"),
        TellsTheMetricsOfTheLastBlock: ("test_metrics_of_a_large_file_are_true", "record_count"),
        CountsNoNullsBeyond65536: ("test_metrics_of_a_large_file_are_true", "values of"),
        TellsOffsetsOfNoBlock: ("test_splits_at_the_offsets_read_every_row_once", "split_offsets"),
    }
)
