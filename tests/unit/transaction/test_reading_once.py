"""Changes by keys read a file again only when memory requires it, and give the same result under any memory bound."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from icefield import FileIO
from icefield.scan.reading import TaskReader
from icefield.transaction.row_level import changed_files, file_rows, filtered_rows
from tables import ids, new_table, rows

MODES = ["copy-on-write", "merge-on-read"]


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns of each read of a file."""
    made: list[list[str]] = []
    read = file_rows.FileRows._read

    def noted(of: Any, columns: Any, row_filter: Any) -> Any:
        made.append([field.name for field in columns.fields])
        return read(of, columns, row_filter)

    monkeypatch.setattr(file_rows.FileRows, "_read", noted)
    return made


def table_of(mode: str, *files: pa.Table, version: int = 3) -> Any:
    table = new_table(properties={"write.merge.mode": mode, "format-version": str(version)})
    for file in files:
        table.append(file)
    return table


def content(table: Any) -> list[tuple[Any, ...]]:
    found = table.scan(selected_fields=("id", "value", "_row_id")).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


@pytest.mark.parametrize("mode", MODES)
def test_an_upsert_into_a_small_file_reads_it_once(mode: str, readings: list[list[str]]) -> None:
    table = table_of(mode, rows([1, 2, 3]))
    table.upsert(rows([2, 9], value=7.0), ["id"])
    assert len(readings) == 1
    assert [row[:2] for row in content(table)] == [(1, 1.0), (2, 7.0), (3, 1.0), (9, 7.0)]


@pytest.mark.parametrize("mode", MODES)
def test_a_large_file_that_has_no_key_is_left_after_a_look_at_its_keys(
    mode: str, readings: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_files, "_FEW_ROWS", 0)
    table = table_of(mode, rows([*range(0, 1000, 2)]))
    table.upsert(rows([501], value=7.0), ["id"])
    assert readings == [["id"]]


@pytest.mark.parametrize("mode", MODES)
def test_files_after_one_that_changed_are_read_without_such_a_look(
    mode: str, readings: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_files, "_FEW_ROWS", 0)
    monkeypatch.setattr(FileIO, "workers", lambda *_, **__: 1)
    table = table_of(mode, *(rows([*range(start, 3000, 3)]) for start in range(3)))
    table.upsert(rows([900, 901, 902], value=7.0), ["id"])
    assert [len(columns) > 1 for columns in readings] == [False, True, True, True]


def test_an_upsert_that_updates_nothing_reads_the_keys_alone(readings: list[list[str]]) -> None:
    table = table_of("copy-on-write", rows([1, 2]))
    table.upsert(rows([2, 3], value=7.0), ["id"], when_matched_update_all=False)
    assert readings == [["id"]]
    assert [row[:2] for row in content(table)] == [(1, 1.0), (2, 1.0), (3, 7.0)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("at", [0, 150, 299, None])
def test_what_may_not_be_held_is_read_again_with_the_same_outcome(
    mode: str, at: int | None, readings: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``at`` is the row that changes, in batches of a hundred."""
    monkeypatch.setattr("icefield.scan.reading.BATCH_ROWS", 100)
    given = rows([1_000 if at is None else at], value=7.0)
    made, counts = [], []
    for held in (1 << 20, 0):
        monkeypatch.setattr(file_rows, "AHEAD_BYTES", held)
        monkeypatch.setattr(changed_files, "SUCCESSOR_BYTES", held)
        readings.clear()
        table = table_of(mode, rows([*range(300)]))
        result = table.upsert(given, ["id"])
        made.append(content(table))
        counts.append(len(readings))
        assert (result.rows_updated, result.rows_inserted) == ((0, 1) if at is None else (1, 0))
    assert made[0] == made[1]
    if at is None:
        assert counts == [0, 0]  # its bounds leave the file out
    else:
        # A file whose first rows change is written while it is read.
        assert counts == ([1, 1] if mode == "copy-on-write" and at == 0 else [1, 2])


@pytest.mark.parametrize("change", ["delete", "update"])
def test_rows_are_found_by_one_reader_that_evaluates_the_filter(
    change: str, readings: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[TaskReader] = []
    begin = TaskReader.__init__

    def noted(reader: TaskReader, *given: Any) -> None:
        readers.append(reader)
        begin(reader, *given)

    table = new_table(properties={f"write.{change}.mode": "merge-on-read", "format-version": "3"})
    for start in (0, 10, 20):
        table.append(rows([start, start + 1, start + 2]))
    monkeypatch.setattr(TaskReader, "__init__", noted)
    if change == "delete":
        monkeypatch.setattr(filtered_rows, "evaluate", None)
        table.delete("id in (1, 11, 21)")
        assert len(readers) == 1
        assert readings == [["_pos"]] * 3
        assert [row[0] for row in content(table)] == [0, 2, 10, 12, 20, 22]
    else:
        table.update("id in (1, 11, 21)", {"value": 7.0})
        assert len(readers) == 2  # of the positions, and of all columns
        assert [columns for columns in readings if len(columns) == 1] == [["_pos"]] * 3
        assert [row[1] for row in content(table)] == [1.0, 7.0, 1.0] * 3


@pytest.mark.parametrize("change", ["delete", "update"])
def test_a_rewritten_file_keeps_its_other_rows(change: str) -> None:
    table = new_table(properties={f"write.{change}.mode": "copy-on-write"})
    table.append(rows([1, 2, 3]))
    table.append(rows([1, 4]))
    if change == "delete":
        table.delete("id >= 2")
        assert ids(table) == [1, 1]
    else:
        table.update("id >= 2", {"value": 7.0})
        found = table.scan().to_arrow().sort_by("id")
        assert found["id"].to_pylist() == [1, 1, 2, 3, 4]
        assert found["value"].to_pylist() == [1.0, 1.0, 7.0, 7.0, 7.0]
