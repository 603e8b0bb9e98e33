"""Catalogs as users hold them."""

from __future__ import annotations

from pathlib import Path

import icefield
import pyarrow as pa
import pytest
from icefield.builtin.memory import MemoryFileSystem
from icefield.catalog import Catalog
from icefield.errors import (
    FileMissing,
    InvalidArgument,
    InvalidSchema,
    LocationRefused,
    MissingPlugin,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NotSupportedByCatalog,
    TableExists,
)
from icefield.partitioning import PartitionField, PartitionSpec, SortField, SortOrder
from icefield.partitioning.transforms import DayTransform
from icefield.schema import Schema
from icefield.types import LongType, NestedField, StringType, TimestampType
from tables import SCHEMA, ids, memory_catalog, new_table, rows, stored_files


@pytest.fixture
def sql(tmp_path: Path) -> Catalog:
    catalog = icefield.load_catalog(
        "sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"memory://{tmp_path.name}", type="sql"
    )
    catalog.create_namespace("db")
    return catalog


def test_namespaces_are_created_listed_described_and_dropped():
    catalog = memory_catalog()
    catalog.create_namespace("other", {"owner": "me", "level": 1})
    with pytest.raises(NamespaceExists):
        catalog.create_namespace("db")
    catalog.create_namespace_if_not_exists("db")
    catalog.create_namespace(("other", "inner"))
    assert catalog.list_namespaces() == [("db",), ("other",)]
    assert catalog.list_namespaces("other") == [("other", "inner")]
    assert catalog.load_namespace_properties("other") == {"owner": "me", "level": "1"}
    summary = catalog.update_namespace_properties("other", removals={"level", "x"}, updates={"owner": "you"})
    assert (summary.removed, summary.updated, summary.missing) == (["level"], ["owner"], ["x"])
    assert catalog.load_namespace_properties("other") == {"owner": "you"}
    with pytest.raises(InvalidArgument, match="both"):
        catalog.update_namespace_properties("other", removals=["a"], updates={"a": 1})
    assert catalog.namespace_exists("other")
    catalog.drop_namespace("other.inner")
    catalog.drop_namespace("other")
    assert not catalog.namespace_exists("other")
    for call in (
        catalog.load_namespace_properties,
        catalog.drop_namespace,
        catalog.list_tables,
        catalog.list_namespaces,
    ):
        with pytest.raises(NoSuchNamespace):
            call("nowhere")


def test_tables_are_created_listed_loaded_and_dropped():
    catalog = memory_catalog()
    table = catalog.create_table("db.events", SCHEMA, properties={"a": 1})
    assert table.name() == ("db", "events")
    assert table.properties == {"a": "1"}
    assert table.format_version == 2
    assert catalog.list_tables("db") == [("db", "events")]
    assert catalog.table_exists(("db", "events"))
    assert catalog.load_table("db.events").metadata.table_uuid == table.metadata.table_uuid
    with pytest.raises(TableExists):
        catalog.create_table("db.events", SCHEMA)
    assert catalog.create_table_if_not_exists("db.events", pa.schema([("x", pa.int8())])).schema() == table.schema()
    with pytest.raises(NamespaceNotEmpty):
        catalog.drop_namespace("db")
    catalog.drop_table("db.events")
    assert not catalog.table_exists("db.events")
    for call in (catalog.load_table, catalog.drop_table, catalog.purge_table):
        with pytest.raises(NoSuchTable):
            call("db.events")
    with pytest.raises(NoSuchNamespace):
        catalog.create_table("nowhere.t", SCHEMA)


@pytest.mark.spec("SCH-27", "PART-17", "SORT-02", "SORT-03")
def test_ids_that_a_caller_gives_are_given_afresh_in_schema_spec_and_order():
    schema = Schema(
        NestedField(10, "id", LongType(), required=True),
        NestedField(20, "ts", TimestampType()),
        NestedField(5, "name", StringType()),
    )
    table = memory_catalog().create_table(
        "db.t",
        schema,
        partition_spec=PartitionSpec(PartitionField(20, 7, DayTransform(), "day"), spec_id=3),
        sort_order=SortOrder(SortField(5), order_id=9),
    )
    assert [(field.field_id, field.name) for field in table.schema().fields] == [(1, "id"), (2, "ts"), (3, "name")]
    assert [(f.source_id, f.field_id, f.name) for f in table.spec().fields] == [(2, 1000, "day")]
    assert (table.spec().spec_id, table.sort_order().order_id) == (0, 1)
    assert table.sort_order().fields[0].source_id == 3
    assert table.metadata.last_partition_id == 1000


