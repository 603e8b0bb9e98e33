"""Tables with files of an old partition spec whose source columns are in no schema any more.

Java's ``expire_snapshots`` with ``clean_expired_metadata`` leaves such tables. It removes schemas with their snapshots,
and keeps specs while files use them.
"""

from __future__ import annotations

import io
import itertools
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from icefield import Catalog, Table, load_catalog
from icefield.abc import PutMode
from icefield.errors import UnsupportedFeature
from tables import manifests

ROWS = pa.table({"id": [0, 1, 2, 3], "s": ["a", "b", None, "a"], "k": pa.array([4, 5, None, 4], pa.int32())})
NUMBERS = itertools.count()


@pytest.fixture(params=["1", "2", "3"])
def table(request: pytest.FixtureRequest) -> Table:
    """Four rows in three files by the forgotten ``s`` and ``k`` and by ``id``, and four rows in one file by ``id``."""
    catalog = load_catalog("test", warehouse=f"memory://forgotten-{next(NUMBERS)}")
    catalog.create_namespace("db")
    spec = ["s", "truncate[2](k)", "truncate[9](id)"]
    made = catalog.create_table("db.t", ROWS.schema, partition_spec=spec, properties={"format-version": request.param})
    made.append(ROWS)
    with made.update_spec() as change:
        change.remove_field("s").remove_field("k_trunc_2")
    with made.update_schema() as change:
        change.delete_column("s").delete_column("k")
    made.append(ROWS.select(["id"]))
    return without_old_schemas(catalog, made)


def without_old_schemas(catalog: Catalog, table: Table) -> Table:
    document = json.loads(table.io.read(table.metadata_location))
    document["schemas"] = [each for each in document["schemas"] if each["schema-id"] == document["current-schema-id"]]
    document["snapshots"] = document["snapshots"][-1:]
    del document["snapshots"][0]["parent-snapshot-id"]
    document["snapshot-log"] = document["snapshot-log"][-1:]
    location = f"{table.location()}/metadata/00099-forgotten.metadata.json"
    table.io.put(location, json.dumps(document).encode(), PutMode.CREATE)
    return catalog.register_table("db.u", location)


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def stored_tuples(table: Table) -> list[tuple[object, ...]]:
    """The tuples of the live files of the old spec, as their manifests hold them."""
    found = []
    for manifest in manifests(table):
        if manifest.partition_spec_id == 0:
            records: Any = fastavro.reader(io.BytesIO(table.io.read(manifest.manifest_path)))
            found += [tuple(r["data_file"]["partition"].values()) for r in records if r["status"] != 2]
    return sorted(found, key=str)


def test_files_are_listed_with_what_is_known_of_their_partitions(table: Table) -> None:
    rows = table.inspect.files().to_pylist()
    assert [row["partition"]["id_trunc_9"] for row in rows] == [0, 0, 0, 0]
    assert sum(row["record_count"] for row in table.inspect.partitions().to_pylist()) == 8
    assert all(row["partition"].get("s") is None for row in rows)


def test_rows_are_deleted_and_the_other_files_keep_their_partitions(table: Table) -> None:
    before = stored_tuples(table)
    assert before == [("a", 4, 0), ("b", 4, 0), (None, None, 0)]
    table.delete("id = 1")
    assert ids(table) == [0, 0, 2, 2, 3, 3]
    assert stored_tuples(table) == [("a", 4, 0), (None, None, 0)]


def test_maintenance_takes_the_rows_to_the_present_spec(table: Table) -> None:
    table.maintenance.rewrite_manifests()
    assert ids(table) == [0, 0, 1, 1, 2, 2, 3, 3]
    table.maintenance.rewrite_data_files(rewrite_all=True)
    assert ids(table) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert stored_tuples(table) == []


def test_new_files_of_the_old_spec_are_refused_with_what_to_do(table: Table) -> None:
    if table.metadata.format_version == 1:
        pytest.skip("version 1 has no files of deletes")
    with table.transaction() as change:
        change.set_properties({"write.delete.mode": "merge-on-read"})
    with pytest.raises(UnsupportedFeature, match=r"partition field 's' any more.*rewrite_data_files with rewrite_all"):
        table.delete("id = 0")
    assert ids(table) == [0, 0, 1, 1, 2, 2, 3, 3]
