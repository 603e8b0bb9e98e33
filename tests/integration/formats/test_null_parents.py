"""Nulls whose type has required parts: written, read, rewritten and counted in every format."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icefield.schema import Schema
from icefield.types import ListType, LongType, MapType, NestedField, StringType, StructType, VariantType
from tables import new_table

POINT = StructType(NestedField(20, "x", LongType(), required=True), NestedField(21, "y", StringType()))
NESTED = StructType(
    NestedField(22, "inner", StructType(NestedField(23, "z", LongType(), required=True)), required=True)
)
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "s", POINT),
    NestedField(3, "m", MapType(30, StringType(), 31, StructType(NestedField(32, "x", LongType(), required=True)))),
    NestedField(4, "l", ListType(40, StructType(NestedField(41, "x", LongType(), required=True)))),
    NestedField(5, "n", NESTED),
    NestedField(6, "r", ListType(60, LongType(), element_required=True)),
)
REQUIRED_X = pa.struct([pa.field("x", pa.int64(), nullable=False)])
FORMATS = ("parquet", "orc", "avro")


@pytest.fixture(params=FORMATS)
def file_format(request):
    return request.param


@pytest.fixture(params=[None, ["id"]], ids=["unpartitioned", "partitioned"])
def table(request, file_format):
    properties = {"write.format.default": file_format}
    return new_table(request.param, schema=SCHEMA, properties=properties)


def row(id_, **values):
    return {"id": id_, **dict.fromkeys("smlnr"), **values}


def read(table):
    found = table.scan().to_arrow()
    pq.write_table(found, io.BytesIO())  # what was read can be written by others
    return sorted(found.to_pylist(), key=lambda each: each["id"])


def test_an_optional_struct_with_a_required_part_may_be_left_out(table):
    table.append(pa.table({"id": [1, 2]}))
    assert read(table) == [row(1), row(2)]


@pytest.mark.parametrize("name", "smlnr")
def test_nulls_that_arrow_made_are_written(table, name):
    kind = table.scan().to_arrow().schema.field(name).type
    table.append(pa.table({"id": [1, 2], name: pa.nulls(2, kind)}))
    table.append(pa.table({"id": [3], name: pa.nulls(1)}))
    assert read(table) == [row(1), row(2), row(3)]


def test_a_null_struct_is_cast_with_the_others(table):
    narrow = pa.array([None, {"x": 1, "y": "a"}], pa.struct([("x", pa.int32()), ("y", pa.large_string())]))
    table.append(pa.table({"id": [1, 2], "s": narrow}))
    assert read(table) == [row(1), row(2, s={"x": 1, "y": "a"})]
    assert table.scan("s.x is null").to_arrow()["id"].to_pylist() == [1]
    assert table.scan("s.x is null").count() == 1


def test_null_values_of_a_map_with_a_required_part_are_written(table):
    values = pa.concat_arrays([pa.nulls(1, REQUIRED_X), pa.array([{"x": 5}], REQUIRED_X)])
    maps = pa.MapArray.from_arrays([0, 2], pa.array(["a", "b"]), values)
    table.append(pa.table({"id": [1], "m": maps}))
    assert read(table) == [row(1, m=[("a", None), ("b", {"x": 5})])]


def test_null_values_of_a_map_are_cast_with_the_others(table):
    narrow = pa.map_(pa.string(), pa.struct([("x", pa.int32())]))
    table.append(pa.table({"id": [1], "m": pa.array([[("a", None), ("b", {"x": 5})]], narrow)}))
    assert read(table) == [row(1, m=[("a", None), ("b", {"x": 5})])]


def test_null_elements_of_a_list_with_a_required_part_are_written(table):
    elements = pa.concat_arrays([pa.nulls(1, REQUIRED_X), pa.array([{"x": 5}], REQUIRED_X)])
    table.append(pa.table({"id": [1], "l": pa.ListArray.from_arrays([0, 2], elements)}))
    narrow = pa.array([[None, {"x": 6}], None], pa.list_(pa.struct([("x", pa.int32())])))
    table.append(pa.table({"id": [2, 3], "l": narrow}))
    assert read(table) == [row(1, l=[None, {"x": 5}]), row(2, l=[None, {"x": 6}]), row(3)]


def test_nulls_below_a_null_list_are_not_written(table):
    lists = pa.ListArray.from_arrays([0, 2, 3], pa.array([None, None, 7], pa.int64()), mask=pa.array([True, False]))
    table.append(pa.table({"id": [1, 2], "r": lists}))
    assert read(table) == [row(1), row(2, r=[7])]


def test_files_with_null_parents_are_rewritten(table):
    narrow = pa.array([None, {"x": 1, "y": "a"}, None], pa.struct([("x", pa.int32()), ("y", pa.string())]))
    table.append(pa.table({"id": [1, 1, 1], "s": narrow}))
    table.delete("s.y = 'a'")
    assert read(table) == [row(1), row(1)]
    table.upsert(pa.table({"id": [2]}), ["id"])
    table.overwrite(pa.table({"id": [3]}), "id = 2")
    assert read(table) == [row(1), row(1), row(3)]


@pytest.mark.parametrize("other", FORMATS)
def test_a_file_of_one_format_is_rewritten_in_another(file_format, other):
    table = new_table(schema=SCHEMA, properties={"write.format.default": file_format})
    table.append(pa.table({"id": [1, 2, 3]}))
    with table.transaction() as transaction:
        transaction.set_properties({"write.format.default": other})
    table.delete("id = 2")
    assert read(table) == [row(1), row(3)]


def test_a_file_older_than_a_struct_and_a_variant_is_rewritten(file_format):
    table = new_table(
        schema=Schema(NestedField(1, "id", LongType())),
        properties={"write.format.default": file_format, "format-version": "3"},
    )
    table.append(pa.table({"id": [1, 2, 3]}))
    lacking = {"s": None}
    with table.update_schema() as update:
        update.add_column("s", StructType(NestedField(30, "a", LongType(), required=True)))
        if file_format != "orc":  # which holds no variants
            update.add_column("v", VariantType())
            lacking["v"] = None
    table.append(pa.table({"id": [4]}))
    table.delete("id = 1")
    table.overwrite(pa.table({"id": [5]}), "id = 2")
    assert read(table) == [{"id": id_, **lacking} for id_ in (3, 4, 5)]