def test_specs_and_orders_are_given_as_strings():
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us"))])
    table = memory_catalog().create_table(
        "db.t", schema, partition_spec=[("ts", "day"), "bucket[16](id)"], sort_order="id desc"
    )
    assert [str(field.transform) for field in table.spec().fields] == ["day", "bucket[16]"]
    assert table.sort_order().fields[0].direction.value == "desc"
    with pytest.raises(InvalidSchema):
        memory_catalog().create_table("db.t", schema, partition_spec=[("id", "day")])


@pytest.mark.spec("META-38")
def test_the_format_version_is_chosen_by_a_property_that_is_not_stored():
    for version in ("1", "2", "3"):
        table = new_table(**{"format-version": version})
        assert table.format_version == int(version)
        assert "format-version" not in table.properties
    with pytest.raises(ValueError, match="4"):
        new_table(**{"format-version": "4"})


def test_properties_of_new_tables_have_defaults_and_overrides_in_the_catalog():
    catalog = memory_catalog(
        **{"table-default.a": "default", "table-default.b": "default", "table-override.c": "override"}
    )
    table = catalog.create_table("db.t", SCHEMA, properties={"b": "given", "c": "given"})
    assert table.properties == {"a": "default", "b": "given", "c": "override"}


@pytest.mark.spec("META-04")
def test_a_table_is_where_it_is_asked_for_or_where_the_catalog_says(sql: Catalog):
    told = sql.create_table("db.told", SCHEMA, location=f"{sql.properties['warehouse']}/elsewhere/x/")
    assert told.location().endswith("/elsewhere/x")
    told.append(rows([1]))
    assert told.metadata_location.startswith(told.location() + "/metadata/")
    assert next(told.scan().plan_files()).file.file_path.startswith(told.location() + "/data/")
    assert sql.create_table("db.plain", SCHEMA).location() == sql.backend.table_location(("db", "plain"))


def test_a_table_is_renamed_where_the_name_is_not_the_path(sql: Catalog):
    table = sql.create_table("db.old", SCHEMA)
    table.append(rows([1]))
    renamed = sql.rename_table("db.old", "db.new")
    assert ids(renamed) == [1]
    assert renamed.name() == ("db", "new")
    assert sql.list_tables("db") == [("db", "new")]
    with pytest.raises(NoSuchTable):
        sql.rename_table("db.old", "db.other")


def test_a_catalog_of_folders_says_what_to_do_instead_of_renaming():
    catalog = memory_catalog()
    old = catalog.create_table("db.a", SCHEMA)
    old.append(rows([1, 2]))
    with pytest.raises(NotSupportedByCatalog, match=r"db\.a cannot be renamed to db\.b.*Nothing was changed") as caught:
        catalog.rename_table("db.a", "db.b")
    assert all(word in str(caught.value) for word in ("to_arrow_batch_reader()", "drop db.a", "type='sql'"))
    assert catalog.list_tables("db") == [("db", "a")]
    # What it says works.
    new = catalog.create_table("db.b", old.schema())
    new.append(catalog.load_table("db.a").scan().to_arrow_batch_reader())
    catalog.drop_table("db.a")
    assert ids(catalog.load_table("db.b")) == [1, 2]


def test_a_table_is_registered_by_its_metadata_file(sql: Catalog):
    table = new_table()
    table.append(rows([1]))
    registered = sql.register_table("db.known", table.metadata_location)
    assert ids(registered) == [1]
    registered.append(rows([2]))
    assert ids(registered) == [1, 2]
    assert ids(table.refresh()) == [1]
    with pytest.raises(TableExists):
        sql.register_table("db.known", table.metadata_location)
    with pytest.raises(FileMissing):
        sql.register_table("db.other", table.metadata_location + ".nowhere")
    assert not sql.table_exists("db.other")


@pytest.mark.spec("META-04")
@pytest.mark.parametrize("kind", ["directory", "sql"])
def test_a_relative_warehouse_is_made_absolute_when_the_catalog_is_loaded(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"uri": "sqlite:///c.db"} if kind == "sql" else {}
    catalog = icefield.load_catalog("x", type=kind, warehouse="wh", **given)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows([1]))
    assert table.location() == f"{tmp_path}/wh/db/t"
    assert next(table.scan().plan_files()).file.file_path.startswith(f"{tmp_path}/wh/db/t/data/")
    monkeypatch.chdir("/")
    assert ids(table.refresh()) == [1]


@pytest.mark.parametrize("kind", ["directory", "sql"])
@pytest.mark.parametrize("warehouse", ["file://wh/x", "file:wh", "file://wh"])
def test_a_warehouse_that_is_no_place_is_refused_when_the_catalog_is_loaded(kind: str, warehouse: str) -> None:
    with pytest.raises(LocationRefused, match="file:///"):
        icefield.load_catalog("x", type=kind, warehouse=warehouse, uri="sqlite://")


