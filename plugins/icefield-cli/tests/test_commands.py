"""Every command, in text and in JSON, on a catalog of each kind."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import icefield
import pyarrow as pa
import pytest
from bounded import bounded
from icefield.abc import PutMode
from icefield.errors import InvalidMetadata
from icefield.types import NestedField, parse_type
from icefield_cli.commands import metadata
from icefield_cli.people import size

Run = Callable[..., Any]


def test_plugins_are_listed_with_what_they_provide(run: Run) -> None:
    listed = {row["plugin"]: row for row in run("plugins", "--output", "json").objects}
    assert listed["builtin"]["distribution"] == "icefield"
    assert "commit strategy rename" in listed["builtin"]["provides"].split(", ")
    assert listed["rest"]["provides"].split(", ")[-1] == "listener"
    assert run("plugins").lines[0].split() == ["plugin", "distribution", "version", "provides", "error"]


def test_namespaces_are_created_listed_and_dropped(run: Run, catalog: icefield.Catalog) -> None:
    made = run("create-namespace", "more", "--set", "owner=me")
    assert (made.status, made.out) == (0, "created namespace more\n")
    assert catalog.load_namespace_properties("more")["owner"] == "me"
    assert run("create-namespace", "db.inner", "--output", "json").object["namespace"] == "db.inner"
    assert run("namespaces").lines == ["namespace", "db", "more"]
    assert run("namespaces", "db", "--output", "json").objects == [{"namespace": "db.inner"}]
    assert run("drop-namespace", "more").out == "dropped namespace more\n"
    assert run("namespaces").lines == ["namespace", "db"]


def test_a_namespace_that_is_not_empty_is_not_dropped(run: Run, events: icefield.Table) -> None:
    refused = run("drop-namespace", "db")
    assert refused.status == 1
    assert "not empty" in refused.err
    assert run("tables").lines == ["table", "db.events"]


def test_tables_of_one_namespace_and_of_all_are_listed(run: Run, catalog: icefield.Catalog, events: Any) -> None:
    for namespace in ("zoo", "db.inner"):
        catalog.create_namespace(namespace)
        catalog.create_table(f"{namespace}.t", pa.schema([("id", pa.int64())]))
    assert run("tables", "db").lines == ["table", "db.events"]
    assert run("tables").lines == ["table", "db.events", "db.inner.t", "zoo.t"]
    assert run("tables", "zoo", "--output", "json").objects == [{"table": "zoo.t"}]


def test_a_table_is_created_with_columns_partitions_order_and_properties(run: Run, catalog: icefield.Catalog) -> None:
    made = run(
        *("create-table", "db.made", "--column", "id long required", "--column", "price decimal(9, 2)"),
        *("--column", "ts timestamptz", "--partition", "day(ts)", "--partition", "bucket[4](id)"),
        *("--sort", "id desc", "--set", "format-version=3", "--set", "a=b=c"),
    )
    table = catalog.load_table("db.made")
    assert made.out == f"created db.made at {table.location()}\n"
    assert table.schema().fields == (
        NestedField(1, "id", parse_type("long"), True),
        NestedField(2, "price", parse_type("decimal(9,2)")),
        NestedField(3, "ts", parse_type("timestamptz")),
    )
    assert [field.name for field in table.spec().fields] == ["ts_day", "id_bucket_4"]
    assert len(table.sort_order().fields) == 1
    assert (table.format_version, table.properties["a"]) == (3, "b=c")
    again = run("create-table", "db.made", "--column", "id long")
    assert (again.status, "exists already" in again.err) == (1, True)


def test_a_table_is_dropped_with_its_files_only_when_that_is_asked_for(
    run: Run, catalog: icefield.Catalog, properties: dict[str, str], events: icefield.Table, tmp_path: Path
) -> None:
    def files() -> list[Path]:
        return list((tmp_path / "warehouse").rglob("*.parquet"))

    if properties["type"] == "sql":
        location = events.metadata_location
        assert run("drop-table", "db.events").out == "dropped db.events\n"
        assert len(files()) == 2
        assert run("register", "db.events", location).status == 0
    assert run("drop-table", "db.events", "--purge", "--yes", "--output", "json").object["purged"] is True
    assert files() == []
    assert not catalog.table_exists("db.events")
    assert run("drop-table", "db.events").status == 1 or properties["type"] == "directory"


def test_a_table_is_renamed_where_its_name_is_not_its_path(
    run: Run, catalog: icefield.Catalog, properties: dict[str, str], events: icefield.Table
) -> None:
    renamed = run("rename-table", "db.events", "db.called")
    if properties["type"] == "directory":
        assert renamed.status == 1
        assert catalog.table_exists("db.events")
    else:
        assert renamed.out == "renamed db.events to db.called\n"
        assert catalog.load_table("db.called").scan().count() == 2


def test_the_metadata_of_a_view_is_not_registered_and_is_called_a_view(run: Run, tmp_path: Path) -> None:
    view = tmp_path / "00000-v.metadata.json"
    view.write_text('{"view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385", "format-version": 1, "versions": []}')
    done = run("register", "db.v", f"file://{view}")
    assert done.status == 1
    assert "the metadata of a view, not of a table" in done.err
    assert len(done.err.splitlines()) == 1


def test_a_metadata_file_is_registered(run: Run, catalog: icefield.Catalog, events: icefield.Table) -> None:
    done = run("register", "db.again", events.metadata_location)
    assert done.status == 0
    assert catalog.load_table("db.again").scan().count() == 2


def test_a_table_is_described(run: Run, events: icefield.Table) -> None:
    lines = run("describe", "db.events").lines
    assert "format version    2" in lines
    assert "  1: id: required long" in lines
    assert "  owner: me" in lines
    found = run("describe", "db.events", "--output", "json").object
    assert found["uuid"] == events.metadata.table_uuid
    assert found["current snapshot"] == str(events.current_snapshot().snapshot_id)
    assert found["summary"]["total-records"] == "2"


def test_a_table_without_rows_is_described_too(run: Run, catalog: icefield.Catalog) -> None:
    catalog.create_table("db.empty", pa.schema([("id", pa.int64())]))
    assert "current snapshot  -" in run("describe", "db.empty").lines
    for command in ("snapshots", "history", "refs", "files", "manifests", "partitions", "scan"):
        ran = run(command, "db.empty")
        assert (ran.status, ran.err, len(ran.lines)) == (0, "", 1), command


def test_a_schema_is_shown_as_it_is_and_as_it_was(run: Run, events: icefield.Table) -> None:
    with events.update_schema() as update:
        update.rename_column("kind", "sort")
        update.add_column("s", icefield.types.StructType(NestedField(1, "x", parse_type("int"), doc="why")))
    assert run("schema", "db.events", "--output", "json").objects[-1] == {
        "id": 4,
        "column": "s.x",
        "type": "int",
        "required": False,
        "doc": "why",
    }
    assert run("schema", "db.events", "--id", "0").lines[2].split()[:3] == ["2", "kind", "string"]
    missing = run("schema", "db.events", "--id", "9")
    assert (missing.status, "no schema 9; it has 0, 1" in missing.err) == (1, True)


def test_properties_are_shown_set_and_removed_in_one_commit(run: Run, events: icefield.Table) -> None:
    versions = len(events.metadata.metadata_log)
    shown = run("properties", "db.events", "--set", "a=b=c", "--remove", "owner")
    assert shown.lines == ["key  value", "a    b=c"]
    assert events.refresh().properties == {"a": "b=c"}
    assert len(events.metadata.metadata_log) == versions + 1
    assert run("properties", "db.events", "--output", "json").objects == [{"key": "a", "value": "b=c"}]


def test_snapshots_history_and_refs_are_listed(run: Run, events: icefield.Table) -> None:
    first, second = events.snapshots()
    events.manage_snapshots().create_tag(first.snapshot_id, "old").commit()
    listed = run("snapshots", "db.events", "--output", "json").objects
    assert [row["snapshot_id"] for row in listed] == [str(first.snapshot_id), str(second.snapshot_id)]
    assert listed[1]["summary"]["added-records"] == "1"
    shown = dt.datetime.fromisoformat(listed[0]["committed_at"]).replace(tzinfo=dt.UTC)
    assert shown.timestamp() * 1000 == pytest.approx(first.timestamp_ms)
    assert run("snapshots", "db.events").lines[1].split()[0] == str(first.snapshot_id)
    history = run("history", "db.events", "--output", "json").objects
    assert [row["is_current_ancestor"] for row in history] == [True, True]
    refs = {row["name"]: row for row in run("refs", "db.events", "--output", "json").objects}
    assert (refs["old"]["type"], refs["old"]["snapshot_id"]) == ("TAG", str(first.snapshot_id))
    assert run("refs", "db.events").lines[0].startswith("name")


def test_files_manifests_and_partitions_are_listed_now_and_then(run: Run, events: icefield.Table) -> None:
    first = str(events.snapshots()[0].snapshot_id)
    files = run("files", "db.events", "--output", "json").objects
    assert sorted(row["partition"]["kind"] for row in files) == ["a", "b"]
    assert {row["file_format"].lower() for row in files} == {"parquet"}
    assert len(run("files", "db.events", "--where", "kind = 'a'").lines) == 2
    assert len(run("files", "db.events", "--snapshot", first).lines) == 2
    manifests = run("manifests", "db.events", "--output", "json").objects
    assert sum(row["added_data_files_count"] + row["existing_data_files_count"] for row in manifests) == 2
    assert len(run("manifests", "db.events", "--snapshot", first).lines) == 2
    partitions = run("partitions", "db.events", "--output", "json").objects
    assert sorted((row["partition"]["kind"], row["record_count"]) for row in partitions) == [("a", 1), ("b", 1)]
    assert len(run("partitions", "db.events", "--where", "kind = 'b'", "--snapshot", first).lines) == 1


def test_partitions_specs_and_orders_are_shown_as_people_say_them(run: Run, catalog: icefield.Catalog) -> None:
    schema = pa.schema([("time_hour", pa.timestamp("us")), ("n", pa.int64()), ("day", pa.date32())])
    parts = ["month(time_hour)", "bucket[4](n)", "day"]
    table = catalog.create_table("db.flights", schema, partition_spec=parts, sort_order=["n desc nulls last"])
    when = dt.datetime(2013, 1, 1, 5)
    table.append(pa.table({"time_hour": [when, None], "n": [1, None], "day": [when.date(), None]}, schema=schema))
    lines = run("describe", "db.flights").lines
    at = lines.index("partition spec:")
    assert lines[at + 1 : at + 4] == ["  month(time_hour)", "  bucket[4](n)", "  day"]
    assert lines[lines.index("sort order:") + 1] == "  n desc nulls last"
    assert "bucket[4](2)" in run("describe", "db.flights", "--output", "json").out
    nulls = "time_hour_month=null, n_bucket_4=null, day=null"
    for command in ("files", "partitions"):
        shown = run(command, "db.flights").out
        assert "time_hour_month=2013-01, n_bucket_4=" in shown, command
        assert "day=2013-01-01" in shown, command
        assert nulls in shown, command
        assert re.search(r" \d+ B( |$)", shown, re.MULTILINE), command
    stored = run("partitions", "db.flights", "--output", "json").objects
    assert {row["partition"]["time_hour_month"] for row in stored} == {516, None}
    assert all(isinstance(row["total_data_file_size_in_bytes"], int) for row in stored)


def test_partitions_of_an_earlier_spec_are_shown_by_its_fields(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    with events.update_spec() as update:
        update.remove_field("kind")
        update.add_field("id", "bucket[4]")
    events.refresh()
    events.append(pa.table({"id": [3], "kind": ["c"]}, schema=events.scan().to_arrow().schema))
    shown = {line.split("  ")[0] for line in run("partitions", "db.events").lines[1:]}
    assert {"kind=a", "kind=b"} < shown
    assert len([name for name in shown if name.startswith("id_bucket_4=") or name.startswith("id_bucket=")]) == 1


@pytest.mark.parametrize("version", ["1", "2"])
def test_partitions_keep_their_values_where_a_later_spec_uses_the_name_of_a_field_again(
    run: Run, catalog: icefield.Catalog, version: str
) -> None:
    schema = pa.schema([("day", pa.date32()), ("kind", pa.string())])
    table = catalog.create_table("db.again", schema, properties={"format-version": version})
    rows = pa.table({"day": [dt.date(2013, 1, 5)], "kind": ["abc"]}, schema=schema)
    for column, transform in (("day", "month"), ("kind", "truncate[1]")):
        with table.update_spec() as update:
            update.add_field(column, transform, "part")
        table.refresh()
        table.append(rows)
        with table.update_spec() as update:
            update.remove_field("part")
        table.refresh()
    void = "part_1000=null, " if version == "1" else ""
    for command, place in (("partitions", 0), ("files", -1)):
        shown = {re.split("  +", line)[place] for line in run(command, "db.again").lines[1:]}
        assert shown == {"part=2013-01", f"{void}part=a"}, command


def test_snapshots_are_shown_with_what_they_changed_and_when(run: Run, events: icefield.Table) -> None:
    events.delete("id = 1")
    heading, *lines = (line.split() for line in run("snapshots", "db.events").lines)
    assert heading == [*("snapshot_id", "committed_at", "operation", "+rows", "-rows", "+files", "-files")]
    assert [line[2:] for line in lines] == [
        ["append", "1", "0", "1", "0"],
        ["append", "1", "0", "1", "0"],
        ["delete", "0", "1", "0", "1"],
    ]
    times = [dt.datetime.fromisoformat(line[1]) for line in lines]
    assert [each.timestamp() * 1000 for each in times] == pytest.approx(
        [snapshot.timestamp_ms for snapshot in events.refresh().metadata.snapshots]
    )
    assert all(each.tzinfo == dt.UTC for each in times)


@pytest.mark.parametrize("version", ["2", "3"])
def test_rows_that_are_deleted_without_rewriting_their_files_are_shown_as_deleted(
    run: Run, catalog: icefield.Catalog, version: str
) -> None:
    properties = {"format-version": version, "write.delete.mode": "merge-on-read"}
    rows = pa.table({"id": range(10)})
    table = catalog.create_table("db.marked", rows.schema, properties=properties)
    table.append(rows)
    table.delete("id < 3")
    table.delete("id < 5")
    table.maintenance.rewrite_data_files(delete_file_threshold=1)
    _, *lines = (line.split() for line in run("snapshots", "db.marked").lines)
    files = {"2": "2", "3": "1"}[version]
    assert [line[2:] for line in lines] == [
        ["append", "10", "0", "1", "0"],
        ["delete", "0", "3", "1", "0"],
        ["delete", "0", "2", "1", "0" if version == "2" else "1"],
        ["replace", "5", "5", "1", str(1 + int(files))],
    ]


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_288_490_189, "1.2 GiB"), (2**70, "1048576 PiB")],
)
def test_a_size_is_shown_with_its_unit(number: int, shown: str) -> None:
    assert size(number) == shown


def test_the_heading_is_printed_once_however_many_batches_a_plan_has(run: Run, events: icefield.Table) -> None:
    lines = run("files", "db.events").lines
    assert [line.startswith("path") for line in lines] == [True, False, False]


def test_metadata_is_printed_as_it_is_stored(run: Run, events: icefield.Table, properties: dict[str, str]) -> None:
    stored = json.loads(events.io.read(events.metadata_location))
    assert run("metadata", "db.events").object == stored
    if properties["type"] == "sql":
        events.set_properties({"write.metadata.compression-codec": "gzip"})
        data = events.refresh().io.read(events.metadata_location)
        assert run("metadata", "db.events").object == json.loads(gzip.decompress(data))


def test_a_metadata_file_is_read_without_a_catalog(run: Run, events: icefield.Table) -> None:
    location = events.metadata_location
    assert run("scan", location, "--count").out == "rows  2\n"
    assert run("metadata", location).object["table-uuid"] == str(events.metadata.table_uuid)
    refused = run("properties", location, "--set", "a=b")
    assert (refused.status, "can only be read" in refused.err) == (1, True)


# -- scan ---------------------------------------------------------------------------------------------------------


def test_rows_are_printed_filtered_and_narrowed(run: Run, events: icefield.Table) -> None:
    assert run("scan", "db.events", "--where", "id = 2").lines == ["id  kind", "2   b"]
    assert run("scan", "db.events", "--columns", "kind, _pos", "--where", "id = 1").lines == ["kind  _pos", "a     0"]
    assert run("scan", "db.events", "--where", "id = 2", "--output", "json").objects == [{"id": 2, "kind": "b"}]
    assert run("scan", "db.events", "--count", "--where", "kind < 'b'").out == "rows  1\n"
    assert run("scan", "db.events", "--count", "--output", "json").object == {"rows": 2}


def test_an_earlier_version_is_scanned(run: Run, events: icefield.Table) -> None:
    first, second = events.snapshots()
    events.manage_snapshots().create_tag(first.snapshot_id, "old").commit()
    seconds, milliseconds = divmod(first.timestamp_ms, 1000)
    instant = f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}"
    for version in (("--snapshot", str(first.snapshot_id)), ("--ref", "old"), ("--as-of", instant)):
        found = run("scan", "db.events", "--count", "--output", "json", *version).object["rows"]
        assert found == (2 if second.timestamp_ms == first.timestamp_ms and version[0] == "--as-of" else 1), version


def test_twenty_rows_are_printed_unless_told_otherwise(run: Run, catalog: icefield.Catalog) -> None:
    table = catalog.create_table("db.many", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": range(50)}))
    assert len(run("scan", "db.many").lines) == 21
    assert len(run("scan", "db.many", "--limit", "30", "--output", "json").lines) == 30
    assert len(run("scan", "db.many", "--limit", "0", "--output", "json").lines) == 0
    assert len(run("scan", "db.many", "--all").lines) == 51


def test_values_of_every_type_are_printed_in_the_form_of_iceberg(run: Run, catalog: icefield.Catalog) -> None:
    kinds = ["uuid", "decimal(9,2)", "timestamp", "timestamptz", "timestamp_ns", "date", "time", "double", "binary"]
    fields = [NestedField(i, f"c{i}", parse_type(kind)) for i, kind in enumerate(kinds)]
    inner = icefield.types.StructType(
        NestedField(51, "u", parse_type("uuid")), NestedField(52, "t", parse_type("timestamp"))
    )
    nested = [
        NestedField(50, "s", inner),
        NestedField(60, "l", icefield.types.ListType(61, parse_type("timestamptz"))),
        NestedField(70, "m", icefield.types.MapType(71, parse_type("uuid"), 72, parse_type("date"))),
    ]
    schema = icefield.Schema(*fields, *nested)
    table = catalog.create_table("db.kinds", schema, properties={"format-version": "3"})
    uuid, beyond = bytes(range(16)), 253_402_300_800_000_000  # the year 10000, which Python does not know
    arrays = {
        "c0": pa.array([uuid], pa.binary(16)),
        "c1": pa.array(["1.50"]).cast(pa.decimal128(9, 2)),
        "c2": pa.array([beyond - 1]).cast(pa.timestamp("us")),
        "c3": pa.array([beyond]).cast(pa.timestamp("us", "UTC")),
        "c4": pa.array([1]).cast(pa.timestamp("ns")),
        "c5": pa.array([-719162], pa.int32()).cast(pa.date32()),
        "c6": pa.array([86_399_999_999]).cast(pa.time64("us")),
        "c7": pa.array([float("nan")]),
        "c8": pa.array([b"\x00\xff"]),
        "s": pa.StructArray.from_arrays(
            [pa.array([uuid], pa.binary(16)), pa.array([0]).cast(pa.timestamp("us"))], ["u", "t"]
        ),
        "l": pa.array([[0, None]], pa.list_(pa.timestamp("us", "UTC"))),
        "m": pa.array([[(uuid, 0)]], pa.map_(pa.binary(16), pa.date32())),
    }
    table.append(pa.table(arrays))
    (row,) = run("scan", "db.kinds", "--output", "json").objects
    text = "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert row == {
        "c0": text,
        "c1": "1.50",
        "c2": "9999-12-31T23:59:59.999999",
        "c3": "10000-01-01T00:00:00.000000+00:00",
        "c4": "1970-01-01T00:00:00.000000001",
        "c5": "0001-01-01",
        "c6": "23:59:59.999999",
        "c7": "nan",
        "c8": "00ff",
        "s": {"u": text, "t": "1970-01-01T00:00:00.000000"},
        "l": ["1970-01-01T00:00:00.000000+00:00", None],
        "m": [[text, "1970-01-01"]],
    }


@pytest.mark.slow
def test_metadata_that_became_a_gzip_bomb_is_not_inflated(events: icefield.Table, tmp_path: Path) -> None:
    location = f"{events.metadata_location}.copy.metadata.json"
    events.io.put(location, events.io.read_metadata(events.metadata_location), PutMode.CREATE)
    table = icefield.open_table(location)
    bomb = tmp_path / "bomb"
    bomb.write_bytes(gzip.compress(bytes(2**29), 9))
    bomb.replace(location.removeprefix("file://"))
    context: Any = SimpleNamespace(table=lambda name: table)  # opened before the file changed under it
    with bounded(megabytes=256), pytest.raises(InvalidMetadata, match="bytes of gzip hold more than") as raised:
        metadata.run(context, location)
    assert location in str(raised.value)
