"""Metadata as other engines leave it: views, version 3 without row ids, types that are newer than the version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from catalogs import KINDS, open_catalog
from icefield.abc import PutMode
from icefield.catalog import Catalog, Table
from icefield.errors import UnsupportedFeature
from icefield.manifest import read_manifest_list
from icefield.schema import Schema
from icefield.types import NestedField
from tables import ids, new_table, rows

VIEW: dict[str, Any] = {
    "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
    "format-version": 1,
    "location": "file:///wh/db/v",
    "current-version-id": 1,
    "properties": {"comment": "daily"},
    "versions": [
        {
            "version-id": 1,
            "timestamp-ms": 1573518431292,
            "schema-id": 1,
            "default-namespace": ["db"],
            "summary": {"engine-name": "Spark"},
            "representations": [{"type": "sql", "sql": "SELECT 1 AS one", "dialect": "spark"}],
        }
    ],
    "schemas": [
        {"schema-id": 1, "type": "struct", "fields": [{"id": 1, "name": "one", "required": False, "type": "int"}]}
    ],
    "version-log": [{"timestamp-ms": 1573518431292, "version-id": 1}],
}


@pytest.fixture(params=KINDS)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with open_catalog(request.param, tmp_path) as opened:
        opened.create_namespace("db")
        yield opened


def test_the_metadata_of_a_view_is_called_a_view(catalog: Catalog, tmp_path: Path):
    location = f"file://{tmp_path}/00000-view.metadata.json"
    catalog.io.put(location, json.dumps(VIEW).encode(), PutMode.CREATE)
    with pytest.raises(UnsupportedFeature, match="metadata of a view, not of a table; views are not supported"):
        icefield.open_table(location)
    with pytest.raises(UnsupportedFeature, match="metadata of a view"):
        catalog.register_table("db.v", location)
    assert catalog.list_tables("db") == []
    # The pointer of a table in the catalog leads to the metadata of a view.
    table = new_table(catalog=catalog)
    catalog.io.put(table.metadata_location, json.dumps(VIEW).encode(), PutMode.OVERWRITE)
    with pytest.raises(UnsupportedFeature, match="metadata of a view"):
        catalog.load_table(table.name())


def rewritten(catalog: Catalog, table: Table, change: Any) -> Table:
    """The table after its metadata was changed as another writer would have left it."""
    document = json.loads(catalog.io.read(table.metadata_location))
    change(document)
    catalog.io.put(table.metadata_location, json.dumps(document).encode(), PutMode.OVERWRITE)
    return catalog.load_table(table.name())


def lineage(table: Table, snapshot_id: int | None = None) -> dict[int, int | None]:
    found = table.scan(selected_fields=("id", "_row_id"), snapshot_id=snapshot_id).to_arrow()
    return dict(zip(found["id"].to_pylist(), found["_row_id"].to_pylist(), strict=True))


def without(*keys: str) -> Any:
    def change(document: dict[str, Any]) -> None:
        for place in (document, *document["snapshots"]):
            for key in keys:
                place.pop(key, None)

    return change


@pytest.mark.parametrize("catalog", ["sql"], indirect=True)
def test_version_3_without_a_next_row_id_is_read_and_the_snapshots_state_it(catalog: Catalog):
    table = new_table(catalog=catalog, **{"format-version": "3"})
    empty = rewritten(catalog, table, without("next-row-id"))
    assert (empty.metadata.next_row_id, ids(empty)) == (0, [])
    empty.append(rows([1, 2, 3]))
    table = rewritten(catalog, empty, without("next-row-id"))
    assert (table.metadata.next_row_id, ids(table)) == (3, [1, 2, 3])
    table.append(rows([4]))
    assert lineage(table) == {1: 0, 2: 1, 3: 2, 4: 3}


@pytest.mark.parametrize("catalog", ["sql"], indirect=True)
def test_where_snapshots_do_not_state_it_either_a_commit_finds_the_ids_that_are_given_out(
    catalog: Catalog, tmp_path: Path
):
    table = new_table(catalog=catalog, **{"format-version": "3"})
    table.append(rows([1, 2, 3]))
    table.append(rows([4, 5]))
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "dev").commit()
    table.append(rows([6, 7]), branch="dev")
    table = rewritten(catalog, table, without("next-row-id", "first-row-id", "added-rows"))
    assert table.metadata.next_row_id is None
    assert lineage(table) == {1: 0, 2: 1, 3: 2, 4: 3, 5: 4}
    table.set_properties(a=1)  # what is not known is not made up
    assert "next-row-id" not in json.loads(catalog.io.read(table.metadata_location))
    table.append(rows([8]))
    assert table.current_snapshot().first_row_id == 7  # rows of the other branch have the ids before
    assert lineage(table) == {1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 8: 7}
    assert table.metadata.next_row_id == 8
    table.delete("id = 1")
    assert lineage(table) == {2: 1, 3: 2, 4: 3, 5: 4, 8: 7}


@pytest.mark.parametrize("catalog", ["sql"], indirect=True)
def test_rows_that_have_no_id_yet_get_one_as_after_an_upgrade(catalog: Catalog):
    table = new_table(catalog=catalog)
    table.append(rows([1, 2, 3]))
    table = rewritten(catalog, table, lambda document: document.update({"format-version": 3}))
    assert table.metadata.next_row_id is None
    assert ids(table) == [1, 2, 3]
    table.append(rows([4]))
    (old, new) = read_manifest_list(table.io, table.current_snapshot(), table.metadata).manifests
    assert sorted([(old.first_row_id, 3), (new.first_row_id, 1)]) == [(0, 3), (3, 1)]
    assert (table.current_snapshot().first_row_id, table.current_snapshot().added_rows) == (0, 4)
    assert table.metadata.next_row_id == 4
    assert sorted(lineage(table).values()) == [0, 1, 2, 3]


@pytest.mark.parametrize("catalog", ["sql"], indirect=True)
def test_version_2_with_types_and_defaults_of_version_3_is_read_and_written_and_gets_no_more_of_them(catalog: Catalog):
    schema = Schema(NestedField(1, "id", "long"), NestedField(2, "ns", "timestamp_ns"))
    table = catalog.create_table("db.newer", schema, properties={"format-version": "3"})
    data = pa.table({"id": [1], "ns": pa.array([1_000_000_001], pa.timestamp("ns"))})
    table.append(data)
    table.update_schema().add_column("added", "long", default_value=7).commit()
    expected = [{"id": 1, "ns": data["ns"][0].as_py(), "added": 7}]

    def lowered(document: dict[str, Any]) -> None:
        document["format-version"] = 2
        without("next-row-id", "first-row-id", "added-rows")(document)

    table = rewritten(catalog, table, lowered)
    assert table.format_version == 2
    assert table.scan().to_arrow().to_pylist() == expected
    assert table.scan("ns >= '1970-01-01T00:00:01.000000001' and added = 7").count() == 1
    table.append(pa.table({"id": [2], "ns": pa.array([5], pa.timestamp("ns")), "added": [8]}))
    table.delete("id = 2")
    table.update_schema().add_column("more", "int").commit()
    assert table.scan(selected_fields=("id", "ns", "added")).to_arrow().to_pylist() == expected
    with pytest.raises(UnsupportedFeature, match="needs format version 3; the table has 2"):
        table.update_schema().add_column("other", "timestamp_ns").commit()
    with pytest.raises(UnsupportedFeature, match="needs format version 3"):
        table.update_schema().add_column("other", "int", default_value=1).commit()
    table.transaction().upgrade_table_version(3).commit_transaction()
    table.update_schema().add_column("other", "timestamp_ns").commit()
    assert table.scan(selected_fields=("id", "ns", "added")).to_arrow().to_pylist() == expected
