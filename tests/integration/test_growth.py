"""Twice the columns, partitions, snapshots, deletes, branches, edits or values take about twice the CPU time.

Each shape prepares an input of a size and returns the work that is timed. ``growth`` compares n with 2n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import icefield
import pyarrow as pa
import pytest
from delete_files import commit, data_files, equality_deletes
from growth import MOST_GROWTH, Work, growth
from icefield.catalog import Table
from icefield.engine import EqualityDeletes
from icefield.expressions import In, bound
from icefield.manifest import DataFile
from icefield.scan.deletes.store import HELD_BYTES
from icefield.toolkit import conform
from icefield.transaction import UpdateSchema
from icefield.types.arrow.types import plain_array
from tables import new_table

pytestmark = pytest.mark.slow

BATCHES = 10


def names(count: int) -> list[str]:
    return [f"c{number}" for number in range(count)]


def wide_schema(columns: int) -> pa.Schema:
    return pa.schema([(name, pa.int64()) for name in names(columns)])


def wide_batch(columns: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([1, 2], pa.int64())] * columns, schema=wide_schema(columns))


def wide_table(columns: int, rows: int = 0, **properties: str) -> Table:
    table = new_table(schema=wide_schema(columns), **properties)
    for _ in range(rows):
        table.append(wide_batch(columns))
    return table


# Columns.


def appending_batches(columns: int) -> Work:
    table, batch = wide_table(columns), wide_batch(columns)
    return lambda: table.append(iter([batch] * BATCHES))


def conforming_batches(columns: int) -> Work:
    batch = wide_batch(columns)
    return lambda: [conform(batch, batch.schema) for _ in range(BATCHES)]


COLUMNS = {appending_batches: 400, conforming_batches: 400}


@pytest.mark.parametrize("shape", COLUMNS, ids=lambda shape: shape.__name__)
def test_twice_the_columns_take_about_twice_the_time(shape) -> None:
    assert growth(shape, COLUMNS[shape]) <= MOST_GROWTH


# Edits: one update edits half of the columns, so that columns and edits double together.


def editing(edit: Callable[[UpdateSchema, int], object], **properties: str) -> Callable[[int], Work]:
    def prepared(columns: int) -> Work:
        table = wide_table(columns, **properties)

        def work() -> None:
            with table.update_schema() as update:
                for number in range(0, columns, 2):
                    edit(update, number)

        return work

    return prepared


def in_a_struct(columns: int) -> Work:
    fields = [pa.field(name, pa.int64()) for name in names(columns)]
    table = new_table(schema=pa.schema([("s", pa.struct(fields)), ("l", pa.list_(pa.struct(fields)))]))

    def work() -> None:
        with table.update_schema() as update:
            for number in range(0, columns, 2):
                update.rename_column(("s", f"c{number}"), f"r{number}").rename_column(f"l.c{number}", f"r{number}")

    return work


def bringing_back(columns: int) -> Work:
    table = wide_table(columns)
    with table.update_schema() as update:
        for name in names(columns)[::2]:
            update.delete_column(name)

    def work() -> None:
        with table.update_schema() as update:
            for name in names(columns)[::2]:
                update.undelete_column((name,))

    return work


def uniting(columns: int) -> Work:
    table = wide_table(columns // 2)
    return lambda: table.update_schema().union_by_name(wide_schema(columns)).commit()


def identifying(columns: int) -> Work:
    schema = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in names(columns)])
    table = new_table(schema=schema)
    return lambda: table.update_schema().set_identifier_fields(*names(columns)).commit()


def partitioning(fields: int) -> Work:
    table = wide_table(fields)

    def work() -> None:
        with table.update_spec() as update:
            for name in names(fields):
                update.add_field(name, "bucket[4]")
        with table.update_spec() as update:
            for name in names(fields)[::2]:
                update.remove_field(f"{name}_bucket_4")

    return work


def sorting(fields: int) -> Work:
    table = wide_table(fields)

    def work() -> None:
        with table.update_sort_order() as update:
            for name in names(fields):
                update.asc(name)

    return work


EDITS = {
    "adding": (editing(lambda update, number: update.add_column(f"n{number}", "long")), 400),
    "renaming": (editing(lambda update, number: update.rename_column(f"c{number}", f"r{number}")), 400),
    "renaming by paths": (editing(lambda update, number: update.rename_column((f"c{number}",), f"r{number}")), 400),
    "renaming under a name mapping": (
        editing(
            lambda update, number: update.rename_column(f"c{number}", f"r{number}"),
            **{"schema.name-mapping.default": "[]"},
        ),
        400,
    ),
    "documenting": (editing(lambda update, number: update.update_column(f"c{number}", doc="why")), 400),
    "deleting": (editing(lambda update, number: update.delete_column(f"c{number}")), 400),
    "moving to the front": (editing(lambda update, number: update.move_first(f"c{number}")), 400),
    "moving behind": (editing(lambda update, number: update.move_after(f"c{number}", f"c{number + 1}")), 400),
    "moving before the second": (editing(lambda update, number: update.move_before(f"c{number}", "c1")), 400),
    "renaming in a struct and a list": (in_a_struct, 300),
    "bringing back": (bringing_back, 400),
    "uniting": (uniting, 400),
    "identifying": (identifying, 400),
    "partitioning": (partitioning, 400),
    "sorting": (sorting, 300),
}


@pytest.mark.parametrize("shape", EDITS)
def test_twice_the_edits_of_twice_the_columns_take_about_twice_the_time(shape: str) -> None:
    assert growth(*EDITS[shape]) <= MOST_GROWTH


# Deletes: data files and delete files double together.


class Unopened(EqualityDeletes):
    """Delete files with one row of the key 1 each, which are never opened, so that only the lookups take time."""

    def _columns(self, file: DataFile) -> Iterator[list[pa.Array]]:
        yield [pa.array([1], pa.int64())]


KEYED = pa.schema([("id", pa.int64()), ("key", pa.int64())])
ONE_ROW = pa.record_batch([pa.array([7]), pa.array([1])], schema=KEYED)


def one_key(number: int, partition: int) -> DataFile:
    return DataFile(
        file_path=f"memory://d/{number}",
        file_format="parquet",
        record_count=1,
        file_size_in_bytes=1,
        partition=(partition,),
        spec_id=1,
    )


def looking_up(tasks: list[list[DataFile]]) -> Work:
    table = new_table(schema=KEYED)
    deletes = Unopened(table.io, table.schema(), (2,), None, HELD_BYTES)

    def work() -> None:
        for files in tasks:
            lookup = deletes.lookup(files)
            assert lookup is not None
            assert len(lookup.matches(table.schema(), ONE_ROW)) == 1

    return work


def one_key_in_each_partition(count: int) -> Work:
    return looking_up([[one_key(5 * place + at, place) for at in range(5)] for place in range(count)])


def one_key_in_one_partition(count: int) -> Work:
    files = [one_key(number, 0) for number in range(5 * count)]
    # Fewer delete files apply to a newer data file; reading the first data file reads most of the delete files.
    return looking_up([files, *(files[-5 * place :] for place in range(1, min(count, 40)))])


@cache
def reading_one_key(files: int) -> Work:
    table = new_table(schema=KEYED, **{"format-version": "2"})
    with table.update_spec() as update:
        update.add_identity("id")
    table.append(pa.table({"id": range(files), "key": [1] * files}))
    commit(table, *(equality_deletes(table, ["key"], [{"key": 1}], like=file) for file in data_files(table)))

    def read() -> None:
        icefield.clear_caches()
        assert table.scan().to_arrow().num_rows == 0

    return read


DELETES = {one_key_in_each_partition: 300, one_key_in_one_partition: 200, reading_one_key: 60}


@pytest.mark.parametrize("shape", DELETES, ids=lambda shape: shape.__name__)
def test_twice_the_delete_files_of_twice_the_files_take_about_twice_the_time(shape) -> None:
    assert growth(shape, DELETES[shape]) <= MOST_GROWTH


# Values: files and the values of one IN double together. Each file has two rows, and every value is between them.


@cache
def files_of_two_rows(files: int) -> Table:
    table = new_table(schema=pa.schema([("id", pa.int64()), ("name", pa.string())]))
    with table.transaction() as transaction:
        for _ in range(files):
            transaction.append(pa.table({"id": [0, 10**9], "name": ["a", "z"]}))
    return table


def reading_among(column: str, value: Callable[[int], object]) -> Callable[[int], Work]:
    def prepared(size: int) -> Work:
        scan = files_of_two_rows(size).scan().filter(In(column, [value(number) for number in range(1, 200 * size)]))
        return lambda: scan.to_arrow()

    return prepared


VALUES = {
    "numbers": reading_among("id", int),
    "strings": reading_among("name", "k{}".format),
}


@pytest.mark.parametrize("shape", VALUES)
def test_twice_the_values_for_twice_the_files_take_about_twice_the_time(shape: str) -> None:
    assert growth(VALUES[shape], 20) <= MOST_GROWTH


def test_the_values_of_a_filter_become_arrow_data_once_and_not_for_each_file(monkeypatch) -> None:
    made: list[int] = []

    def noted(values, kind):
        made.append(len(values))
        return plain_array(values, kind)

    monkeypatch.setattr(bound, "plain_array", noted)
    files_of_two_rows(20).scan().filter(In("name", ["a", "b", "c"])).to_arrow()
    assert made.count(3) == 1


def test_work_whose_time_grows_with_the_square_is_told_apart() -> None:
    def looking_at_all_for_each(size: int) -> Work:
        batch = wide_batch(size)
        return lambda: [batch.columns[place] for place in range(size)]

    assert growth(looking_at_all_for_each, 200) > MOST_GROWTH
