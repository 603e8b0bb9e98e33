"""Partition specs: their struct, their JSON, the values of rows and the folders that show them."""

from __future__ import annotations

import math
import pickle
import struct
from decimal import Decimal
from typing import Any
from urllib.parse import unquote_plus

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidArgument, InvalidMetadata, InvalidSchema, UnsupportedFeature
from icefield.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from icefield.partitioning.spec import (
    PARTITION_FIELD_ID_START,
    check_partition_values,
    fields_from_json,
    fields_to_json,
    normalised_key,
    partition_batch,
    spec_for_new_table,
    spec_from_json,
    spec_to_json,
    validate_spec,
)
from icefield.partitioning.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    UnknownTransform,
    parse_transform,
)
from icefield.schema import Schema, schema_to_arrow
from icefield.types import (
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    UnknownType,
)
from icefield.types.arrow.types import field_id
from icefield.types.values import from_arrow_array
from pyiceberg.partitioning import PartitionSpec as PeerSpec
from vectors import VECTORS

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType()),
    NestedField(3, "price", DecimalType(9, 2)),
    NestedField(4, "ts", TimestampType()),
    NestedField(5, "where", StructType(NestedField(6, "at", StructType(NestedField(7, "city", StringType()))))),
    NestedField(8, "tags", ListType(9, StringType())),
    NestedField(10, "counts", MapType(11, StringType(), 12, IntegerType())),
    NestedField(13, "score", DoubleType()),
)
SPEC = PartitionSpec(
    PartitionField(4, 1000, "day", "ts_day"),
    PartitionField(1, 1001, "bucket[16]", "id_bucket"),
    PartitionField(7, 1002, "truncate[2]", "city"),
    PartitionField(3, 1003, "void", "price"),
    spec_id=3,
)


def rows(**columns: list[Any]) -> pa.RecordBatch:
    arrow = schema_to_arrow(SCHEMA)
    count = len(next(iter(columns.values())))
    arrays = [pa.array(columns.get(f.name, [None] * count), f.type) for f in arrow]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([f.with_nullable(True) for f in arrow]))


@pytest.mark.spec("PART-01", "PART-06")
def test_a_spec_is_an_ordered_list_of_fields_with_an_id() -> None:
    assert [(field.source_id, str(field.transform), field.name) for field in SPEC.fields] == [
        (4, "day", "ts_day"),
        (1, "bucket[16]", "id_bucket"),
        (7, "truncate[2]", "city"),
        (3, "void", "price"),
    ]
    assert SPEC.spec_id == 3
    assert len(SPEC) == 4
    assert spec_from_json(spec_to_json(SPEC)) == SPEC
    assert PartitionSpec(*reversed(SPEC.fields), spec_id=3) != SPEC
    assert pickle.loads(pickle.dumps(SPEC)) == SPEC
    assert hash(pickle.loads(pickle.dumps(SPEC))) == hash(SPEC)
    assert SPEC.fields[0] == PartitionField(source_id=4, field_id=1000, transform=DayTransform(), name="ts_day")
    assert str(SPEC.fields[0]) == "1000: ts_day: day(4)"


@pytest.mark.spec("PART-16", "PART-17")
def test_an_unpartitioned_spec_has_no_fields_and_an_empty_tuple() -> None:
    assert UNPARTITIONED.is_unpartitioned
    assert UNPARTITIONED.spec_id == 0
    assert UNPARTITIONED.last_assigned_field_id == PARTITION_FIELD_ID_START - 1 == 999
    assert UNPARTITIONED.partition_type(SCHEMA) == StructType()
    assert UNPARTITIONED.partition_path(SCHEMA, ()) == ""
    values = partition_batch(UNPARTITIONED, SCHEMA, rows(id=[1, 2, 3]))
    assert from_arrow_array(StructType(), values) == [(), (), ()]
    assert not SPEC.is_unpartitioned
    assert PartitionSpec(PartitionField(1, 1000, "void", "gone")).is_unpartitioned


