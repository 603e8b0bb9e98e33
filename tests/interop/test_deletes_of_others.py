"""Tables with delete files, as DuckDB and PyIceberg read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from delete_files import commit, data_files, deletion_vectors, equality_deletes, position_deletes
from engines import DuckDBEngine
from peers import duckdb_rows
from tables import rows

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def duck() -> Iterator[DuckDBEngine]:
    with DuckDBEngine() as engine:
        yield engine


@pytest.mark.spec("DEL-20", "DEL-36", "DEL-45", "SCAN-33")
@pytest.mark.parametrize("kind", ["position", "equality", "vector", "position and equality"])
def test_duckdb_reads_the_same_rows(catalog: Any, duck: Any, kind: str) -> None:
    properties = {"format-version": "3" if kind == "vector" else "2"}
    table = catalog.create_table("db.deleted", rows([]).schema, properties=properties)
    table.append(rows(range(100)))
    table.append(rows(range(100, 200)))
    files = data_files(table)
    if "position" in kind:
        commit(table, position_deletes(table, sorted((file.file_path, n) for file in files for n in range(0, 100, 7))))
    if "equality" in kind:
        commit(table, equality_deletes(table, ["id"], [{"id": n} for n in range(0, 200, 9)]))
    if kind == "vector":
        commit(table, *deletion_vectors(table, {file: range(0, 100, 7) for file in files}))
    table.append(rows([0]))
    ours = table.scan().to_arrow()
    theirs = duckdb_rows(duck, table)
    assert sorted(theirs["id"].to_pylist()) == sorted(ours["id"].to_pylist())
    assert 100 < ours.num_rows < 201
