"""Files whose partition columns are only in the names of folders, as Hive writes them."""

from __future__ import annotations

import datetime as dt
import uuid
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from foreign_files import FORMATS, foreign_file
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield import MemoryFileSystem, Table
from icefield.errors import InvalidArgument
from icefield.expressions import EqualTo
from tables import new_table

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("kind", pa.string()), ("n", pa.int64())])


def put(folders: str, columns: dict[str, Any], file_format: str = "parquet", name: str = "000000_0") -> str:
    location = f"memory://hive/{uuid.uuid4().hex}/{folders}/{name}"
    MemoryFileSystem.files[location] = MemoryFileSystem.files[foreign_file(file_format, pa.table(columns))]
    return location


def rows(table: Table, *given: Any) -> list[dict[str, Any]]:
    return sorted(table.scan(*given).to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("file_format", FORMATS)
def test_values_come_from_the_folders_and_are_decoded(file_format: str) -> None:
    table = new_table(["day", "kind"], schema=SCHEMA)
    given = [
        put("day=2024-01-31/kind=a%2Fb%3Dc", {"id": [1], "n": [7]}, file_format),
        put("DAY=2024-02-01/kind=__HIVE_DEFAULT_PARTITION__", {"id": [2]}, file_format),
        put("other=5/day=__HIVE_DEFAULT_PARTITION__/kind=", {"id": [3]}, file_format),
    ]
    with pytest.raises(InvalidArgument, match="pass hive_partitioning=True"):
        table.add_files(given)
    table.add_files(given, hive_partitioning=True)
    assert rows(table) == [
        {"id": 1, "day": dt.date(2024, 1, 31), "kind": "a/b=c", "n": 7},
        {"id": 2, "day": dt.date(2024, 2, 1), "kind": None, "n": None},
        {"id": 3, "day": None, "kind": "", "n": None},
    ]
    assert [row["id"] for row in rows(table, "day >= '2024-02-01'")] == [2]


def test_a_column_of_the_file_counts_before_the_folder_and_a_stated_value_too() -> None:
    table = new_table(["n", "kind"], schema=SCHEMA)
    stored = put("n=no number/kind=folder", {"id": [1], "n": [5], "kind": ["file"]})
    stated = put("n=6/kind=folder", {"id": [2]})
    with table.transaction() as transaction:
        transaction.add_files(stored, hive_partitioning=True)
        transaction.add_files(stated, hive_partitioning=True, partition_values={stated: {"kind": "stated"}})
    assert [(row["n"], row["kind"]) for row in rows(table)] == [(5, "file"), (6, "stated")]


def test_a_folder_that_names_no_value_of_its_column_is_refused() -> None:
    table = new_table(["n"], schema=SCHEMA)
    with pytest.raises(InvalidArgument, match=r"n=many/000000_0 lacks column 'n'.*'many'"):
        table.add_files(put("n=many", {"id": [1]}), hive_partitioning=True)


def test_a_column_without_identity_partition_cannot_come_from_a_folder() -> None:
    table = new_table(["bucket[4](n)"], schema=SCHEMA)
    with pytest.raises(InvalidArgument, match="only one that the table is partitioned by as it is"):
        table.add_files(put("n=1", {"id": [1]}), hive_partitioning=True)


def test_a_stated_format_is_taken_for_files_without_suffix() -> None:
    table = new_table(["n"], schema=SCHEMA)
    table.add_files(put("n=1", {"id": [1]}, "orc"), hive_partitioning=True, file_format="ORC")
    assert [task.file.file_format for task in table.scan().plan_files()] == ["orc"]


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5)
ROWS = st.lists(
    st.tuples(st.integers(0, 2**31), st.none() | WORDS, st.none() | st.integers(-3, 3)), min_size=1, max_size=12
)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS)
def test_random_trees_are_read_as_pyarrow_reads_them(rows: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder: Path = tmp_path_factory.mktemp("tree")
    schema = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("n", pa.int32())])
    data = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    layout = ds.partitioning(pa.schema([("kind", pa.string()), ("n", pa.int32())]), flavor="hive")
    ds.write_dataset(data, folder / "data", format="parquet", partitioning=layout, max_partitions=1_000)
    catalog = icefield.load_catalog("tree", type="directory", warehouse=f"file://{folder}/wh")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", data.schema, partition_spec=["kind", "n"])
    files = [str(path) for path in (folder / "data").rglob("*.parquet")]
    assert all(not {"kind", "n"} & {*pq.read_schema(each).names} for each in files)
    table.add_files(files, hive_partitioning=True)
    expected = ds.dataset(folder / "data", partitioning=layout).to_table(columns=["id", "kind", "n"])

    def plain(found: pa.Table) -> list[Any]:
        return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)

    assert plain(table.scan().to_arrow()) == plain(expected) == plain(data)
    some = rows[0][1]
    if some is not None:
        assert plain(table.scan(EqualTo("kind", some)).to_arrow()) == plain(expected.filter(ds.field("kind") == some))
