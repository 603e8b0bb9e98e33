"""Delete files that apply although a statistic contradicts their rows, or although a row applies to no data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from delete_files import commit, equality_deletes, position_deletes, write_file
from deleted_tables import each_format, path_of, table_of
from icefield.catalog import Table
from icefield.errors import InvalidFile
from icefield.manifest import DataFile, DataFileContent
from icefield.schema import Schema
from icefield.types import LongType, NestedField, StringType
from icefield.types.reserved import DELETE_FILE_PATH, DELETE_FILE_POS
from icefield_maintenance.doctor import examine_table
from tables import ids, rows

NULLABLE = Schema(
    NestedField(DELETE_FILE_PATH.field_id, "file_path", StringType()),
    NestedField(DELETE_FILE_POS.field_id, "pos", LongType()),
)
COUNTS = pytest.mark.parametrize("count", [0, 1, 5, 2**40, -1])


def by_position(table: Table, file_format: str, **given: Any) -> DataFile:
    return position_deletes(table, [(path_of(table), 1), (path_of(table), 2)], file_format, **given)


def by_equality(table: Table, file_format: str, **given: Any) -> DataFile:
    return equality_deletes(table, ["id"], [{"id": 1}, {"id": 2}], file_format, **given)


KINDS = pytest.mark.parametrize("kind", [by_position, by_equality])
Kind = Callable[..., DataFile]


_OF_MAINTENANCE = {"delete-debt", "small-files"}


def findings(table: Table) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for group in examine_table(table, whole=True):
        for each in group.findings:
            if each.result.name not in ("OK", "SKIPPED") and each.check not in _OF_MAINTENANCE:
                found.setdefault(each.check, []).append(str(each))
    return found


@each_format
@KINDS
@COUNTS
def test_a_delete_file_deletes_the_rows_that_it_holds_whatever_its_manifest_counts(
    file_format: str, kind: Kind, count: int
) -> None:
    table = table_of(rows(range(5)), rows(range(10, 12)), file_format=file_format)
    delete = kind(table, file_format, record_count=count)
    commit(table, delete)
    left = [0, 3, 4, 10, 11]
    assert ids(table) == left
    assert ids(table, "id < 10") == [0, 3, 4]
    assert table.scan().count() == 5
    if count >= 0:
        said = findings(table)
        assert f"it holds 2 rows, and its manifest says {count:,}" in said.pop("delete-metrics")[0]
        assert not said
    table.update("id = 3", {"kind": "z"})
    table.delete("id = 4")
    table.upsert(rows([1, 10]), ["id"])
    assert ids(table) == [0, 1, 3, 10, 11]
    table.maintenance.rewrite_data_files(rewrite_all=True)
    assert ids(table) == [0, 1, 3, 10, 11]


@each_format
@COUNTS
def test_position_deletes_with_another_count_can_be_listed_and_rewritten(file_format: str, count: int) -> None:
    table = table_of(rows(range(5)), file_format=file_format)
    for _ in range(2):
        commit(table, by_position(table, file_format, record_count=count))
    assert sorted(table.inspect.position_deletes()["pos"].to_pylist()) == [1, 1, 2, 2]
    table.maintenance.rewrite_position_delete_files(rewrite_all=True)
    assert ids(table) == [0, 3, 4]


def nullable(table: Table, pairs: list[tuple[Any, Any]], file_format: str) -> DataFile:
    columns = [list(column) for column in zip(*pairs, strict=True)]
    held = pa.table([pa.array(columns[0], pa.string()), pa.array(columns[1], pa.int64())], names=["file_path", "pos"])
    return write_file(table, NULLABLE, held, file_format, content=DataFileContent.POSITION_DELETES)


@each_format
@pytest.mark.parametrize("nameless", [[(None, 3)], [(None, None)], [(None, -5), (None, 3)], [(None, 3)] * 5000])
def test_a_position_without_a_path_applies_to_nothing(file_format: str, nameless: list[tuple[Any, Any]]) -> None:
    table = table_of(rows(range(5)), rows(range(10, 12)), file_format=file_format)
    pairs = [*nameless, (path_of(table), 1), *nameless, (path_of(table, 1), 0), *nameless]
    commit(table, nullable(table, pairs, file_format))
    left = [0, 2, 3, 4, 11]
    assert ids(table) == left
    assert table.scan().count() == 5
    listed = table.inspect.position_deletes()
    assert sorted(listed["pos"].to_pylist()) == [0, 1]
    said = findings(table)
    assert f"{3 * len(nameless):,} positions name no data file" in said.pop("delete-positions")[0]
    assert not said
    table.delete("id = 4")
    table.maintenance.rewrite_position_delete_files(rewrite_all=True)
    assert ids(table) == [0, 2, 3, 11]


@each_format
def test_deletes_that_all_lack_a_path_delete_nothing(file_format: str) -> None:
    table = table_of(rows(range(3)), file_format=file_format)
    commit(table, nullable(table, [(None, 0), (None, None)], file_format))
    assert ids(table) == [0, 1, 2]
    assert table.inspect.position_deletes().num_rows == 0


@each_format
def test_a_path_without_a_position_is_refused_for_the_row_is_not_known(file_format: str) -> None:
    table = table_of(rows(range(3)), file_format=file_format)
    commit(table, nullable(table, [(path_of(table), None), (None, 1)], file_format))
    with pytest.raises(InvalidFile, match="deletes a row without a position"):
        table.scan().to_arrow()
    with pytest.raises(InvalidFile, match="deletes a row without a position"):
        table.inspect.position_deletes()
