"""Files with more rows than fit into a batch, a block or a small integer."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from icefield import MemoryFileSystem
from icefield.abc import FileFormat, FormatAbility, ReadRequest, WrittenFile
from icefield.expressions import bind, parse
from icefield.schema import Schema, schema_to_arrow
from icefield.types import LongType, NestedField, StringType

from icefield_testing.formats.base import FormatChecks, fresh
from icefield_testing.formats.explain import check_matching, check_positions, check_rows

ROWS: Final = 200_000
"""More than the 131,072 rows of the largest batch that is asked for, and no multiple of a power of two."""

_SCHEMA: Final = Schema(NestedField(1, "n", LongType(), required=True), NestedField(2, "s", StringType()))

_FILTERS: Final[dict[str, Callable[[int], bool]]] = {
    "n >= 199990": lambda n: n >= 199_990,
    "n in (0, 60000, 65535, 65536, 131071, 131072, 199999)": lambda n: (
        n in (0, 60_000, 65_535, 65_536, 131_071, 131_072, 199_999)
    ),
    "s is null": lambda n: n % 7_001 == 0,
}

BLOCKS: Final = pytest.mark.parametrize("small", [False, True], ids=["the writer's own blocks", "small blocks"])


class LargeFileChecks(FormatChecks):
    """Checks of files of 200,000 rows, in blocks as large as the writer makes them, and in ``small_blocks``."""

    @BLOCKS
    def test_a_file_of_many_rows_comes_back_whole(self, file_format: FileFormat, small: bool) -> None:
        """If this fails, rows are lost or repeated where a block or a buffer ends; the message says at which row."""
        location, written = self._write(file_format, small)
        found = self.numbered(file_format, location, positions=False)
        check_rows([found], ROWS)
        with self.open(file_format, location) as reader:
            got = pa.Table.from_batches(reader.read(ReadRequest(reader.schema)), reader.schema)
        self.check_equal(got, _table())
        stated = written.metrics.record_count
        assert stated == ROWS, f"record_count is {stated:,}, not {ROWS:,}"

    @BLOCKS
    def test_batches_of_a_large_file_are_bounded(self, file_format: FileFormat, small: bool) -> None:
        """If this fails, a batch is as large as a block: slice it, ``batch_rows`` is the most that may come."""
        location, _ = self._write(file_format, small)
        for batch_rows in (1_000, 65_536, 131_072):
            found = self.numbered(file_format, location, batch_rows=batch_rows, positions=False)
            largest = max(found.batches)
            assert largest <= batch_rows, f"a batch of {largest:,} rows, where {batch_rows:,} may come"
            check_rows([found], ROWS)

    @BLOCKS
    def test_positions_go_on_through_a_large_file(self, file_format: FileFormat, small: bool) -> None:
        """If this fails, ``_pos`` begins again with a block or a batch, or is counted in too few bits."""
        location, _ = self._write(file_format, small)
        found = self.numbered(file_format, location)
        check_positions([found])
        check_rows([found], ROWS)

    @BLOCKS
    def test_splits_of_a_large_file_read_every_row_once(self, file_format: FileFormat, small: bool) -> None:
        """If this fails, blocks are read by two splits or by none, or ``_pos`` counts from the split's start."""
        self.needs_splits(file_format)
        location, written = self._write(file_format, small)
        rng, offsets = random.Random(5), written.split_offsets or []
        inner = [offsets[1 :: max(1, len(offsets) // 8)], [rng.randrange(written.size) for _ in range(6)]]
        for places in inner:
            readings = self.in_splits(file_format, location, sorted({0, written.size, *places}))
            check_rows(readings, ROWS)
            check_positions(readings)

    @BLOCKS
    def test_a_filter_on_a_large_file_leaves_no_matching_row_out(self, file_format: FileFormat, small: bool) -> None:
        """If this fails, a block with a matching row was skipped, or ``_pos`` counts only the rows that were read."""
        location, written = self._write(file_format, small)
        divided = FormatAbility.SPLITS in file_format.abilities
        cuts = [written.size * piece // 3 for piece in range(4)] if divided else None
        for string, matches in _FILTERS.items():
            row_filter = bind(_SCHEMA, parse(string))
            readings = (
                [self.numbered(file_format, location, row_filter=row_filter)]
                if cuts is None
                else self.in_splits(file_format, location, cuts, row_filter)
            )
            check_positions(readings)
            found = [number for reading in readings for number in reading.numbers]
            check_matching(found, {n for n in range(ROWS) if matches(n)}, string)

    @BLOCKS
    def test_metrics_of_a_large_file_are_true(self, file_format: FileFormat, small: bool) -> None:
        """If this fails, metrics are those of one block, or a count does not fit where it is kept."""
        location, written = self._write(file_format, small)
        table = _table()
        with self.open(file_format, location) as reader:
            found = reader.metrics()
            count = reader.record_count
        assert count in (None, ROWS), f"record_count of the open file is {count:,}, there are {ROWS:,} rows"
        for source, metrics in (("writer", written.metrics), ("reader", found)):
            assert metrics.record_count == ROWS, f"record_count of the {source} is {metrics.record_count:,}"
            for number, name in ((1, "n"), (2, "s")):
                column = table.column(name)
                counted = metrics.value_counts.get(number, ROWS)
                assert counted == ROWS, f"the {source} counts {counted:,} values of '{name}', there are {ROWS:,}"
                nulls = metrics.null_value_counts.get(number, column.null_count)
                assert nulls == column.null_count, f"the {source} counts {nulls:,} nulls of '{name}'"
                least, greatest = pc.min_max(column).as_py().values()
                lower = metrics.lower_bounds.get(number, least)
                assert lower <= least, f"lower bound of '{name}' by the {source}: {lower!r}, there is {least!r}"
                upper = metrics.upper_bounds.get(number, greatest)
                assert upper >= greatest, f"upper bound of '{name}' by the {source}: {upper!r}, there is {greatest!r}"

    def _write(self, file_format: FileFormat, small: bool) -> tuple[str, WrittenFile]:
        """Write one batch that is larger than a usual buffer, and then many of an odd size."""
        properties: Mapping[str, Any] = self.small_blocks if small else {}
        whole = _table().combine_chunks().to_batches()[0]
        location = fresh()
        sink = MemoryFileSystem().open_output(location)
        with file_format.open_writer(sink, _SCHEMA, properties=properties) as writer:
            writer.write(whole.slice(0, 140_000))
            for start in range(140_000, ROWS, 7_919):
                writer.write(whole.slice(start, 7_919))
            return location, writer.close()


@cache
def _table() -> pa.Table:
    numbers = pa.array(range(ROWS), pa.int64())
    strings = pa.array([None if n % 7_001 == 0 else f"s{n % 1_009}" for n in range(ROWS)], pa.string())
    return pa.Table.from_arrays([numbers, strings], schema=schema_to_arrow(_SCHEMA))
