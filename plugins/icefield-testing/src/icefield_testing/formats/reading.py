"""Columns, batches, filters: a reader returns exactly the requested data."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from icefield.abc import FileFormat, FormatAbility, ReadRequest, TypedReader
from icefield.expressions import bind, parse
from icefield.schema import Schema, schema_to_arrow
from icefield.types import BinaryType, NestedField, StringType

from icefield_testing.format_data import NESTED, flat_table, table_of
from icefield_testing.formats.base import FormatChecks
from icefield_testing.formats.explain import check_matching, check_positions

Row = dict[str, Any]

# Filters on ``flat_table``, and the meaning of each.
FILTERS: Final[dict[str, Callable[[Row], bool]]] = {
    "n = 4321": lambda r: r["n"] == 4321,
    "n < 10": lambda r: r["n"] < 10,
    "n >= 7990": lambda r: r["n"] >= 7990,
    "n in (1, 7999)": lambda r: r["n"] in (1, 7999),
    "n != 17": lambda r: r["n"] != 17,
    "n = -1": lambda r: False,
    "s = 'value-5'": lambda r: r["s"] == "value-5",
    "s is null": lambda r: r["s"] is None,
    "s like 'value-9%'": lambda r: r["s"] is not None and r["s"].startswith("value-9"),
    "s not like 'value-9%'": lambda r: r["s"] is not None and not r["s"].startswith("value-9"),
    "d > 2600.0": lambda r: r["d"] is not None and r["d"] > 2600.0,
    "d is not null and n > 7000": lambda r: r["d"] is not None and r["n"] > 7000,
    "p.a = 77": lambda r: r["p"] is not None and r["p"]["a"] == 77,
    "p.b is null": lambda r: r["p"] is None,
    "n < 100 or s = 'value-96'": lambda r: r["n"] < 100 or r["s"] == "value-96",
}


class ReadingChecks(FormatChecks):
    """Checks of read requests."""

    def test_stored_types_are_one_for_each_leaf_or_none(self, file_format: FileFormat) -> None:
        """If this fails, ``stored_types`` has another number of items than the schema has leaves."""
        schema, table = flat_table(1)
        location, _ = self.write(file_format, schema, table)
        with self.open(file_format, location) as reader:
            stored = reader.stored_types if isinstance(reader, TypedReader) else ()
            leaves = sum(_leaves(field.type) for field in reader.schema)
            assert len(stored) in (0, leaves), f"{len(stored)} stored types of {leaves} leaves"
            assert all(isinstance(each, str) for each in stored)

    def test_columns_are_pruned_at_every_level(self, file_format: FileFormat) -> None:
        """If this fails, ``ReadRequest.columns`` with fewer children, or in another order, is not honoured."""
        schema, table = flat_table(100)
        location, _ = self.write(file_format, schema, table)
        with self.open(file_format, location) as reader:
            nested = reader.schema.field("p")
            pruned = nested.with_type(pa.struct([nested.type.field("b")]))
            for fields in (
                [pruned],
                [reader.schema.field("d"), reader.schema.field("n")],
                [pruned, reader.schema.field("s")],
            ):
                wanted = pa.schema(fields)
                got = pa.Table.from_batches(reader.read(ReadRequest(wanted)), wanted)
                assert got.column_names == [field.name for field in fields]
                assert got.num_rows == 100
                for field in fields:
                    expected = table.column(field.name)
                    if field.name == "p":
                        expected = pc.if_else(pc.is_null(expected), None, pc.struct_field(expected, "b"))
                        assert pc.struct_field(got.column("p"), "b").to_pylist() == expected.to_pylist()
                        assert got.column("p").is_null().to_pylist() == table.column("p").is_null().to_pylist()
                    else:
                        assert got.column(field.name).to_pylist() == expected.to_pylist()

    def test_rows_are_counted_without_any_column(self, file_format: FileFormat) -> None:
        """If this fails, a count of rows reads columns that it does not need, or finds none."""
        schema, table = flat_table(2_500)
        location, _ = self.write(file_format, schema, table, batch_rows=700)
        with self.open(file_format, location) as reader:
            assert reader.record_count in (None, 2_500)
            batches = [*reader.read(ReadRequest(pa.schema([]), batch_rows=300))]
            assert reader.record_count in (None, 2_500)
        assert sum(batch.num_rows for batch in batches) == 2_500
        assert {batch.num_columns for batch in batches} == {0}

    @pytest.mark.parametrize("batch_rows", [1, 150, 1_999, 2_000, 100_000])
    def test_batches_are_bounded(self, file_format: FileFormat, batch_rows: int) -> None:
        """If this fails, ``batch_rows`` is ignored, and a reader of large files runs out of memory."""
        schema, table = flat_table(2_000 if batch_rows > 1 else 20)
        location, _ = self.write(file_format, schema, table)
        with self.open(file_format, location) as reader:
            batches = list(reader.read(ReadRequest(reader.schema, batch_rows=batch_rows)))
            self.check_equal(pa.Table.from_batches(batches, reader.schema), table)
        assert max(batch.num_rows for batch in batches) <= batch_rows

    def test_batches_have_exactly_the_types_asked_for(self, file_format: FileFormat) -> None:
        """If this fails, a batch comes as large strings, dictionaries, or with other names for elements."""
        for kind in NESTED.values():
            schema, table = table_of(kind, [None], required=False)
            location, _ = self.write(file_format, schema, table)
            with self.open(file_format, location) as reader:
                for batch in reader.read(ReadRequest(reader.schema)):
                    assert batch.schema.equals(reader.schema, check_metadata=False)
                    batch.validate(full=True)

    def test_one_reader_reads_several_times(self, file_format: FileFormat) -> None:
        """If this fails, reading moves something in the reader that the next ``read`` begins from."""
        schema, table = flat_table(3_000)
        location, _ = self.write(file_format, schema, table, batch_rows=500)
        with self.open(file_format, location) as reader:
            first, second = reader.read(ReadRequest(reader.schema)), reader.read(ReadRequest(reader.schema))
            next(first)
            self.check_equal(pa.Table.from_batches(second, reader.schema), table)

    def test_many_threads_read_one_file(self, file_format: FileFormat) -> None:
        """If this fails, readers share a position, a buffer or a cache that is not theirs alone."""
        schema, table = flat_table(2_000)
        location, _ = self.write(file_format, schema, table, batch_rows=300)
        with ThreadPoolExecutor(6) as pool:
            for got in pool.map(lambda _: self.read_all(file_format, location, schema), range(12)):
                self.check_equal(got, table)

    # -- filters

    def test_a_filter_leaves_no_matching_row_out(self, file_format: FileFormat) -> None:
        """If this fails, a filter is taken for more than a hint, or skipping by statistics is unsound: look at nulls,
        NaN and truncated bounds, and at an ``Or`` of which one test cannot be translated.
        """
        schema, table = flat_table(8_000)
        location, _ = self.write(file_format, schema, table, batch_rows=500, properties=self.small_blocks)
        for string in FILTERS:
            row_filter = bind(schema, parse(string))
            found = self.numbered(file_format, location, row_filter=row_filter, positions=False)
            check_matching(found.numbers, _matching(table, string), string)

    def test_positions_are_right_under_filters_and_splits(self, file_format: FileFormat) -> None:
        """If this fails, ``_pos`` counts the rows that were read, and not those that the filter skipped before them."""
        schema, table = flat_table(8_000)
        location, written = self.write(file_format, schema, table, batch_rows=500, properties=self.small_blocks)
        splits = FormatAbility.SPLITS in file_format.abilities
        rng = random.Random(3)
        for string in FILTERS:
            row_filter = bind(schema, parse(string))
            cuts = sorted({0, written.size, *(rng.randrange(written.size) for _ in range(5))})
            readings = (
                self.in_splits(file_format, location, cuts, row_filter)
                if splits
                else [self.numbered(file_format, location, row_filter=row_filter)]
            )
            check_positions(readings)
            found = [number for reading in readings for number in reading.numbers]
            check_matching(found, _matching(table, string), string)

    def test_a_filter_passes_over_nan_and_negative_zero_rightly(self, file_format: FileFormat) -> None:
        """If this fails, a bound that is NaN, or 0.0 for -0.0, hides a row group that matches."""
        schema, _ = table_of(_double(), [], required=False)
        values = [float("nan")] * 50 + [-0.0] * 50 + [0.0] * 50 + [None] * 50 + [5.0, float("nan")] * 25
        _, table = table_of(_double(), values, required=False)
        location, _ = self.write(file_format, schema, table, batch_rows=50, properties=self.small_blocks)
        expected: dict[str, Callable[[Any], bool]] = {
            "v = 0.0": lambda v: v == 0.0,
            "v > 1.0": lambda v: v is not None and v > 1.0,
            "v >= 0.0": lambda v: v is not None and v >= 0.0,
            "v < 0.0": lambda v: False,
            "v is nan": lambda v: v is not None and v != v,
            "v is not nan": lambda v: v is not None and v == v,
            "v is null": lambda v: v is None,
        }
        for string, matches in expected.items():
            found = self.numbered(file_format, location, row_filter=bind(schema, parse(string)), positions=False)
            wanted = {at for at, value in enumerate([*values, None]) if matches(value)}
            check_matching(found.numbers, wanted, string)

    @pytest.mark.parametrize("batch_rows", [100, 100_000])
    def test_columns_come_as_dictionaries(self, file_format: FileFormat, batch_rows: int) -> None:
        """If this fails, a column of ``ReadRequest.dictionaries`` comes plain, or with other values or nulls."""
        if FormatAbility.DICTIONARIES not in file_format.abilities:
            pytest.skip("the format declares no DICTIONARIES")
        schema = Schema(
            NestedField(1, "t", StringType()), NestedField(2, "b", BinaryType()), NestedField(3, "u", StringType())
        )
        rows = [
            {"t": None if n % 7 == 0 else f"t{n % 5}", "b": None if n < 200 else b"\xff\0"[: n % 3], "u": f"u{n}"}
            for n in range(1_000)
        ]
        table = pa.Table.from_pylist(rows, schema=schema_to_arrow(schema))
        location, _ = self.write(file_format, schema, table)
        with self.open(file_format, location) as reader:
            columns = pa.schema([reader.schema.field(name) for name in ("u", "b", "t")])
            request = ReadRequest(columns, dictionaries=frozenset({1, 2}), positions=True, batch_rows=batch_rows)
            batches = list(reader.read(request))
        for batch in batches:
            batch.validate(full=True)
            kinds = [pa.string(), pa.dictionary(pa.int32(), pa.binary()), pa.dictionary(pa.int32(), pa.string())]
            assert [column.type for column in batch.columns] == [*kinds, pa.int64()]
        got = pa.Table.from_batches(batches).select(["t", "b", "u"]).to_pylist()
        assert got == rows


def _double() -> Any:
    return flat_table(0)[0].find_type("d")


def _matching(table: pa.Table, string: str) -> set[int]:
    """The row numbers that a filter matches, found without the plugin."""
    return {row["n"] for row in table.to_pylist() if FILTERS[string](row)}


def _leaves(kind: pa.DataType) -> int:
    return sum(_leaves(kind.field(at).type) for at in range(kind.num_fields)) if kind.num_fields else 1