@pytest.mark.spec("PART-22", "PART-11")
def test_the_partition_struct_is_optional_and_typed_by_the_transforms_under_the_fields_ids() -> None:
    kind = SPEC.partition_type(SCHEMA)
    assert kind == StructType(
        NestedField(1000, "ts_day", DateType()),
        NestedField(1001, "id_bucket", IntegerType()),
        NestedField(1002, "city", StringType()),
        NestedField(1003, "price", DecimalType(9, 2)),
    )
    assert all(field.optional for field in kind.fields)


@pytest.mark.spec("PART-02", "PART-04", "PART-22", "TRN-22")
def test_partition_values_are_derived_from_the_rows() -> None:
    batch = rows(
        id=[34, 34, 35],
        ts=[-1, None, 1510871468000000],
        where=[{"at": {"city": "Oslo"}}, {"at": None}, None],
        price=[Decimal("1.00")] * 3,
    )
    values = partition_batch(SPEC, SCHEMA, batch)
    bucket = parse_transform("bucket[16]")
    assert from_arrow_array(SPEC.partition_type(SCHEMA), values) == [
        (-1, bucket.apply_value(34, LongType()), "Os", None),
        (None, bucket.apply_value(34, LongType()), None, None),
        (17486, bucket.apply_value(35, LongType()), None, None),
    ]
    assert [values.type.field(i).name for i in range(4)] == ["ts_day", "id_bucket", "city", "price"]
    assert [field_id(values.type.field(i)) for i in range(4)] == [1000, 1001, 1002, 1003]
    assert values.null_count == 0
    sliced = partition_batch(SPEC, SCHEMA, batch.slice(1))
    assert (
        from_arrow_array(SPEC.partition_type(SCHEMA), sliced)
        == from_arrow_array(SPEC.partition_type(SCHEMA), values)[1:]
    )


@pytest.mark.spec("TRN-12")
def test_a_decimal_that_rounds_beyond_its_type_is_refused() -> None:
    schema = Schema(NestedField(1, "d", "decimal(9,2)"))
    spec = PartitionSpec(PartitionField(1, 1000, "truncate[10]", "d_trunc"))
    held = pa.record_batch({"d": pa.array([Decimal("-9999999.90"), None, Decimal("9999999.99")], pa.decimal128(9, 2))})
    assert partition_batch(spec, schema, held).field("d_trunc")[0].as_py() == Decimal("-9999999.90")
    beyond = pa.record_batch({"d": pa.array([Decimal("-9999999.91")], pa.decimal128(9, 2))})
    check_partition_values(spec, partition_batch(spec, schema, held))
    with pytest.raises(InvalidArgument, match="d_trunc"):
        check_partition_values(spec, partition_batch(spec, schema, beyond))


def test_what_is_below_a_null_struct_is_no_partition_value() -> None:
    inner = pa.StructArray.from_arrays([pa.array(["hidden", "seen"])], ["city"])
    at = pa.StructArray.from_arrays([inner], ["at"], mask=pa.array([True, False]))
    schema = SCHEMA.select("where")
    spec = PartitionSpec(PartitionField(7, 1000, "identity", "city"))
    values = partition_batch(spec, schema, pa.RecordBatch.from_arrays([at], ["where"]))
    assert values.field(0).to_pylist() == [None, "seen"]


def test_other_encodings_of_a_column_give_the_partition_struct_its_own_types() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(["a", None, "a"], pa.large_string()).dictionary_encode()], ["name"])
    for transform in ("identity", "truncate[1]", "bucket[4]"):
        spec = PartitionSpec(PartitionField(2, 1000, transform, "n"))
        column = partition_batch(spec, SCHEMA, batch).field(0)
        assert column.type == (pa.int32() if transform == "bucket[4]" else pa.string())
        assert column[0] == column[2] != column[1]


@pytest.mark.parametrize(
    ("spec", "error", "match"),
    [
        (PartitionSpec(PartitionField(99, 1000, "identity", "x")), InvalidArgument, "not in the schema"),
        (PartitionSpec(PartitionField(1, 1000, "zorder", "x")), UnsupportedFeature, "cannot compute"),
        (PartitionSpec(PartitionField(1, 1000, "zorder", "x", source_ids=(1, 2))), UnsupportedFeature, "cannot"),
        (PartitionSpec(PartitionField(7, 1000, "identity", "x")), InvalidArgument, r"no column 'where"),
        (PartitionSpec(PartitionField(2, 1000, "identity", "x")), InvalidArgument, "no column 'name'"),
    ],
    ids=str,
)
def test_values_that_cannot_be_derived_are_an_error(spec: PartitionSpec, error: type[Exception], match: str) -> None:
    where = pa.array([{"at": {"town": "Oslo"}}])
    batch = pa.RecordBatch.from_arrays([pa.array([1]), where], ["id", "where"])
    with pytest.raises(error, match=match):
        partition_batch(spec, SCHEMA, batch)


