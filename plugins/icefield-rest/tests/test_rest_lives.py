"""The whole life of a table on services built on Java: Iceberg's reference server, and Nessie over S3."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterator

import pyarrow as pa
import pytest
from icefield import Catalog, Table, load_catalog
from icefield.errors import (
    IcefieldError,
    NoSuchNamespace,
    NoSuchTable,
    NotSupportedByCatalog,
    PartlyCommitted,
    TableExists,
)
from icefield_testing import ReturnChecks
from servers.java_rest import drop_everything
from servers.nessie import Nessie

WAITS = {"rest.retry.min-wait-ms": "1", "rest.retry.max-wait-ms": "20"}
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("kind", pa.string()), ("value", pa.float64())])


def rows(*ids: int, kind: str = "a") -> pa.Table:
    return pa.table({"id": ids, "kind": [kind] * len(ids), "value": [1.0] * len(ids)}, schema=SCHEMA)


def ids(table: Table, *args: str, **more: str) -> list[int]:
    found: list[int] = table.scan(*args, **more).to_arrow().column("id").to_pylist()
    return sorted(found)


@pytest.fixture
def on_java(java_rest: str) -> Iterator[Catalog]:
    drop_everything(java_rest)
    with load_catalog("java", type="rest", uri=java_rest, **WAITS) as catalog:
        yield catalog


@pytest.fixture(scope="module")
def on_nessie(nessie: Nessie) -> Iterator[Catalog]:
    with load_catalog("nessie", type="rest", **nessie.properties, **WAITS) as catalog:
        yield catalog


def lived(catalog: Catalog, space: str, version: int) -> Table:
    """What every service can do: create, evolve, undo, replace, row-level changes, compaction."""
    catalog.create_namespace(space)
    properties = {
        "format-version": str(version),
        **{f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")},
    }
    table = catalog.create_table(f"{space}.t", SCHEMA, partition_spec=["kind"], properties=properties)
    with pytest.raises(TableExists):
        catalog.create_table(f"{space}.t", SCHEMA)
    assert table.format_version == version
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5, kind="b"))

    table.update_schema().add_column("more", "int").rename_column("value", "amount").commit()
    table.update_schema().rename_column("amount", "value").delete_column("more").commit()
    table.update_spec().remove_field("kind").add_field("id", "bucket[2]").commit()
    table.update_spec().remove_field("id_bucket_2").add_identity("kind").commit()
    table.update_sort_order().asc("id").commit()
    table.update_sort_order().desc("value").commit()
    table.update_sort_order().asc("id").commit()
    assert [field.name for field in table.schema().fields] == ["id", "kind", "value"]
    assert [field.name for field in table.spec().fields] == ["kind"]
    assert len(table.sort_orders()) == 3

    table.delete("id = 2")
    table.update("id = 3", {"value": 9.0})
    table.upsert(rows(3, 6), ["id"])
    assert ids(table) == [1, 3, 4, 5, 6]
    assert table.inspect.delete_files().num_rows > 0
    table.maintenance.rewrite_data_files(min_input_files=1, delete_file_threshold=1)
    assert ids(table.refresh()) == [1, 3, 4, 5, 6]
    table.overwrite(rows(40, kind="b"), "kind = 'b'")
    with table.transaction() as tx:
        tx.set_properties(color="blue")
        tx.append(rows(7))
    assert ids(catalog.load_table(f"{space}.t"), "kind = 'a'") == [1, 3, 6, 7]
    table.remove_properties("color")
    assert "color" not in catalog.load_table(f"{space}.t").properties

    before = table.current_snapshot()
    assert before is not None
    for _ in range(2):
        with catalog.replace_table_transaction(f"{space}.t", SCHEMA, partition_spec=["kind"]) as tx:
            tx.append(rows(100))
            tx.set_properties(replaced="yes")
    table = catalog.load_table(f"{space}.t")
    assert ids(table) == [100]
    return table


def staged(catalog: Catalog, space: str) -> None:
    """A table that is created with rows, and several tables in one step; then names, and the end."""
    with catalog.create_table_transaction(f"{space}.made", SCHEMA) as tx:
        tx.append(rows(1))
        tx.update_schema().rename_column("kind", "sort").commit()
        tx.update_schema().rename_column("sort", "kind").commit()
    with catalog.transaction() as tx:
        for name in ("t", "made"):
            tx.table(f"{space}.{name}").append(rows(200))
    assert ids(catalog.load_table(f"{space}.made")) == [1, 200]
    stale = catalog.load_table(f"{space}.made")
    catalog.load_table(f"{space}.made").append(rows(2))
    stale.append(rows(3))
    assert ids(stale) == [1, 2, 3, 200]
    catalog.rename_table(f"{space}.made", f"{space}.renamed")
    with pytest.raises(NoSuchTable):
        catalog.load_table(f"{space}.made")
    assert ids(catalog.load_table(f"{space}.renamed")) == [1, 2, 3, 200]
    catalog.drop_table(f"{space}.renamed", purge=True)
    catalog.drop_table(f"{space}.t")
    assert catalog.list_tables(space) == []
    catalog.drop_namespace(space)
    with pytest.raises(NoSuchTable):
        catalog.load_table(f"{space}.t")


@pytest.mark.parametrize("version", [2, 3])
def test_a_table_lives_its_whole_life_on_javas_server(on_java: Catalog, version: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", PartlyCommitted)
        table = lived(on_java, "life", version)
        first = table.snapshots()[0].snapshot_id
        table.manage_snapshots().create_branch(first, "dev").create_tag(first, "tg").commit()
        table.append(rows(300), branch="dev")
        assert ids(table, ref="dev") == [1, 2, 3, 300]
        table.manage_snapshots().remove_branch("dev").commit()
        table.manage_snapshots().set_current_snapshot(first).commit()
        assert ids(table) == [1, 2, 3]
        if version == 2:
            table.transaction().upgrade_table_version(3).commit_transaction()
            table.append(rows(400))
            assert ids(table) == [1, 2, 3, 400]
        count = len(table.refresh().snapshots())
        table.maintenance.expire_snapshots(older_than=dt.datetime.now(dt.UTC), retain_last=1)
        assert len(on_java.load_table("life.t").snapshots()) < count
        view = on_java.create_view("life.v", SCHEMA, {"spark": "SELECT 1"})
        view = view.replace(SCHEMA, {"spark": "SELECT 2"}).replace(SCHEMA, {"spark": "SELECT 1"})
        assert view.replace(SCHEMA, {"spark": "SELECT 2"}).sql == {"spark": "SELECT 2"}
        on_java.drop_view("life.v")
        metadata = table.refresh().metadata_location
        on_java.drop_table("life.t")
        on_java.register_table("life.t", metadata)
        staged(on_java, "life")
        with pytest.raises(NoSuchNamespace):
            on_java.list_tables("life")


def test_a_table_lives_its_whole_life_on_nessie_over_s3(on_nessie: Catalog) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", PartlyCommitted)
        lived(on_nessie, "life", 2)
        staged(on_nessie, "life")


def test_what_nessie_does_not_do_is_said(on_nessie: Catalog) -> None:
    """The limits are Nessie's own, and each refusal is the one that its users see."""
    on_nessie.create_namespace("limits")
    table = on_nessie.create_table("limits.t", SCHEMA, properties={"format-version": "2"})
    table.append(rows(1))
    table.append(rows(2))
    first = table.snapshots()[0].snapshot_id

    # It keeps the current snapshot of a table, and has commits of its own for what was before.
    assert len(on_nessie.load_table("limits.t").snapshots()) == 1

    # Its own branches and tags are of the whole catalog; it drops those of a table without a word.
    with pytest.warns(PartlyCommitted, match="branch or tag 'tg'"):
        table.manage_snapshots().create_tag(first, "tg").commit()
    with pytest.warns(PartlyCommitted, match="branch or tag 'dev'"):
        table.manage_snapshots().create_branch(first, "dev").commit()
    assert set(on_nessie.load_table("limits.t").refs()) == {"main"}

    # Its tables are of several branches of the catalog, so that it alone may delete files.
    assert on_nessie.load_table("limits.t").properties["gc.enabled"] == "false"
    with pytest.raises(IcefieldError, match=r"gc\.enabled"):
        table.maintenance.expire_snapshots(older_than=dt.datetime.now(dt.UTC), retain_last=1)
    with pytest.raises(IcefieldError, match=r"gc\.enabled"):
        table.maintenance.remove_orphan_files()

    with pytest.raises(NotSupportedByCatalog, match="Implement format version update"):
        table.transaction().upgrade_table_version(3).commit_transaction()
    assert on_nessie.load_table("limits.t").format_version == 2

    # It creates tables of version 2, whatever is asked for.
    with pytest.warns(PartlyCommitted, match="format version 3"):
        other = on_nessie.create_table("limits.t3", SCHEMA, properties={"format-version": "3"})
    assert other.format_version == 2

    # It cannot leave a table without a current snapshot.
    with (
        pytest.warns(PartlyCommitted, match="the removal of branch or tag 'main'"),
        on_nessie.replace_table_transaction("limits.t", SCHEMA),
    ):
        pass
    assert ids(on_nessie.load_table("limits.t")) == [1, 2]

    # It names no endpoints, which by the protocol means that there are none of views.
    with pytest.raises(NotSupportedByCatalog, match="view"):
        on_nessie.create_view("limits.v", SCHEMA, {"spark": "SELECT 1"})
    assert ids(on_nessie.load_table("limits.t")) == [1, 2]


class TestReturnsOnNessie(ReturnChecks):
    """Going back and replacing, before Nessie."""

    @pytest.fixture
    def catalog(self, on_nessie: Catalog) -> Catalog:
        return on_nessie

    def test_a_table_is_replaced_by_its_like(self, catalog: Catalog) -> None:
        pytest.skip("Nessie keeps the rows of a table that is replaced by none, and no older snapshots: see above")

    def test_a_table_is_replaced_by_another_and_back(self, catalog: Catalog) -> None:
        pytest.skip("Nessie keeps no older snapshots: see above")


@pytest.mark.slow
class TestReturnsOnOurs(ReturnChecks):
    """Going back and replacing, before the server of this repository, which is as strict as Java's."""

    @pytest.fixture
    def catalog(self, our_rest: str) -> Iterator[Catalog]:
        with load_catalog("ours", type="rest", uri=our_rest, **WAITS) as catalog:
            yield catalog
