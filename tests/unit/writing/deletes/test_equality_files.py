"""Writing equality delete files, and deleting rows by them."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.catalog import Table
from icefield.errors import InvalidArgument, StorageError, UnsupportedFeature
from icefield.manifest import DataFile, DataFileContent
from icefield.metadata.snapshots import Operation
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.schema import Schema
from icefield.types import ListType, NestedField, StructType
from icefield.writing import DeleteContext, write_equality_deletes
from tables import ids, memory_catalog, new_table, rows

BY_KIND = PartitionSpec(PartitionField(2, 1000, "identity", "kind"))
NESTED = Schema(
    NestedField(1, "id", "long", required=True),
    NestedField(2, "place", StructType(NestedField(3, "city", "string"), NestedField(4, "zip", "int"))),
    NestedField(5, "tags", ListType(6, "string")),
    NestedField(7, "weight", "double"),
    NestedField(8, "ratio", "float"),
)


def write(table: Table, names: list[str], given_rows: Any, **properties: str) -> list[DataFile]:
    context = DeleteContext.from_metadata(table.metadata, table.io, properties=properties)
    return write_equality_deletes(context, [table.schema().find_field(name).field_id for name in names], given_rows)


def files_below(table: Table) -> set[str]:
    return {info.location for info in table.io.list_files(f"{table.location()}/data")}


@pytest.mark.spec("DEL-20", "DEL-22", "DEL-27")
@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
@pytest.mark.parametrize("version", ["2", "3"])
def test_rows_are_deleted_that_equal_given_ones(file_format: str, version: str) -> None:
    table = new_table(properties={"format-version": version, "write.delete.format.default": file_format})
    table.append(rows(range(10)))
    table.delete_by_equality(pa.table({"id": [3, 4, 100]}), ["id"])
    assert ids(table) == [0, 1, 2, 5, 6, 7, 8, 9]
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.operation is Operation.DELETE
    assert snapshot.summary["added-equality-deletes"] == "3"
    (made,) = table.inspect.delete_files().to_pylist()
    assert (made["content"], made["equality_ids"], made["record_count"]) == (2, [1], 3)
    assert made["file_path"].endswith(f"-equality-deletes.{file_format}")
    table.append(rows([3]))
    assert 3 in ids(table)


@pytest.mark.spec("MET-20")
@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
@pytest.mark.parametrize("mode", ["full", "counts", "none"])
def test_metrics_describe_all_deleted_rows_or_are_left_out(file_format: str, mode: str) -> None:
    table = new_table()
    given = pa.table({"id": [*range(1000)], "kind": [None, "a", "b", "c"] * 250})
    (made,) = write(
        table,
        ["id", "kind"],
        given.to_batches(max_chunksize=100),
        **{"write.delete.format.default": file_format, "write.metadata.metrics.default": mode},
    )
    assert made.record_count == 1000
    counted, bounded = mode != "none", mode == "full"
    assert made.value_counts == ({1: 1000, 2: 1000} if counted else {})
    assert made.null_value_counts == ({1: 0, 2: 250} if counted else {})
    assert made.lower_bounds == ({1: bytes(8), 2: b"a"} if bounded else {})
    assert made.upper_bounds == ({1: (999).to_bytes(8, "little"), 2: b"c"} if bounded else {})


@pytest.mark.spec("DEL-21")
def test_null_equals_null_and_all_columns_count() -> None:
    table = new_table()
    table.append(pa.concat_tables([rows([1, 2], None), rows([1, 2], "a")]))
    table.delete_by_equality(pa.table({"kind": pa.array([None, "a"]), "id": [1, 2]}), ["id", "kind"])
    left = table.scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["kind"] or "") for row in left) == [(1, "a"), (2, "")]


@pytest.mark.spec("DEL-23")
def test_columns_may_are_in_structs() -> None:
    catalog = memory_catalog()
    table = catalog.create_table("db.nested", NESTED)
    some = [
        {"id": 1, "place": {"city": "Ulm", "zip": 1}, "tags": [], "weight": 1.0, "ratio": 1.0},
        {"id": 2, "place": {"city": None, "zip": 2}, "tags": [], "weight": 1.0, "ratio": 1.0},
        {"id": 3, "place": None, "tags": None, "weight": None, "ratio": None},
        {"id": 4, "place": {"city": "Bonn", "zip": 1}, "tags": [], "weight": 1.0, "ratio": 1.0},
    ]
    table.append(pa.Table.from_pylist(some, table.scan().to_arrow().schema))
    # Columns that the files do not need are ignored, also within structs.
    given_rows = pa.Table.from_pylist([some[0], some[2]], table.scan().to_arrow().schema)
    (made,) = write(table, ["place.city"], given_rows)
    assert (made.content, made.equality_ids) == (
        DataFileContent.EQUALITY_DELETES,
        (table.schema().find_field("place.city").field_id,),
    )
    table.delete_by_equality(given_rows, ["place.city"])
    # For a null struct, the column within it counts as null.
    assert ids(table) == [4]


@pytest.mark.spec("DEL-23")
@pytest.mark.parametrize(
    ("name", "reason"),
    [("weight", "of type double"), ("ratio", "of type float"), ("place", "of type struct"), ("tags", "of type list")],
)
def test_columns_that_state_no_rows_apart_are_refused(name: str, reason: str) -> None:
    table = memory_catalog().create_table("db.nested", NESTED)
    with pytest.raises(InvalidArgument, match=reason):
        table.delete_by_equality(pa.table({name: pa.nulls(1)}), [name])
    context = DeleteContext.from_metadata(table.metadata, table.io)
    element = table.schema().find_field("tags.element").field_id
    for wrong, why in (([element], "in a list or map"), ([99], "no column with the id 99"), ([], "name the columns")):
        with pytest.raises(InvalidArgument, match=why):
            write_equality_deletes(context, wrong, pa.table({"id": [1]}))


@pytest.mark.spec("DEL-02")
def test_deletes_of_a_partitioned_table_apply_to_the_partition_of_their_rows() -> None:
    table = new_table(BY_KIND)
    table.append(pa.concat_tables([rows([1, 2], "a"), rows([1, 2], "b")]))
    table.delete_by_equality(pa.table({"id": [1, 2], "kind": ["a", "b"]}), ["id"])
    left = table.scan().to_arrow().to_pylist()
    assert sorted((row["kind"], row["id"]) for row in left) == [("a", 2), ("b", 1)]
    made = table.inspect.delete_files().to_pylist()
    assert sorted(file["partition"]["kind"] for file in made) == ["a", "b"]
    with pytest.raises(InvalidArgument, match="lack column 'kind', by which the table is partitioned"):
        table.delete_by_equality(pa.table({"id": [1]}), ["id"])
    with pytest.raises(InvalidArgument, match="lack column 'id', by which rows are deleted"):
        table.delete_by_equality(pa.table({"kind": ["a"]}), ["id"])


def test_the_identifier_fields_state_rows_apart_unless_columns_are_named() -> None:
    schema = Schema(NestedField(1, "id", "long", required=True), identifier_field_ids=[1])
    table = memory_catalog().create_table("db.t", schema)
    table.append(pa.table({"id": pa.array([1, 2, 3])}))
    table.delete_by_equality(pa.table({"id": [2]}))
    assert ids(table) == [1, 3]
    with pytest.raises(InvalidArgument, match="no identifier fields"):
        new_table().delete_by_equality(pa.table({"id": [2]}))
    with pytest.raises(InvalidArgument, match="list of names"):
        table.delete_by_equality(pa.table({"id": [2]}), "id")


@pytest.mark.spec("DEL-03")
def test_tables_of_version_1_are_refused_and_stay_as_they_were() -> None:
    table = new_table(properties={"format-version": "1"})
    table.append(rows([1]))
    before = files_below(table)
    with pytest.raises(UnsupportedFeature, match="no row-level deletes; upgrade"):
        table.delete_by_equality(pa.table({"id": [1]}), ["id"])
    assert files_below(table) == before


def test_an_error_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table()
    table.append(rows([1]))
    before = files_below(table)

    def some() -> Any:
        yield pa.record_batch({"id": [1]})
        raise StorageError("the source is gone")

    with pytest.raises(StorageError, match="source is gone"):
        table.delete_by_equality(some(), ["id"])
    with pytest.raises(InvalidArgument, match="comes twice"):
        table.delete_by_equality(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["id", "id"]), ["id"])
    assert files_below(table) == before
    assert ids(table) == [1]


KEYS = {
    "boolean": st.booleans(),
    "int": st.integers(-5, 5),
    "long": st.integers(-5, 5),
    "date": st.sampled_from([dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29)]),
    "timestamp": st.sampled_from([dt.datetime(1969, 12, 31, 23), dt.datetime(2024, 2, 29, 1, 2, 3)]),
    "decimal(9, 2)": st.sampled_from([decimal.Decimal("1.10"), decimal.Decimal("-3.00"), decimal.Decimal("0.00")]),
    "string": st.sampled_from(["", "a", "ab", "\u00e4"]),
    "binary": st.sampled_from([b"", b"\x00", b"\x00\xff"]),
    "uuid": st.sampled_from([uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes]),
}


@pytest.mark.slow
@settings(max_examples=90, deadline=None)
@given(st.data(), st.sampled_from(["parquet", "avro", "orc"]))
def test_what_is_written_is_what_a_scan_leaves_out(data: st.DataObject, file_format: str) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=3))
    fields = [NestedField(number + 1, f"k{number}", kind) for number, kind in enumerate(kinds)]
    key = st.tuples(*(st.none() | KEYS[kind] for kind in kinds))
    held, deleted = data.draw(st.lists(key, max_size=12)), data.draw(st.lists(key, max_size=6))
    properties = {"write.format.default": file_format}
    table = memory_catalog().create_table("db.t", Schema(*fields), properties=properties)
    schema = table.scan().to_arrow().schema

    def table_of(keys: list[tuple[Any, ...]]) -> pa.Table:
        columns = [[one[number] for one in keys] for number in range(len(kinds))]
        return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)

    table.append(table_of(held))
    table.delete_by_equality(table_of(deleted), schema.names)
    left = table.scan().to_arrow()
    expected = table_of([one for one in held if one not in deleted])
    assert sorted(map(repr, left.to_pylist())) == sorted(map(repr, expected.to_pylist()))