@pytest.mark.spec("PART-02")
@pytest.mark.parametrize(
    ("source", "transform", "match"),
    [
        (9, "identity", "inside a list or map"),
        (11, "identity", "inside a list or map"),
        (12, "bucket[4]", "inside a list or map"),
        (8, "identity", "must be primitive"),
        (5, "identity", "must be primitive"),
        (99, "identity", "does not have"),
        (13, "bucket[4]", "does not apply"),
    ],
)
def test_a_source_must_be_a_primitive_column_outside_lists_and_maps(source: int, transform: str, match: str) -> None:
    with pytest.raises(InvalidSchema, match=match):
        validate_spec(PartitionSpec(PartitionField(source, 1000, transform, "p")), SCHEMA)
    validate_spec(PartitionSpec(PartitionField(7, 1000, "identity", "p")), SCHEMA)


@pytest.mark.spec("PART-18")
@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ([PartitionField(1, 1000, "identity", "")], "needs a name"),
        (
            [PartitionField(1, 1000, "bucket[2]", "b"), PartitionField(1, 1001, "bucket[3]", "b")],
            "two partition fields",
        ),
        ([PartitionField(1, 1000, "bucket[2]", "b"), PartitionField(1, 1000, "bucket[3]", "c")], "have the id 1000"),
        ([PartitionField(1, 1000, "identity", "name")], "name it otherwise"),
        ([PartitionField(2, 1000, "bucket[2]", "name")], "name it otherwise"),
        ([PartitionField(1, 1000, "void", "name")], "name it otherwise"),
    ],
)
def test_names_of_fields_are_their_own(fields: list[PartitionField], match: str) -> None:
    with pytest.raises(InvalidSchema, match=match):
        validate_spec(PartitionSpec(*fields), SCHEMA)


@pytest.mark.spec("PART-18")
def test_an_identity_may_bear_its_column_s_name_and_so_may_the_void_it_becomes() -> None:
    validate_spec(PartitionSpec(PartitionField(2, 1000, "identity", "name")), SCHEMA)
    validate_spec(PartitionSpec(PartitionField(2, 1000, "void", "name")), SCHEMA)
    # Names of top-level columns can conflict with a partition field's name; names of nested fields cannot.
    validate_spec(PartitionSpec(PartitionField(1, 1000, "bucket[4]", "city")), SCHEMA)


@pytest.mark.spec("PART-19", "PART-20")
def test_a_stored_unknown_transform_is_carried_along_but_no_new_spec_may_have_one() -> None:
    for text in VECTORS["partition_spec_json"]["unknown_transform_roundtrip"]:
        stored = {"spec-id": 4, "fields": [{"source-id": 2, "field-id": 1000, "name": "odd", "transform": text}]}
        spec = spec_from_json(stored)
        assert spec.fields[0].transform == UnknownTransform(text)
        assert not spec.fields[0].is_known
        assert spec_to_json(spec) == stored
        assert spec.partition_type(SCHEMA) == StructType(NestedField(1000, "odd", StringType()))
        assert spec.partition_path(SCHEMA, ("4/2",)) == "odd=4%2F2"
        assert normalised_key(("4/2",)) != normalised_key(("4/3",))
        with pytest.raises(UnsupportedFeature, match="nothing new can be written"):
            validate_spec(spec, SCHEMA)


@pytest.mark.spec("PART-10")
def test_fields_without_ids_count_from_1000_in_each_spec() -> None:
    vector = VECTORS["partition_spec_json"]
    fields = fields_from_json(vector["v1_fields_only"])
    assert [field.field_id for field in fields] == vector["v1_expected_field_ids"]
    assert PartitionSpec(*fields) == spec_from_json(vector["object"])
    assert spec_from_json({"spec-id": 0, "fields": vector["v1_fields_only"]}) == PartitionSpec(*fields)
    # A v1 writer may have stated the field ids.
    assert fields_from_json(vector["object"]["fields"]) == fields


