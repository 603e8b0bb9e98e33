"""Metadata tables, compared with PyIceberg's over the same files, and with known facts about the files."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.catalog import Table
from icefield.engine import FileChanges, SnapshotProducer
from icefield.errors import NoSuchSnapshot
from icefield.manifest import DataFile, DataFileContent
from icefield.metadata.snapshots import Operation
from metadata_tables import JAVA_COLUMNS, NAMES, described
from pyiceberg.table import StaticTable
from tables import manifests, new_table, rows

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("kind", pa.string()),
        ("day", pa.date32()),
        ("x", pa.float64()),
        ("s", pa.struct([("n", pa.int32())])),
    ]
)


def data(ids: list[int], kind: str | None, day: int = 1) -> pa.Table:
    count = len(ids)
    return pa.table(
        {
            "id": ids,
            "kind": [kind] * count,
            "day": [dt.date(2024, day, 1)] * count,
            "x": [float("nan")] + [0.5] * (count - 1),
            "s": [{"n": number} for number in ids],
        },
        schema=SCHEMA,
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder: Path = tmp_path_factory.mktemp("inspect")
    catalog = icefield.load_catalog("x", warehouse=folder.as_uri())
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", SCHEMA, partition_spec=["kind", ("day", "month")])
    made.append(data([1, 2], "a"))
    made.append(data([3], "b", 2))
    made.append(pa.concat_tables([data([4, 5], "a"), data([6], None)]))
    made.delete("kind = 'b'")
    made.delete("id = 4")
    first = made.snapshots()[0].snapshot_id
    made.manage_snapshots().create_tag(first, "v1", max_ref_age_ms=5).create_branch(first, "dev").commit()
    return made


@pytest.fixture(scope="module")
def peer(table: Table) -> Any:
    return StaticTable.from_metadata(table.metadata_location)


def by(result: pa.Table, *keys: str) -> list[dict[str, Any]]:
    return sorted(result.to_pylist(), key=lambda row: [str(naive(row[key])) for key in keys])


def naive(value: Any) -> Any:
    """The value with instants in PyIceberg's form, without a time zone."""
    match value:
        case dt.datetime():
            return value.replace(tzinfo=None)
        case dict():
            return {name: naive(held) for name, held in value.items()}
    return value


@pytest.mark.parametrize("name", NAMES)
def test_the_columns_are_those_of_java(table, name):
    assert described(getattr(table.inspect, name)().schema) == JAVA_COLUMNS[name]


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("snapshots", ("snapshot_id",)),
        ("history", ("made_current_at", "snapshot_id")),
        ("refs", ("name",)),
        ("manifests", ("path",)),
        ("partitions", ("partition",)),
        ("all_manifests", ("reference_snapshot_id", "path")),
    ],
)
def test_the_rows_are_those_of_pyiceberg(table, peer, name, keys):
    ours, theirs = getattr(table.inspect, name)(), getattr(peer.inspect, name)()
    assert set(theirs.column_names) <= set(ours.column_names)
    ours, theirs = [naive(row) for row in by(ours, *keys)], by(theirs, *keys)
    for row in [*ours, *theirs]:
        if name == "snapshots":
            row["summary"] = sorted(row["summary"])
    assert ours == theirs


@pytest.mark.parametrize("name", ["files", "entries"])
def test_the_rows_of_files_are_those_of_pyiceberg(table, peer, name):
    def comparable(result: pa.Table) -> list[dict[str, Any]]:
        found = []
        for row in result.to_pylist():
            file = row.get("data_file", row)
            row["readable_metrics"].pop("s", None)
            row["readable_metrics"].pop("s.n", None)
            for maps in (
                "column_sizes",
                "value_counts",
                "null_value_counts",
                "nan_value_counts",
                "lower_bounds",
                "upper_bounds",
            ):
                file[maps] = sorted(file[maps] or [])
            found.append(row)
        return sorted(found, key=lambda row: (row.get("status", 0), row.get("data_file", row)["file_path"]))

    ours, theirs = comparable(getattr(table.inspect, name)()), comparable(getattr(peer.inspect, name)())
    assert len(ours) == len(theirs)
    for row, other in zip(ours, theirs, strict=True):
        if name == "entries":
            row["data_file"] = {column: row["data_file"][column] for column in other["data_file"]}
        assert {column: row[column] for column in other} == other


def test_the_log_of_metadata_files_ends_with_the_current_one(table, peer):
    ours = table.inspect.metadata_log_entries()
    assert [naive(row) for row in ours.to_pylist()] == peer.inspect.metadata_log_entries().to_pylist()
    found = ours.to_pylist()
    assert [row["file"].rpartition("/")[2] for row in found] == [
        f"v{n}.metadata.json" for n in range(1, len(found) + 1)
    ]
    assert found[0]["latest_snapshot_id"] is None
    assert found[-1]["latest_snapshot_id"] == table.current_snapshot().snapshot_id
    assert found[-1]["latest_sequence_number"] == 5
    assert found[-1]["file"] == table.metadata_location


