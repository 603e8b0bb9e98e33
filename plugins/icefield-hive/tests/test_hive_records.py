"""What the metastore holds of namespaces and tables, looked at without the plugin's own eyes for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, Schema, load_catalog
from icefield.errors import (
    InvalidArgument,
    NamespaceExists,
    NoSuchNamespace,
    NotSupportedByCatalog,
    TableExists,
    UnsupportedFeature,
)
from icefield.schema import schema_from_json
from icefield.types import ListType, MapType, NestedField, StructType, parse_type
from icefield_hive.columns import columns_of, hive_type
from servers.hive import drop_databases

hive_metastore = pytest.importorskip("hive_metastore.ThriftHiveMetastore")

ROWS = pa.table({"id": [1, 2, 3], "kind": ["a", "b", None]})


@pytest.fixture
def catalog(hive: str, tmp_path: Path) -> Iterator[Catalog]:
    drop_databases(hive)
    given = {"uri": hive, "warehouse": f"file://{tmp_path}/warehouse", "ugi": "ann:staff"}
    with load_catalog("test", type="hive", **given) as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture
def seen(hive: str) -> Iterator[Any]:
    """The client that PyIceberg brings, generated from the whole of Hive's interface."""
    from thrift.protocol import TBinaryProtocol
    from thrift.transport import TSocket, TTransport

    transport = TTransport.TBufferedTransport(TSocket.TSocket("127.0.0.1", int(hive.rpartition(":")[2])))
    transport.open()
    yield hive_metastore.Client(TBinaryProtocol.TBinaryProtocol(transport))
    transport.close()


# -- tables


@pytest.mark.spec("COMMIT-05", "META-34")
def test_a_new_table_is_what_javas_library_would_make(catalog: Catalog, seen: Any, tmp_path: Path) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"color": "blue", "gc.enabled": "false"})
    found = seen.get_table("db", "t")
    assert (found.tableType, found.owner, found.retention) == ("EXTERNAL_TABLE", "ann", 2**31 - 1)
    assert [(c.name, c.type) for c in found.sd.cols] == [("id", "bigint"), ("kind", "string")]
    assert found.sd.location == f"file:{tmp_path}/warehouse/db.db/t"
    assert found.sd.inputFormat == "org.apache.hadoop.mapred.FileInputFormat"
    assert found.sd.outputFormat == "org.apache.hadoop.mapred.FileOutputFormat"
    assert found.sd.serdeInfo.serializationLib == "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
    assert found.partitionKeys == []
    expected = {
        "EXTERNAL": "TRUE",
        "table_type": "ICEBERG",
        "metadata_location": table.metadata_location,
        "uuid": table.metadata.table_uuid,
        "color": "blue",
        "external.table.purge": "false",
        "snapshot-count": "0",
    }
    assert found.parameters.items() >= expected.items()
    assert "previous_metadata_location" not in found.parameters
    assert "storage_handler" not in found.parameters
    assert schema_from_json(json.loads(found.parameters["current-schema"])) == table.schema()


@pytest.mark.spec("COMMIT-05")
def test_a_commit_keeps_statistics_and_states_of_the_snapshot(catalog: Catalog, seen: Any) -> None:
    table = catalog.create_table("db.t", ROWS.schema, partition_spec=["kind"], sort_order=["id"])
    before = table.metadata_location
    table.append(ROWS)
    found = seen.get_table("db", "t").parameters
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert (found["numFiles"], found["numRows"]) == ("3", "3")
    assert found["totalSize"] == snapshot.summary["total-files-size"]
    assert (found["metadata_location"], found["previous_metadata_location"]) == (table.metadata_location, before)
    assert found["current-snapshot-id"] == str(snapshot.snapshot_id)
    assert found["current-snapshot-timestamp-ms"] == str(snapshot.timestamp_ms)
    assert json.loads(found["current-snapshot-summary"]) == dict(snapshot.summary)
    assert json.loads(found["default-partition-spec"])["fields"][0]["name"] == "kind"
    assert json.loads(found["default-sort-order"])["fields"][0]["source-id"] == 1
    table.delete()
    found = seen.get_table("db", "t").parameters
    assert (found["numFiles"], found["numRows"], found["totalSize"]) == ("0", "0", "0")