@pytest.mark.spec("PART-01", "TRN-25")
def test_the_json_of_the_vectors_comes_back_as_it_was() -> None:
    vector = VECTORS["partition_spec_json"]["object"]
    assert spec_to_json(spec_from_json(vector)) == vector
    assert fields_to_json(spec_from_json(vector)) == vector["fields"]


@pytest.mark.spec("PART-21")
def test_a_transform_of_several_columns_has_source_ids_and_any_other_a_source_id() -> None:
    vector = VECTORS["partition_spec_json"]["v3_multi_arg"]
    spec = spec_from_json(vector)
    assert spec.fields[0].source_ids == (1, 2)
    assert spec.fields[0].source_id == 1
    assert not spec.fields[0].is_known
    assert spec_to_json(spec) == vector
    # The name of a known transform over two columns is not that transform.
    odd = {"spec-id": 1, "fields": [{"source-ids": [1, 2], "field-id": 1000, "name": "b", "transform": "bucket[8]"}]}
    assert spec_from_json(odd).fields[0].transform == UnknownTransform("bucket[8]")
    assert spec_to_json(spec_from_json(odd)) == odd
    alone = {"spec-id": 1, "fields": [{"source-ids": [1], "field-id": 1000, "name": "b", "transform": "bucket[8]"}]}
    assert spec_from_json(alone).fields[0].transform == BucketTransform(8)
    assert "source-id" in spec_to_json(spec_from_json(alone))["fields"][0]


FIELD = {"source-id": 1, "field-id": 1000, "name": "b", "transform": "bucket[8]"}


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        {"fields": []},
        {"spec-id": "0", "fields": []},
        {"spec-id": -1, "fields": []},
        {"spec-id": True, "fields": []},
        {"spec-id": 0},
        {"spec-id": 0, "fields": {}},
        {"spec-id": 0, "fields": [3]},
        {"spec-id": 0, "fields": [{**FIELD, "name": None}]},
        {"spec-id": 0, "fields": [{**FIELD, "transform": 4}]},
        {"spec-id": 0, "fields": [{**FIELD, "transform": "bucket[0]"}]},
        {"spec-id": 0, "fields": [{**FIELD, "source-id": 2**31}]},
        {"spec-id": 0, "fields": [{**FIELD, "source-id": 1.0}]},
        {"spec-id": 0, "fields": [{**FIELD, "source-ids": []}]},
        {"spec-id": 0, "fields": [{**FIELD, "source-ids": [1, "2"]}]},
        {"spec-id": 0, "fields": [{**FIELD, "field-id": None}]},
        {"spec-id": 0, "fields": [FIELD, {key: FIELD[key] for key in ("source-id", "name", "transform")}]},
    ],
    ids=str,
)
def test_broken_json_is_one_typed_error(broken: Any) -> None:
    with pytest.raises(InvalidMetadata):
        spec_from_json(broken)


@pytest.mark.spec("PART-01")
def test_pyiceberg_reads_the_json_and_writes_the_same() -> None:
    peer = PeerSpec.model_validate(spec_to_json(SPEC))
    assert spec_from_json(peer.model_dump(by_alias=True, mode="json")) == SPEC


@pytest.mark.spec("PART-14")
def test_specs_are_equivalent_when_sources_transforms_and_names_are_pairwise_equal() -> None:
    first = PartitionSpec(PartitionField(4, 1000, "day", "d"), PartitionField(1, 1001, "bucket[4]", "b"), spec_id=1)
    other_ids = PartitionSpec(PartitionField(4, 1005, "day", "d"), PartitionField(1, 1006, "bucket[4]", "b"), spec_id=2)
    assert first != other_ids
    assert first.compatible_with(other_ids)
    for changed in (
        PartitionSpec(*reversed(first.fields)),
        PartitionSpec(first.fields[0]),
        PartitionSpec(first.fields[0], PartitionField(1, 1001, "bucket[5]", "b")),
        PartitionSpec(first.fields[0], PartitionField(1, 1001, "bucket[4]", "c")),
        PartitionSpec(first.fields[0], PartitionField(3, 1001, "bucket[4]", "b")),
    ):
        assert not first.compatible_with(changed)