def test_a_snapshot_of_the_past_can_be_looked_into(table):
    first = table.snapshots()[0].snapshot_id
    assert table.inspect.files(first)["record_count"].to_pylist() == [2]
    assert table.inspect.manifests(first).num_rows == 1
    assert table.inspect.entries(first)["status"].to_pylist() == [1]
    assert table.inspect.partitions(first)["record_count"].to_pylist() == [2]
    for look in (table.inspect.files, table.inspect.manifests, table.inspect.entries, table.inspect.partitions):
        with pytest.raises(NoSuchSnapshot):
            look(42)


def test_partitions_can_be_filtered(table):
    kinds = [row["kind"] for row in table.inspect.partitions(data_filter="kind = 'a'")["partition"].to_pylist()]
    assert kinds == ["a"]
    assert table.inspect.partitions(data_filter="id > 100").num_rows == 0
    assert table.inspect.partitions().num_rows == 2


def test_a_table_without_snapshots_has_empty_tables():
    empty = new_table("kind")
    for name in (
        "snapshots",
        "history",
        "refs",
        "manifests",
        "entries",
        "files",
        "partitions",
        "all_files",
        "all_manifests",
    ):
        assert getattr(empty.inspect, name)().num_rows == 0
    assert empty.inspect.metadata_log_entries().num_rows == 1


def test_partitions_of_several_specs_stand_side_by_side():
    table = new_table("kind")
    table.append(rows([1], "a"))
    table.update_spec().remove_field("kind").add_field("id", "bucket[2]").commit()
    table.append(rows([1], "a"))
    found = sorted(table.inspect.partitions().to_pylist(), key=lambda row: row["spec_id"])
    assert [(row["spec_id"], row["partition"]) for row in found] == [
        (0, {"kind": "a", "id_bucket_2": None}),
        (1, {"kind": None, "id_bucket_2": found[1]["partition"]["id_bucket_2"]}),
    ]
    assert found[1]["partition"]["id_bucket_2"] is not None
    assert sorted(table.inspect.files()["spec_id"].to_pylist()) == [0, 1]


def test_an_unpartitioned_table_is_one_partition():
    table = new_table()
    table.append(rows([1, 2]))
    table.append(rows([3]))
    (row,) = table.inspect.partitions().to_pylist()
    assert (row["record_count"], row["file_count"]) == (3, 2)
    assert not row.keys() & {"partition", "spec_id"}  # as in Java
    assert row["last_updated_snapshot_id"] == table.current_snapshot().snapshot_id


def test_delete_files_are_counted_apart():
    table = new_table()
    table.append(rows([1, 2]))

    def delete(name: str, content: DataFileContent) -> DataFile:
        ids = (1,) if content is DataFileContent.EQUALITY_DELETES else None
        return DataFile(
            file_path=f"memory://d/{name}",
            file_format="parquet",
            record_count=4,
            file_size_in_bytes=1,
            content=content,
            equality_ids=ids,
        )

    files = [delete("p", DataFileContent.POSITION_DELETES), delete("e", DataFileContent.EQUALITY_DELETES)]

    class AddDeletes(SnapshotProducer):
        def find(self, head, context):
            return FileChanges(files)

        def operation(self, changes):
            return Operation.DELETE

    AddDeletes(table.stage).commit()
    (row,) = table.inspect.partitions().to_pylist()
    assert (row["record_count"], row["position_delete_record_count"], row["equality_delete_file_count"]) == (2, 4, 1)
    assert table.inspect.delete_files()["content"].to_pylist() == [1, 2]
    assert table.inspect.data_files()["content"].to_pylist() == [0]
    assert table.inspect.all_delete_files().num_rows == 2
    assert table.inspect.all_data_files().num_rows == 1
    counts = [
        (row["added_data_files_count"], row["added_delete_files_count"])
        for row in table.inspect.manifests().to_pylist()
    ]
    assert counts == [(1, 0), (0, 2)]
    assert len(manifests(table)) == 2


def test_a_table_that_was_partitioned_once_keeps_the_columns_of_partitions():
    table = new_table("kind")
    table.append(rows([1], "a"))
    table.update_spec().remove_field("kind").commit()
    table.append(rows([2]))
    found = sorted(table.inspect.partitions().to_pylist(), key=lambda row: row["spec_id"])
    assert [(row["spec_id"], row["partition"], row["file_count"]) for row in found] == [
        (0, {"kind": "a"}, 1),
        (1, {"kind": None}, 1),
    ]