def test_a_table_that_is_created_with_rows_has_their_statistics(catalog: Catalog, seen: Any) -> None:
    with catalog.create_table_transaction("db.t", ROWS.schema) as staged:
        staged.append(ROWS)
    found = seen.get_table("db", "t").parameters
    assert (found["numFiles"], found["numRows"], found["snapshot-count"]) == ("1", "3", "1")


def test_what_others_put_there_is_kept_and_what_was_removed_goes(catalog: Catalog, seen: Any) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"color": "blue", "gc.enabled": "false", "stay": "1"})
    theirs = seen.get_table("db", "t")
    theirs.parameters["comment"] = "of Hive"
    theirs.sd.parameters["sd"] = "too"
    theirs.sd.bucketCols = ["id"]
    seen.alter_table("db", "t", theirs)
    table.refresh().remove_properties("color", "gc.enabled")
    found = seen.get_table("db", "t")
    assert found.parameters["comment"] == "of Hive"
    assert (found.sd.parameters, found.sd.bucketCols) == ({"sd": "too"}, ["id"])
    assert found.parameters["stay"] == "1"
    assert not {"color", "external.table.purge"} & found.parameters.keys()


def test_columns_that_change_are_shown(catalog: Catalog, seen: Any) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    with table.update_schema() as update:
        update.rename_column("kind", "sort")
        update.add_column("at", "timestamptz", "when\nit was")
        update.delete_column("id")
        update.move_first("at")
    found = seen.get_table("db", "t").sd.cols
    assert [(column.name, column.type, column.comment) for column in found] == [
        ("at", "timestamp with local time zone", "when\nit was"),
        ("sort", "string", None),
    ]


def test_a_metastore_that_forbids_to_change_columns_is_named(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    from icefield_hive.connection import MetastoreRefusal
    from icefield_hive.strategy import HiveStrategy

    def refuse(*_: Any) -> None:
        raise MetastoreRefusal(
            "InvalidOperation", "The following columns have types incompatible with the existing columns"
        )

    table = catalog.create_table("db.t", ROWS.schema)
    monkeypatch.setattr(HiveStrategy, "_alter", refuse)
    with pytest.raises(UnsupportedFeature, match=r"hive\.metastore\.disallow\.incompatible\.col\.type\.changes"):
        table.update_schema().delete_column("id").commit()
    assert catalog.load_table("db.t").schema() == table.schema()


def test_hive_itself_can_read_a_table_that_says_so(catalog: Catalog, seen: Any) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"engine.hive.enabled": "true"})
    found = seen.get_table("db", "t")
    package = "org.apache.iceberg.mr.hive.HiveIceberg"
    assert found.parameters["storage_handler"] == f"{package}StorageHandler"
    assert found.sd.serdeInfo.serializationLib == f"{package}SerDe"
    assert (found.sd.inputFormat, found.sd.outputFormat) == (f"{package}InputFormat", f"{package}OutputFormat")
    table.set_properties({"engine.hive.enabled": "false"})
    found = seen.get_table("db", "t")
    assert "storage_handler" not in found.parameters
    assert "iceberg" not in found.sd.serdeInfo.serializationLib
    whole = load_catalog("test", **{**catalog.properties, "iceberg.engine.hive.enabled": "true"})
    whole.create_table("db.u", ROWS.schema)
    assert seen.get_table("db", "u").parameters["storage_handler"] == f"{package}StorageHandler"


def test_what_is_too_long_for_a_parameter_is_left_out_and_not_an_error(catalog: Catalog, seen: Any) -> None:
    wide = pa.schema([(f"a_column_with_a_long_name_{number}", pa.string()) for number in range(1_000)])
    table = catalog.create_table("db.t", wide, properties={"long": "x" * 40_000, "fits": "x" * 30_000})
    found = seen.get_table("db", "t")
    assert len(found.sd.cols) == 1_000
    assert not {"current-schema", "long"} & found.parameters.keys()
    assert len(found.parameters["fits"]) == 30_000
    table.set_properties({"fits": "x" * 40_000})  # the old value must not stay
    assert "fits" not in seen.get_table("db", "t").parameters
    assert len(catalog.load_table("db.t").properties["fits"]) == 40_000
    frugal = load_catalog("test", **{**catalog.properties, "iceberg.hive.table-property-max-size": "0"})
    frugal.create_table("db.u", ROWS.schema, properties={"color": "blue"}).append(ROWS)
    found = seen.get_table("db", "u").parameters
    assert (found["color"], found["numRows"]) == ("blue", "3")
    assert not {key for key in found if key.startswith(("current-", "default-", "snapshot-"))}


