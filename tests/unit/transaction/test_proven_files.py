"""Files whose rows all match by their statistics are dropped and counted without being opened."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from icefield.builtin.memory import MemoryFileSystem
from icefield.catalog import Table
from icefield.errors import InvalidArgument
from icefield.schema import Schema
from icefield.types import DoubleType, LongType, NestedField, StructType
from tables import entries, manifests, new_table

NAN = float("nan")
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "x", DoubleType()),
    NestedField(3, "s", StructType(NestedField(4, "n", LongType(), required=True)), required=True),
    NestedField(5, "o", StructType(NestedField(6, "n", LongType(), required=True))),
)


ROWS = {"id": [5, 6, 7], "x": [1.0, None, NAN], "s": [{"n": 1}, {"n": 2}, {"n": 3}], "o": [None, {"n": 5}, {"n": 6}]}


def appended_without_null_counts(table: Table) -> None:
    """Append the rows in a file as written by a writer that does not count nulls."""
    other = new_table(schema=SCHEMA)
    other.append(pa.table(ROWS, schema=other.scan().to_arrow().schema))
    (file,) = entries(other, manifests(other)[0]).data_files()
    table.update_snapshot().merge_append().append_file(replace(file, null_value_counts={}, value_counts={})).commit()


def without_data_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every opening of a data file fail from now on."""
    opened = MemoryFileSystem.open_input

    def refuse(self: MemoryFileSystem, location: str) -> object:
        assert not location.endswith(".parquet"), f"{location} is opened"
        return opened(self, location)

    monkeypatch.setattr(MemoryFileSystem, "open_input", refuse)


@pytest.mark.parametrize("text", ["id > 4", "id != 9", "id not in (1, 9)", "s.n < 4", "s.n != 4"])
def test_a_file_that_a_required_column_proves_is_dropped_and_counted_unread(text, monkeypatch):
    table = new_table(schema=SCHEMA)
    appended_without_null_counts(table)
    without_data_files(monkeypatch)
    assert table.scan(text).count() == 3
    table.delete(text)
    assert table.current_snapshot().summary["deleted-records"] == "3"
    assert table.scan().count() == 0


@pytest.mark.parametrize("text", ["o.n < 9", "o.n != 9", "x != 9"])
def test_a_file_whose_optional_column_has_no_count_of_nulls_is_read(text, monkeypatch):
    table = new_table(schema=SCHEMA)
    appended_without_null_counts(table)
    matching = table.scan(text).to_arrow().num_rows
    assert table.scan(text).count() == matching < 3
    with monkeypatch.context() as refusing:
        without_data_files(refusing)
        with pytest.raises(AssertionError, match="is opened"):
            table.scan(text).count()
    table.delete(text)
    assert table.scan().count() == 3 - matching


@pytest.mark.parametrize("text", ["x != 9", "x not in (8, 9)", "x != 9 and id > 4"])
def test_a_file_with_nan_is_dropped_and_counted_unread_where_nan_matches(text, monkeypatch):
    table = new_table(schema=SCHEMA)
    table.append(pa.table({**ROWS, "x": [1.0, NAN, NAN]}, schema=table.scan().to_arrow().schema))
    assert table.scan(text).to_arrow().num_rows == 3
    without_data_files(monkeypatch)
    assert table.scan(text).count() == 3
    table.delete(text)
    assert table.scan().count() == 0


def test_a_count_of_nulls_states_more_than_a_column_that_became_required():
    table = new_table(schema=Schema(NestedField(1, "id", LongType())))
    table.append(pa.table({"id": [5, None]}))
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("id", required=True)
    assert table.scan("id > 4").count() == table.scan("id > 4").to_arrow().num_rows == 1
    with pytest.raises(InvalidArgument, match="holds a null"):
        table.delete("id > 4")  # the row that does not match is not dropped with the others


def test_engines_ask_which_files_a_filter_matches_as_a_whole_and_which_in_part():
    table = new_table(schema=SCHEMA)
    for first in (0, 10, 20):
        columns = {"id": [first, first + 9], "x": [1.0, 2.0], "s": [{"n": 1}, {"n": 2}], "o": [None, None]}
        table.append(pa.table(columns, schema=table.scan().to_arrow().schema))
    paths = {task.file.file_path for task in table.scan("id < 10").plan_files()}
    transaction = table.transaction()
    whole, some = transaction.matching_files("id < 15")
    assert set(whole) == paths
    assert len(some) == 1
    assert transaction.matching_files("id < 0") == ([], [])
    assert transaction.matching_files("ID < 0", case_sensitive=False) == ([], [])
    transaction.abort()
