"""Changes of rows in tables to which other engines gave row-level deletes: deleted rows stay deleted."""

from __future__ import annotations

from typing import Any

import pytest
from delete_files import commit, data_files, deletion_vectors, equality_deletes, position_deletes
from icefield.catalog import Table
from icefield.engine import DeleteIndex
from icefield.scan.deletes.index import DELETE_INDEXES
from tables import ids, new_table, rows

KINDS = ("position", "equality", "vector", "named")


def table_with(kind: str) -> Table:
    """Rows 0 to 9 and 10 to 19 in a file each, of which 1, 2, 11 and 12 are deleted."""
    table = new_table(**{"format-version": "3" if kind == "vector" else "2"})
    table.append(rows(range(10)))
    table.append(rows(range(10, 20)))
    files = data_files(table)
    pairs = [(file.file_path, place) for file in files for place in (1, 2)]
    if kind == "position":
        commit(table, position_deletes(table, pairs))
    elif kind == "named":
        commit(table, *(position_deletes(table, pairs, referenced_data_file=file.file_path) for file in files))
    elif kind == "equality":
        commit(table, equality_deletes(table, ["id"], [{"id": n} for n in (1, 2, 11, 12)]))
    else:
        commit(table, *deletion_vectors(table, {file: [1, 2] for file in files}))
    return table


LEFT = [0, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16, 17, 18, 19]

CHANGES: dict[str, tuple[Any, list[int]]] = {
    "append": (lambda table: table.append(rows([1, 12])), sorted([*LEFT, 1, 12])),
    "delete some": (lambda table: table.delete("id < 5"), [n for n in LEFT if n >= 5]),
    "delete deleted rows": (lambda table: table.delete("id = 1"), LEFT),
    "delete files": (lambda table: table.delete("id < 10"), [n for n in LEFT if n >= 10]),
    "delete all": (lambda table: table.delete(), []),
    "overwrite some": (lambda table: table.overwrite(rows([1]), "id = 3"), sorted([*(set(LEFT) - {3}), 1])),
    "overwrite all": (lambda table: table.overwrite(rows([1])), [1]),
    "upsert": (lambda table: table.upsert(rows([1, 3, 99], value=7.0), ["id"]), sorted([*LEFT, 1, 99])),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.spec("DEL-35", "DEL-01")
def test_deleted_rows_stay_deleted_and_others_are_changed(kind: str, change: str) -> None:
    table = table_with(kind)
    assert ids(table) == LEFT
    files = {file.file_path for file in data_files(table)}
    apply, expected = CHANGES[change]
    apply(table)
    assert ids(table) == expected
    assert table.scan().count() == len(expected)
    # A delete file of one data file is removed with it; a delete file that may apply to others stays.
    left = len(files & {file.file_path for file in data_files(table)})
    assert table.inspect.delete_files().num_rows == (left if kind in ("named", "vector") else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_deleted_row_matches_no_filter_and_no_key(kind: str) -> None:
    table = table_with(kind)
    files = {file.file_path for file in data_files(table)}
    table.delete("id = 1 or id = 12")
    assert {file.file_path for file in data_files(table)} == files
    result = table.upsert(rows([2, 3], value=1.0), ["id"])
    assert (result.rows_updated, result.rows_inserted) == (0, 1)
    assert ids(table) == sorted([*LEFT, 2])


def test_row_ids_stay_with_the_rows_of_a_file_with_a_vector() -> None:
    table = table_with("vector")
    table.delete("id = 5")
    found = table.scan(selected_fields=("id", "_row_id")).to_arrow().to_pylist()
    assert sorted(row["id"] for row in found) == [n for n in LEFT if n != 5]
    assert all(row["id"] == row["_row_id"] for row in found)


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_uses_the_index_of_deletes_that_a_scan_made_and_the_reverse(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    build = DeleteIndex._build

    def counted(index: DeleteIndex, unpartitioned: frozenset[int]) -> None:
        made.append(index)
        build(index, unpartitioned)

    monkeypatch.setattr(DeleteIndex, "_build", counted)
    table = table_with(kind)
    assert ids(table) == LEFT
    table.delete("id = 1")  # which is gone: nothing changes
    assert len(made) == 1
    DELETE_INDEXES.clear()
    table.delete("id = 1")
    assert ids(table) == LEFT
    assert len(made) == 2