def test_a_long_comment_and_a_wide_struct_fit(catalog: Catalog, seen: Any) -> None:
    wide = StructType(*(NestedField(10 + n, f"field_with_a_long_name_{n}", "string") for n in range(2_000)))
    schema = Schema(NestedField(1, "id", "long", doc="é" * 300), NestedField(2, "wide", wide))
    catalog.create_table("db.t", schema)
    narrow, shown = seen.get_table("db", "t").sd.cols
    assert narrow.comment == "é" * 256
    assert shown.type == "binary"
    assert catalog.load_table("db.t").schema().find_field("id").doc == "é" * 300


def test_columns_that_hive_cannot_state_apart_are_refused_before_anything_is_made(
    catalog: Catalog, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedFeature, match="'Id' and 'iD'"):
        catalog.create_table("db.t", pa.schema([("Id", pa.int64()), ("iD", pa.int64())]))
    assert catalog.list_tables("db") == []
    assert not [*tmp_path.glob("warehouse/db.db/t/**/*.json")]


def test_the_owner_of_a_table_is_whom_its_property_names(catalog: Catalog, seen: Any) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"hive.metastore.table.owner": "eve"})
    found = seen.get_table("db", "t")
    assert found.owner == "eve"
    assert "hive.metastore.table.owner" not in found.parameters
    table.set_properties({"hive.metastore.table.owner": "bob"})
    assert seen.get_table("db", "t").owner == "bob"
    table.append(ROWS)
    assert seen.get_table("db", "t").owner == "bob"


@pytest.mark.parametrize("kind", ["EXTERNAL_TABLE", "VIRTUAL_VIEW"])
def test_what_is_no_iceberg_table_is_neither_listed_nor_touched(catalog: Catalog, seen: Any, kind: str) -> None:
    from hive_metastore import ttypes

    catalog.create_table("db.ours", ROWS.schema)
    storage = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("id", "int", None)],
        location=None if kind == "VIRTUAL_VIEW" else catalog.load_namespace_properties("db")["location"] + "/theirs",
        serdeInfo=ttypes.SerDeInfo(),
    )
    parameters = {"table_type": "iceberg-view", "metadata_location": "file:///nowhere/v.metadata.json"}
    theirs = ttypes.Table("theirs", "db", "eve", 0, 0, 0, storage, [], parameters, tableType=kind)
    if kind == "VIRTUAL_VIEW":
        theirs.viewOriginalText = theirs.viewExpandedText = "select 1"
    seen.create_table(theirs)
    assert catalog.list_tables("db") == [("db", "ours")]
    for call in (
        lambda: catalog.load_table("db.theirs"),
        lambda: catalog.create_table("db.theirs", ROWS.schema),
        lambda: catalog.drop_table("db.theirs"),
        lambda: catalog.rename_table("db.theirs", "db.mine"),
    ):
        with pytest.raises(NotSupportedByCatalog, match=r"db\.theirs of catalog 'test' is .* not an Iceberg table"):
            call()
    assert not catalog.table_exists("db.theirs")
    with pytest.raises(TableExists):
        catalog.rename_table("db.ours", "db.theirs")
    location = catalog.load_table("db.ours").metadata_location
    with pytest.raises(TableExists):
        catalog.register_table("db.theirs", location)
    assert seen.get_table("db", "theirs").parameters["table_type"] == "iceberg-view"


