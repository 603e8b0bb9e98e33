"""Partitions whose folder names would be too long for any file system."""

from __future__ import annotations

from pathlib import Path

import icefield
import pyarrow as pa
import pytest
from icefield.schema import Schema
from icefield.types import NestedField


@pytest.mark.parametrize(
    "value",
    ["x" * 300, "\u00fc" * 200, "\U0001f409" * 40, "/" * 200, "x" * 5000],
    ids=["ascii", "accents", "emoji", "slashes", "longer"],
)
def test_a_long_value_is_a_partition_of_local_files(tmp_path: Path, value: str):
    catalog = icefield.load_catalog("long", type="directory", warehouse=f"file://{tmp_path}/wh")
    catalog.create_namespace("db")
    rows = pa.table({"id": [1, 2, 3], "kind": [value + "a", value + "b", "short"]})
    table = catalog.create_table("db.t", rows.schema, partition_spec=["kind"])
    table.append(rows)
    files = table.inspect.files()["file_path"].to_pylist()
    assert len({path.rpartition("/")[0] for path in files}) == 3
    assert f"file://{tmp_path}/wh/db/t/data/kind=short" in {path.rpartition("/")[0] for path in files}
    assert table.scan("kind = 'short'").to_arrow()["id"].to_pylist() == [3]
    assert table.scan(f"kind = '{value}b'").to_arrow()["id"].to_pylist() == [2]
    (task,) = table.scan(f"kind = '{value}a'").plan_files()
    assert task.file.partition == (value + "a",)


@pytest.mark.parametrize("length", [1, 90])
def test_very_many_partition_fields_make_a_path_that_stores_take(tmp_path: Path, length: int):
    names = [f"{chr(97 + number % 26) * length}{number}" for number in range(80)]
    schema = Schema(*(NestedField(number, name, "string") for number, name in enumerate(names, 1)))
    catalog = icefield.load_catalog("many", type="directory", warehouse=f"file://{tmp_path}/wh")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema, partition_spec=names)
    table.append(pa.table({name: ["v", "v"] for name in names[:-1]} | {names[-1]: ["v", "w"]}))
    assert table.scan().count() == 2
    assert table.scan(f"{names[-1]} = 'w'").count() == 1
    paths = table.inspect.files()["file_path"].to_pylist()
    assert len(set(paths)) == 2
    assert max(len(path.removeprefix(f"file://{tmp_path}/wh/db/t/data/")) for path in paths) < 600