def test_whoever_opens_a_folder_is_asked_to_name_the_metadata_file() -> None:
    table = new_table()
    for location in (table.location(), table.location() + "/"):
        with pytest.raises(FileMissing, match=r"name the table's metadata file, such as .*/db/t/metadata/v1\.metadata"):
            icefield.open_table(location)
    with pytest.raises(FileMissing) as caught:
        icefield.open_table(table.location() + "/metadata/v9.metadata.json")
    assert "such as" not in str(caught.value)


def test_whoever_names_an_unknown_catalog_learns_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEFIELD_CATALOG__PROD__TYPE", "directory")
    with pytest.raises(InvalidArgument, match=r"nothing is known of catalog 'prodd'.*configured are: .*prod"):
        icefield.load_catalog("prodd")


def test_a_metastore_writes_no_metadata_where_the_configuration_does_not_allow_it(tmp_path: Path) -> None:
    allowed = f"memory://{tmp_path.name}/wh"
    given = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": allowed, "type": "sql"}
    open_to_all = icefield.load_catalog("sql", **given)
    open_to_all.create_namespace("db")
    elsewhere = f"memory://{tmp_path.name}/elsewhere"
    open_to_all.create_table("db.t", SCHEMA).set_properties(**{"write.metadata.path": elsewhere})
    before = {name for name in MemoryFileSystem.files if name.startswith(elsewhere)}
    table = icefield.load_catalog("sql", **given, **{"location.allowed-roots": f"{allowed}, {elsewhere}"}).load_table(
        "db.t"
    )
    table.set_properties(a="1")
    guarded = icefield.load_catalog("sql", **given, **{"location.allowed-roots": allowed})
    with pytest.raises(LocationRefused):
        guarded.load_table("db.t")
    with pytest.raises(LocationRefused):
        guarded.create_table("db.u", SCHEMA, properties={"write.metadata.path": elsewhere})
    assert not guarded.table_exists("db.u")
    assert len({name for name in MemoryFileSystem.files if name.startswith(elsewhere)} - before) == 1


@pytest.mark.spec("FS-03")
def test_purging_deletes_every_file_and_dropping_none():
    catalog = memory_catalog()
    table = new_table("kind", catalog=catalog)
    for number in range(3):
        table.append(rows([number]))
    table.delete("id = 1")
    files = stored_files(table)
    catalog.drop_table("db.t")
    # The directory catalog drops a table and keeps its data files and manifests.
    assert {name for name in files if name.endswith((".avro", ".parquet"))} <= stored_files(table)
    other = new_table("kind", catalog=catalog, name="db.other")
    other.append(rows([1]))
    other.delete("id = 1")
    catalog.purge_table("db.other")
    assert stored_files(other) == set()
    assert catalog.list_tables("db") == []


def test_purging_keeps_data_that_may_be_shared_and_passes_over_what_is_gone():
    catalog = memory_catalog()
    table = new_table(catalog=catalog, **{"gc.enabled": "false"})
    table.append(rows([1]))
    table.append(rows([2]))
    del MemoryFileSystem.files[table.snapshots()[0].manifest_list]
    catalog.drop_table("db.t", purge=True)
    assert all(name.endswith((".parquet", ".avro")) for name in stored_files(table))
    assert sum(name.endswith(".parquet") for name in stored_files(table)) == 2


def test_a_catalog_is_found_by_its_properties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert type(icefield.load_catalog("x", warehouse=str(tmp_path)).backend).__name__ == "DirectoryBackend"
    uri = f"sqlite:///{tmp_path}/c.db"
    assert "Sql" in type(icefield.load_catalog("x", uri=uri, warehouse=str(tmp_path)).backend).__name__
    with pytest.raises(InvalidArgument, match="nothing is known of catalog 'x'"):
        icefield.load_catalog("x")
    with pytest.raises(MissingPlugin):
        icefield.load_catalog("x", type="nowhere")
    (tmp_path / "icefield.toml").write_text(f'default-catalog = "lake"\n[catalog.lake]\nwarehouse = "{tmp_path}"\n')
    monkeypatch.setenv("ICEFIELD_CONFIG", str(tmp_path / "icefield.toml"))
    assert icefield.load_catalog().name == "lake"
    monkeypatch.setenv("ICEFIELD_CATALOG__LAKE__WAREHOUSE", "memory://env")
    assert icefield.load_catalog("lake").properties["warehouse"] == "memory://env"


def test_secrets_show_in_no_representation():
    catalog = memory_catalog(**{"s3.secret-access-key": "hush"})
    table = new_table(catalog=catalog)
    for shown in (repr(catalog), repr(table), repr(catalog.io), repr(table.scan())):
        assert "hush" not in shown
    assert "db.t" in repr(table)


def test_a_catalog_is_closed_with_its_block():
    closed = []
    catalog = memory_catalog()
    catalog.backend.close = lambda: closed.append(True)  # type: ignore[method-assign]
    with catalog as same:
        assert same is catalog
    assert closed == [True]