def test_a_renamed_table_keeps_what_the_metastore_knows_of_it(catalog: Catalog, seen: Any) -> None:
    catalog.create_namespace("other")
    catalog.create_table("db.t", ROWS.schema, properties={"color": "blue"}).append(ROWS)
    before = seen.get_table("db", "t")
    catalog.rename_table("db.t", "other.u")
    after = seen.get_table("other", "u")
    volatile = {"transient_lastDdlTime"}
    assert {k: v for k, v in after.parameters.items() if k not in volatile} == {
        k: v for k, v in before.parameters.items() if k not in volatile
    }
    assert after.sd.location == before.sd.location
    assert (after.owner, after.tableType) == (before.owner, before.tableType)


# -- namespaces


def test_a_namespace_is_a_database(catalog: Catalog, seen: Any, tmp_path: Path) -> None:
    catalog.create_namespace(
        "full",
        {
            "comment": "a b",
            "location": f"file://{tmp_path}/elsewhere/",
            "hive.metastore.database.owner": "admins",
            "hive.metastore.database.owner-type": "group",
            "color": "blue",
        },
    )
    found = seen.get_database("full")
    assert (found.description, found.locationUri) == ("a b", f"file:{tmp_path}/elsewhere")
    assert (found.ownerName, found.ownerType, found.parameters) == ("admins", 3, {"color": "blue"})
    assert catalog.load_namespace_properties("full") == {
        "comment": "a b",
        "location": f"file://{tmp_path}/elsewhere",
        "hive.metastore.database.owner": "admins",
        "hive.metastore.database.owner-type": "GROUP",
        "color": "blue",
    }
    assert catalog.create_table("full.t", ROWS.schema).location() == f"file://{tmp_path}/elsewhere/t"
    catalog.update_namespace_properties("full", ["hive.metastore.database.owner"], {"color": "red"})
    location = f"file://{tmp_path}/elsewhere"
    assert catalog.load_namespace_properties("full") == {"location": location, "color": "red", "comment": "a b"}
    assert seen.get_database("db").ownerName == "ann"
    assert seen.get_database("db").locationUri == f"file:{tmp_path}/warehouse/db.db"


def test_a_namespace_without_a_warehouse_is_where_the_metastore_says(hive: str, catalog: Catalog) -> None:
    with load_catalog("test", type="hive", uri=hive) as bare:
        bare.create_namespace("nowhere")
        location = bare.load_namespace_properties("nowhere")["location"]
        assert location.startswith("file:///")
        assert location.endswith("/warehouse/nowhere.db")
        assert bare.create_table("nowhere.t", ROWS.schema).location() == f"{location}/t"


def test_what_an_older_metastore_does_not_change_is_refused_and_nothing_else_is_changed(catalog: Catalog) -> None:
    catalog.create_namespace("described", {"comment": "of it", "a": "1"})
    before = catalog.load_namespace_properties("described")
    location = before["location"]
    changes: list[tuple[list[str], dict[str, str], str]] = [
        (["comment"], {"a": "2"}, "comment"),
        ([], {"comment": "", "a": "2"}, "comment"),
        (["a"], {"comment": "another"}, "comment"),
        ([], {"location": location + "2", "a": "2"}, "location"),
        (["location"], {"a": "2"}, "location"),
    ]
    for removals, updates, what in changes:
        with pytest.raises(NotSupportedByCatalog, match=what):
            catalog.update_namespace_properties("described", removals, updates)
        assert catalog.load_namespace_properties("described") == before
    catalog.update_namespace_properties("described", ["nothing"], {"location": location, "comment": "of it", "a": "2"})
    assert catalog.load_namespace_properties("described") == {**before, "a": "2"}
    catalog.update_namespace_properties("db", ["comment"])  # it has none


@pytest.mark.parametrize(
    "properties", [{"long": "x" * 4001}, {"x" * 181: "v"}, {"hive.metastore.database.owner-type": "nobody"}]
)
def test_properties_that_the_metastore_cannot_hold_are_refused_at_once(
    catalog: Catalog, properties: dict[str, str]
) -> None:
    with pytest.raises(InvalidArgument):
        catalog.create_namespace("odd", properties)
    with pytest.raises(InvalidArgument):
        catalog.update_namespace_properties("db", updates=properties)
    assert not catalog.namespace_exists("odd")
    catalog.create_namespace("odd", {"long": "x" * 4000, "x" * 180: "v"})