@pytest.mark.spec("PART-19")
def test_a_source_that_is_gone_is_looked_up_in_older_schemas() -> None:
    spec = PartitionSpec(
        PartitionField(2, 1000, "identity", "name"),
        PartitionField(2, 1001, "bucket[4]", "b"),
        PartitionField(4, 1002, "day", "d"),
    )
    left = SCHEMA.select("id")
    assert [str(f.field_type) for f in spec.partition_type(left).fields] == ["unknown", "int", "date"]
    assert spec.partition_type(left, [left, SCHEMA]) == spec.partition_type(SCHEMA)
    assert spec.partition_type(left).fields[0].field_type == UnknownType()


def test_a_source_that_was_promoted_and_dropped_has_its_last_type() -> None:
    spec = PartitionSpec(PartitionField(1, 1000, "identity", "n"))
    narrow = Schema(NestedField(1, "n", "int"), NestedField(2, "m", "int"), schema_id=0)
    wide = Schema(NestedField(1, "n", "long"), NestedField(2, "m", "int"), schema_id=1)
    current = Schema(NestedField(2, "m", "int"), schema_id=2)
    for older in ([narrow, wide, current], [wide, narrow]):
        assert str(spec.partition_type(current, older).fields[0].field_type) == "long"


@pytest.mark.spec("PART-26")
def test_folders_escape_names_and_values() -> None:
    spec = PartitionSpec(PartitionField(2, 1000, "identity", "na/me"), PartitionField(4, 1001, "day", "d"))
    path = spec.partition_path(SCHEMA, ("a/b=c d/ü?..", -1))
    assert path == "na%2Fme=a%2Fb%3Dc+d%2F%C3%BC%3F../d=1969-12-31"
    assert spec.partition_path(SCHEMA, (None, None)) == "na%2Fme=null/d=null"


@pytest.mark.spec("PART-26")
@given(st.text(max_size=20))
def test_any_value_stays_within_its_folder(value: str) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, "identity", "n"))
    path = spec.partition_path(SCHEMA, (value,))
    name, _, escaped = path.partition("=")
    assert name == "n"
    assert not set(escaped) & set("/=\\?#%\n ") - {"%"}
    assert unquote_plus(escaped) == value


@pytest.mark.spec("PART-24")
@given(st.lists(st.floats(), min_size=2, max_size=2))
def test_float_partitions_are_equal_when_their_bits_are_with_one_nan(pair: list[float]) -> None:
    first, second = pair
    same_bits = struct.pack("<d", first) == struct.pack("<d", second)
    expected = same_bits or (math.isnan(first) and math.isnan(second))
    assert (normalised_key((first, "x")) == normalised_key((second, "x"))) is expected


@pytest.mark.spec("PART-24")
def test_zeros_differ_and_every_nan_is_one_partition() -> None:
    assert normalised_key((0.0,)) != normalised_key((-0.0,))
    odd_nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0].item()
    assert normalised_key((odd_nan,)) == normalised_key((math.nan,))
    assert normalised_key((None, 1, "a", b"b", Decimal("1.0"))) == (None, 1, "a", b"b", Decimal("1.0"))
    assert len({normalised_key((value,)) for value in (0.0, -0.0, math.nan, -math.nan, None, 1.5)}) == 5


def test_the_spec_of_a_new_table_is_numbered_afresh() -> None:
    old = PartitionSpec(PartitionField(7, 1010, "identity", "a"), PartitionField(1, 1003, "bucket[4]", "b"), spec_id=9)
    fresh = spec_for_new_table(old, {7: 3, 1: 1})
    assert fresh == PartitionSpec(PartitionField(3, 1000, "identity", "a"), PartitionField(1, 1001, "bucket[4]", "b"))
    with pytest.raises(InvalidSchema, match="column 7, which is missing"):
        spec_for_new_table(old, {1: 1})
    assert isinstance(fresh.fields[0].transform, IdentityTransform)
