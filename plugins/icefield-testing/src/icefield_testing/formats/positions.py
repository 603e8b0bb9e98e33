"""Positions and splits: each row once, with its place in the file, however the file is divided."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.abc import FileFormat, FormatAbility, ReadRequest, Split, WrittenFile
from icefield.schema import Schema

from icefield_testing.format_data import flat_table, tables
from icefield_testing.formats.base import FormatChecks, examples
from icefield_testing.formats.explain import check_positions, check_rows

_LEAST_PIECES = 3


class PositionChecks(FormatChecks):
    """Checks of ``ReadRequest.positions`` and ``ReadRequest.split``."""

    def test_positions_count_rows_of_the_file(self, file_format: FileFormat) -> None:
        """If this fails, ``_pos`` begins again with each batch, block or row group: it counts the rows of the file."""
        schema, table = flat_table(3_000)
        location, _ = self.write(file_format, schema, table, batch_rows=700, properties=self.small_blocks)
        with self.open(file_format, location) as reader:
            request = ReadRequest(pa.schema([reader.schema.field("n")]), positions=True, batch_rows=512)
            for batch in reader.read(request):
                assert batch.schema.names == ["n", "_pos"]
                assert batch.schema.field("_pos").type == pa.int64()
            alone = [*reader.read(ReadRequest(pa.schema([]), positions=True))]
        found = self.numbered(file_format, location, batch_rows=512)
        check_rows([found], 3_000)
        check_positions([found])
        positions = [pos for batch in alone for pos in batch.column(0).to_pylist()]
        assert positions == list(range(3_000)), "positions without any other column are others than with one"

    def test_a_file_of_small_blocks_can_be_divided(self, file_format: FileFormat) -> None:
        """If this fails, SPLITS is declared for files that are never divided, or the suite does not know how the writer
        makes small blocks: give its properties as ``small_blocks``.
        """
        self.needs_splits(file_format)
        location, written = self._blocks(file_format)
        cuts = sorted({*(written.size * piece // 40 for piece in range(41)), *(written.split_offsets or ())})
        filled = [reading for reading in self.in_splits(file_format, location, cuts) if reading.numbers]
        assert len(filled) >= _LEAST_PIECES, (
            f"a file of 20,000 rows in {written.size:,} bytes, written with {dict(self.small_blocks)}, cannot be "
            f"divided: its rows come with {len(filled)} of {len(cuts) - 1} splits. Give the properties by which the "
            f"writer makes small blocks as `small_blocks` of the suite; a format that reads whole files only does not "
            f"declare SPLITS"
        )

    def test_splits_read_every_row_once(self, file_format: FileFormat) -> None:
        """If this fails, a block is read by two splits or by none: exactly that split reads it in which it starts, its
        first byte included and the byte after its last not.
        """
        self.needs_splits(file_format)
        location, written = self._blocks(file_format)
        rng = random.Random(7)
        for pieces in (1, 2, 3, 7, 40):
            cuts = sorted({0, written.size, *(rng.randrange(written.size) for _ in range(pieces - 1))})
            check_rows(self.in_splits(file_format, location, cuts, positions=False), 20_000)

    def test_positions_are_those_of_the_file_in_every_split(self, file_format: FileFormat) -> None:
        """If this fails, ``_pos`` counts the rows of the split: it begins with the rows of the blocks before it."""
        self.needs_splits(file_format)
        location, written = self._blocks(file_format)
        for pieces in (2, 7):
            cuts = [written.size * piece // pieces for piece in range(pieces + 1)]
            check_positions(self.in_splits(file_format, location, cuts))

    def test_splits_at_the_offsets_read_every_row_once(self, file_format: FileFormat) -> None:
        """If this fails, ``split_offsets`` are not where blocks, row groups or stripes start, or a block that starts at
        the first byte of a split is taken for one of the split before.
        """
        self.needs_splits(file_format)
        location, written = self._blocks(file_format)
        offsets = written.split_offsets
        if not offsets:
            pytest.skip("the format gives no offsets")
        with self.open(file_format, location) as reader:
            assert reader.split_offsets in (None, offsets), (
                f"split_offsets of the reader are {reader.split_offsets}, those of the writer {offsets}"
            )
        for shift in (0, 1, -1):
            cuts = sorted({0, written.size, *(offset + shift for offset in offsets if offset + shift > 0)})
            check_rows(self.in_splits(file_format, location, cuts, positions=False), 20_000)
        for start, end in pairwise([*offsets, written.size]):
            found = self.numbered(file_format, location, Split(start, end - start))
            assert found.numbers, f"no block starts in the split that begins at {start:,}, one of the split_offsets"

    def test_split_offsets_are_inside_the_file(self, file_format: FileFormat) -> None:
        """If this fails, ``split_offsets`` are unsorted or count from somewhere else than the file's start."""
        _, written = self._blocks(file_format)
        offsets = written.split_offsets
        if offsets is not None:
            assert offsets == sorted(set(offsets))
            assert all(0 <= offset < written.size for offset in offsets)

    @examples(15)
    @given(made=tables(), cuts=st.lists(st.floats(0, 1), max_size=4), batch_rows=st.integers(1, 8))
    def test_any_table_is_read_in_any_splits(
        self, file_format: FileFormat, made: tuple[Schema, pa.Table], cuts: list[float], batch_rows: int
    ) -> None:
        """If this fails, Hypothesis prints the smallest table and cuts that lose or repeat a row."""
        schema, table = made
        location, written = self.write(file_format, schema, table, batch_rows=batch_rows)
        if FormatAbility.SPLITS not in file_format.abilities:
            cuts = []
        places = sorted({0, written.size, *(int(cut * written.size) for cut in cuts)})
        with self.open(file_format, location) as reader:
            batches = []
            for start, end in pairwise(places):
                split = Split(start, end - start) if cuts else None
                request = ReadRequest(reader.schema, split=split, positions=True, batch_rows=batch_rows)
                batches += [*reader.read(request)]
            positions = [at for batch in batches for at in batch.column(batch.num_columns - 1).to_pylist()]
            lost = set(range(table.num_rows)).difference(positions)
            assert not lost, f"{len(lost)} of {table.num_rows} rows are missing in splits at {places}"
            twice = len(positions) - len(set(positions))
            assert not twice, f"{twice} of {table.num_rows} rows come twice in splits at {places}"
            assert positions == list(range(table.num_rows)), f"the rows come in the order {positions}"
            bare = [batch.select(range(batch.num_columns - 1)) for batch in batches]
            self.check_equal(pa.Table.from_batches(bare, reader.schema), table)

    def test_deleted_rows_may_be_skipped_and_no_others(self, file_format: FileFormat) -> None:
        """If this fails, ``skipped_rows`` hides a row that is not among them, or positions count only the rows that
        come; or SKIPS is declared and parts of the file are read in which all rows are deleted.
        """
        if FormatAbility.SKIPS not in file_format.abilities:
            pytest.skip("the format declares no SKIPS")
        location, _ = self._blocks(file_format)
        for deleted in ([], [0], [5, 19_999], range(20_000), range(9, 19_990), range(0, 20_000, 2)):
            skipped = np.array(deleted, np.int64)
            with self.open(file_format, location) as reader:
                wanted = pa.schema([reader.schema.field("n")])
                batches = [*reader.read(ReadRequest(wanted, positions=True, skipped_rows=skipped))]
            pairs = [pair for batch in batches for pair in zip(*(c.to_pylist() for c in batch.columns), strict=True)]
            positions = [place for _, place in pairs]
            assert positions == sorted(set(positions)), "positions are not ascending"
            for number, place in pairs:
                assert number == place, f"`_pos` of row {number:,} is {place:,} where {len(deleted):,} rows are deleted"
            lost = sorted(set(range(20_000)).difference(positions, deleted))
            assert not lost, f"{len(lost):,} rows are missing that are not deleted, row {lost[0]:,} first"
            if len(deleted) > 19_000:
                read = len(positions)
                assert read < 20_000, f"{read:,} rows are read of which {len(deleted):,} are deleted"

    def _blocks(self, file_format: FileFormat) -> tuple[str, WrittenFile]:
        """A file of 20,000 rows in small blocks."""
        schema, table = flat_table(20_000)
        return self.write(file_format, schema, table, batch_rows=1_000, properties=self.small_blocks)