def test_names_know_no_case(catalog: Catalog) -> None:
    catalog.create_namespace("MiXed")
    with pytest.raises(NamespaceExists):
        catalog.create_namespace("mixed")
    catalog.create_table("MIXED.Name", ROWS.schema).append(ROWS)
    assert catalog.list_tables("Mixed") == [("mixed", "name")]
    assert catalog.load_table("mixed.NAME").scan().count() == 3
    catalog.rename_table("mixed.name", "MiXeD.Other")
    catalog.drop_table("mixed.OTHER")
    catalog.drop_namespace("MIXED")
    assert not catalog.namespace_exists("mixed")


def test_a_table_of_another_depth_than_two_is_refused(catalog: Catalog) -> None:
    with pytest.raises(NoSuchNamespace):
        catalog.create_table(("db", "deeper", "t"), ROWS.schema)
    with pytest.raises((InvalidArgument, NotSupportedByCatalog)):
        catalog.create_namespace("db.deeper")


@pytest.mark.parametrize(
    ("call", "kind"), [("alter_database", "NoSuchObject"), ("get_table_objects_by_name_req", "UnknownDB")]
)
def test_a_namespace_that_goes_meanwhile_is_said_to_be_gone(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, call: str, kind: str
) -> None:
    from icefield_hive.client import Metastore
    from icefield_hive.connection import MetastoreRefusal

    catalog.create_table("db.t", ROWS.schema)
    ask = Metastore.call

    def gone(self: Metastore, method: Any, *values: Any) -> Any:
        if method.name == call:
            raise MetastoreRefusal(kind, "db")
        return ask(self, method, *values)

    monkeypatch.setattr(Metastore, "call", gone)
    changes = {
        "alter_database": lambda: catalog.update_namespace_properties("db", updates={"a": "1"}),
        "get_table_objects_by_name_req": lambda: catalog.list_tables("db"),
    }
    with pytest.raises(NoSuchNamespace, match="db"):
        changes[call]()


# -- types

TYPES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "decimal(9,2)": "decimal(9,2)",
    "date": "date",
    "time": "string",
    "timestamp": "timestamp",
    "timestamptz": "timestamp with local time zone",
    "timestamp_ns": "timestamp",
    "timestamptz_ns": "timestamp with local time zone",
    "string": "string",
    "uuid": "string",
    "fixed[3]": "binary",
    "binary": "binary",
    "unknown": "void",
    "variant": "binary",
    "geometry": "binary",
    "geography": "binary",
}


@pytest.mark.parametrize(("ours", "hives"), TYPES.items())
def test_every_type_has_a_hive_type_at_every_place(ours: str, hives: str) -> None:
    kind = parse_type(ours)
    assert hive_type(kind) == hives
    nested = StructType(
        NestedField(1, "l", ListType(2, kind)), NestedField(3, "m", MapType(4, parse_type("string"), 5, kind))
    )
    assert hive_type(nested) == f"struct<l:array<{hives}>,m:map<string,{hives}>>"
    without_zone = hives.replace(" with local time zone", "")
    assert hive_type(kind, hive2_compatible=True) == without_zone
    assert hive_type(nested, hive2_compatible=True) == f"struct<l:array<{without_zone}>,m:map<string,{without_zone}>>"


def test_the_metastore_takes_every_type(catalog: Catalog, seen: Any) -> None:
    kinds = [*TYPES]
    fields = [NestedField(n, f"c{n}", parse_type(kind)) for n, kind in enumerate(kinds, 1)]
    fields += [NestedField(100 + n, f"l{n}", ListType(200 + n, parse_type(kind))) for n, kind in enumerate(kinds, 1)]
    schema = Schema(*fields)
    catalog.create_table("db.t", schema, properties={"format-version": "3"})
    assert [column.type for column in seen.get_table("db", "t").sd.cols] == [
        *TYPES.values(),
        *(f"array<{kind}>" for kind in TYPES.values()),
    ]
    assert [column["name"] for column in columns_of(schema, hive2_compatible=False)] == [f.name for f in fields]
