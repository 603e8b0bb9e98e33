"""Arguments as users write them: paths as locations, one name as a list of one name, and mistakes with clear errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icefield import Catalog, Table
from icefield.errors import InvalidArgument

ROWS = pa.table({"id": [1, 2], "kind": ["a", "b"]})


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    made = icefield.load_catalog("test", type="sql", uri=uri, warehouse=tmp_path / "warehouse", **{"file.sync": False})
    made.create_namespace("db")
    return made


@pytest.fixture
def table(catalog: Catalog) -> Table:
    made = catalog.create_table("db.t", ROWS.schema)
    made.append(ROWS)
    return made


def test_a_path_is_taken_for_a_location(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("db.placed", ROWS.schema, tmp_path / "placed")
    assert table.location() == f"{tmp_path}/placed"
    pq.write_table(ROWS, tmp_path / "one.parquet")
    pq.write_table(ROWS, tmp_path / "two.parquet")
    table.add_files(tmp_path / "one.parquet")
    table.add_files([tmp_path / "two.parquet"])
    metadata = Path(table.metadata_location)
    assert icefield.open_table(metadata).scan().count() == 4
    assert catalog.register_table("db.again", metadata).scan().count() == 4
    catalog.drop_table("db.again")
    with catalog.replace_table_transaction("db.placed", ROWS.schema, tmp_path / "moved") as replacing:
        replacing.append(ROWS)
    assert catalog.load_table("db.placed").location() == f"{tmp_path}/moved"


def test_one_name_is_taken_for_a_list_of_one(table: Table) -> None:
    changed = table.upsert(pa.table({"id": [2, 3], "kind": ["c", "c"]}), "id")
    assert (changed.rows_updated, changed.rows_inserted) == (1, 1)
    assert table.upsert(pa.table({"id": [2], "kind": ["c"]}), ["id", "id"]).rows_updated == 0
    assert table.maintenance.rewrite_data_files("zorder", zorder_columns="kind", rewrite_all=True).groups


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda catalog, _: catalog.create_table("db.x", ROWS.schema, ["id"]), r"a URI or a path, not \['id'\]"),
        (lambda catalog, _: catalog.register_table("db.x", None), "a URI or a path, not None"),
        (lambda _, table: icefield.open_table(None), "a URI or a path, not None"),
        (lambda _, table: table.add_files([5]), "a URI or a path, not 5"),
        (lambda catalog, _: catalog.create_table("db.x", ROWS.schema, properties=["a"]), r"a mapping .*, not \['a'\]"),
        (lambda _, table: table.append(ROWS, snapshot_properties=["a"]), r"map names to strings; this is \['a'\]"),
        (lambda _, table: table.scan(selected_fields=None), "selected_fields are names of columns"),
        (lambda _, table: table.maintenance.rewrite_data_files(target_file_size_bytes="1MB"), "whole number"),
        (lambda _, table: table.maintenance.rewrite_manifests(spec_id="0"), "no partition spec '0'"),
    ],
)
def test_what_is_none_is_refused_with_what_to_give(
    catalog: Catalog, table: Table, call: Callable[[Catalog, Table], Any], why: str
) -> None:
    before = table.metadata_location
    with pytest.raises(InvalidArgument, match=why):
        call(catalog, table)
    assert table.refresh().metadata_location == before
    assert catalog.list_tables("db") == [("db", "t")]
