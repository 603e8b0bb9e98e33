"""Sort orders: their JSON, how one is built, and rows put in order."""

from __future__ import annotations

import functools
import math
import pickle
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidArgument, InvalidMetadata, InvalidSchema, UnsupportedFeature
from icefield.partitioning import UNSORTED, NullOrder, SortDirection, SortField, SortOrder
from icefield.partitioning.sort_evolution import SortOrderUpdate
from icefield.partitioning.sort_order import (
    order_for_new_table,
    sort_order_from_json,
    sort_order_to_json,
    sort_table,
    validate_order,
)
from icefield.partitioning.transforms import BucketTransform, IdentityTransform, UnknownTransform
from icefield.schema import Schema, schema_to_arrow
from icefield.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)
from icefield.types.values import from_arrow_array, to_arrow_array
from pyiceberg.table.sorting import SortOrder as PeerOrder
from vectors import VECTORS

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "name", StringType()),
    NestedField(3, "score", DoubleType()),
    NestedField(4, "at", StructType(NestedField(5, "city", StringType()))),
    NestedField(6, "tags", ListType(7, StringType())),
    NestedField(8, "none", UnknownType()),
)


@pytest.mark.spec("SORT-01")
def test_the_json_of_the_vectors_comes_back_as_it_was() -> None:
    vector = VECTORS["sort_order_json"]
    order = sort_order_from_json(vector)
    assert order == SortOrder(
        SortField(2, IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST),
        SortField(3, BucketTransform(4), SortDirection.DESC, NullOrder.NULLS_LAST),
        order_id=1,
    )
    assert sort_order_to_json(order) == vector
    assert pickle.loads(pickle.dumps(order)) == order
    assert hash(pickle.loads(pickle.dumps(order))) == hash(order)
    assert str(order) == "[identity(2) asc nulls-first, bucket[4](3) desc nulls-last]"


@pytest.mark.spec("SORT-01")
def test_pyiceberg_reads_the_json_and_writes_the_same() -> None:
    vector = VECTORS["sort_order_json"]
    peer = PeerOrder.model_validate(sort_order_to_json(sort_order_from_json(vector)))
    assert sort_order_from_json(peer.model_dump(by_alias=True, mode="json")) == sort_order_from_json(vector)


@pytest.mark.spec("SORT-02")
def test_id_0_is_the_order_without_fields() -> None:
    assert sort_order_to_json(UNSORTED) == VECTORS["unsorted_order_json"]
    assert sort_order_from_json(VECTORS["unsorted_order_json"]) == UNSORTED == SortOrder()
    assert UNSORTED.is_unsorted
    with pytest.raises(InvalidArgument, match="id 0"):
        SortOrder(SortField(1), order_id=0)
    with pytest.raises(InvalidMetadata, match="id 0"):
        sort_order_from_json({**VECTORS["sort_order_json"], "order-id": 0})


@pytest.mark.spec("SORT-01")
def test_nulls_come_first_ascending_and_last_descending_unless_stated_otherwise() -> None:
    assert SortField(1).null_order is NullOrder.NULLS_FIRST
    assert SortField(1, direction=SortDirection.DESC).null_order is NullOrder.NULLS_LAST
    assert SortField(1, "day", "DESC", "Nulls-First") == SortField(1, "day", SortDirection.DESC, NullOrder.NULLS_FIRST)
    for arguments in (("identity", "up"), ("identity", "asc", "nulls"), ("bucket[0]",), ("identity", 1)):
        with pytest.raises(InvalidArgument):
            SortField(1, *arguments)


@pytest.mark.spec("SORT-09")
def test_unknown_transforms_and_those_of_several_columns_are_read_and_written_back() -> None:
    stored = {
        "order-id": 3,
        "fields": [
            {"transform": "zorder", "source-ids": [1, 2], "direction": "asc", "null-order": "nulls-first"},
            {"transform": "days2", "source-id": 1, "direction": "desc", "null-order": "nulls-last"},
            {"transform": "bucket[4]", "source-ids": [1, 2], "direction": "asc", "null-order": "nulls-last"},
        ],
    }
    order = sort_order_from_json(stored)
    assert sort_order_to_json(order) == stored
    assert [field.transform for field in order.fields] == [
        UnknownTransform("zorder"),
        UnknownTransform("days2"),
        UnknownTransform("bucket[4]"),
    ]
    assert not any(field.is_known for field in order.fields)
    with pytest.raises(UnsupportedFeature, match="cannot compute"):
        validate_order(order, SCHEMA)
    with pytest.raises(UnsupportedFeature, match="cannot compute"):
        sort_table(order, SCHEMA, pa.table({"id": [2, 1]}))


KEY = {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}


@pytest.mark.parametrize(
    "broken",
    [
        None,
        {},
        {"order-id": 1},
        {"order-id": "1", "fields": []},
        {"order-id": 1, "fields": {}},
        {"order-id": 1, "fields": ["id"]},
        *({"order-id": 1, "fields": [{k: v for k, v in KEY.items() if k != missing}]} for missing in KEY),
        {"order-id": 1, "fields": [{**KEY, "direction": "up"}]},
        {"order-id": 1, "fields": [{**KEY, "null-order": "middle"}]},
        {"order-id": 1, "fields": [{**KEY, "transform": "bucket[0]"}]},
        {"order-id": 1, "fields": [{**KEY, "source-id": -1}]},
        {"order-id": 1, "fields": [{**KEY, "direction": None}]},
    ],
    ids=str,
)
def test_broken_json_is_one_typed_error(broken: Any) -> None:
    with pytest.raises(InvalidMetadata):
        sort_order_from_json(broken)


@pytest.mark.spec("SORT-03", "SORT-02")
def test_the_first_order_has_id_1_and_an_identical_one_is_used_again() -> None:
    first = SortOrderUpdate((UNSORTED,), SCHEMA).asc("name").desc("id", "bucket[4]").result()
    assert first == SortOrder(SortField(2), SortField(1, "bucket[4]", "desc", "nulls-last"), order_id=1)
    second = SortOrderUpdate((UNSORTED, first), SCHEMA).asc("name", null_order="nulls-last").result()
    assert second.order_id == 2
    again = SortOrderUpdate((UNSORTED, first, second), SCHEMA).asc("name").desc("id", "bucket[4]").result()
    assert again is first
    assert SortOrderUpdate((), SCHEMA).asc("id").result().order_id == 1
    assert SortOrderUpdate((UNSORTED, first), SCHEMA).result() is UNSORTED


@pytest.mark.parametrize(
    ("source", "transform", "match"),
    [
        ("tags", "identity", "primitive"),
        ("tags.element", "identity", "inside a list"),
        ("name", "day", "does not apply"),
    ],
)
def test_an_order_needs_a_source_that_can_be_sorted(source: str, transform: str, match: str) -> None:
    with pytest.raises(InvalidSchema, match=match):
        SortOrderUpdate((UNSORTED,), SCHEMA).asc(source, transform)
    with pytest.raises(InvalidSchema, match="does not have"):
        validate_order(SortOrder(SortField(99)), SCHEMA)
    with pytest.raises(InvalidArgument):
        SortOrderUpdate((UNSORTED,), SCHEMA).desc("nope")


def test_the_order_of_a_new_table_has_new_sources() -> None:
    order = SortOrder(SortField(5), SortField(1, "bucket[2]", "desc", "nulls-last"), order_id=4)
    assert order_for_new_table(order, {5: 3, 1: 1}) == SortOrder(
        SortField(3), SortField(1, "bucket[2]", "desc", "nulls-last"), order_id=1
    )
    assert order_for_new_table(UNSORTED, {}) == UNSORTED
    with pytest.raises(InvalidSchema, match="lacks column 5"):
        order_for_new_table(order, {1: 1})


def total(value: float) -> tuple[Any, ...]:
    """The sort key of a double in IEEE's total order, in which all NaNs of one sign are equal."""
    sign = math.copysign(1, value)
    return (sign * 2, 0.0, 0) if math.isnan(value) else (0, value, sign)


SPECIAL = st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf])
VALUES: dict[IcebergType, tuple[st.SearchStrategy[Any], Any]] = {
    BooleanType(): (st.booleans(), None),
    IntegerType(): (st.integers(-5, 5), None),
    LongType(): (st.integers(-(2**63), 2**63 - 1), None),
    FloatType(): (st.floats(width=32, allow_nan=False) | st.sampled_from([0.0, -0.0, math.nan, -math.nan]), total),
    DoubleType(): (
        st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf]),
        total,
    ),
    DecimalType(9, 2): (st.decimals(-10, 10, places=2), None),
    DateType(): (st.integers(-5, 5), None),
    TimeType(): (st.integers(0, 5), None),
    TimestampType(): (st.integers(-5, 5), None),
    TimestamptzType(): (st.integers(-5, 5), None),
    StringType(): (st.text(max_size=3), lambda text: text.encode()),
    UUIDType(): (st.binary(min_size=16, max_size=16), None),
    BinaryType(): (st.binary(max_size=3), None),
}


def compare(keys: list[tuple[SortField, Any]], first: tuple[Any, ...], second: tuple[Any, ...]) -> int:
    for position, (field, key) in enumerate(keys):
        a, b = first[position], second[position]
        if a is None or b is None:
            if (a is None) != (b is None):
                return -1 if (a is None) == (field.null_order is NullOrder.NULLS_FIRST) else 1
            continue
        a, b = (key(a), key(b)) if key else (a, b)
        if a != b:
            return -1 if (a < b) == (field.direction is SortDirection.ASC) else 1
    return 0


@pytest.mark.spec("SORT-04")
@settings(max_examples=150)
@given(st.data())
def test_rows_are_sorted_by_each_key_in_turn_and_stay_in_place_where_equal(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    rows = data.draw(st.lists(st.tuples(*(st.none() | VALUES[kind][0] for kind in kinds)), max_size=12))
    schema = Schema(
        *(NestedField(i + 1, f"c{i}", kind) for i, kind in enumerate(kinds)), NestedField(99, "row", LongType())
    )
    ways = st.tuples(st.sampled_from(SortDirection), st.sampled_from(NullOrder))
    keys = [(SortField(i + 1, "identity", *data.draw(ways)), VALUES[kind][1]) for i, kind in enumerate(kinds)]
    arrays = [to_arrow_array(kind, [row[i] for row in rows]) for i, kind in enumerate(kinds)]
    table = pa.Table.from_arrays([*arrays, pa.array(range(len(rows)), pa.int64())], schema=schema_to_arrow(schema))
    expected = sorted(range(len(rows)), key=functools.cmp_to_key(lambda a, b: compare(keys, rows[a], rows[b])))
    order = SortOrder(*(field for field, _ in keys))
    assert sort_table(order, schema, table)["row"].to_pylist() == expected
    split = pa.concat_tables([table.slice(0, 4), table.slice(4)])
    assert sort_table(order, schema, split)["row"].to_pylist() == expected
    for batch in table.combine_chunks().to_batches():
        assert sort_table(order, schema, batch)["row"].to_pylist() == expected


@pytest.mark.spec("SORT-04")
@pytest.mark.parametrize(("kind", "code", "bits"), [(DoubleType(), "d", 64), (FloatType(), "f", 32)])
def test_floats_follow_the_total_order_of_the_spec(kind: IcebergType, code: str, bits: int) -> None:
    negative_nan = np.array([-1], np.int64 if bits == 64 else np.int32).view(f"f{bits // 8}")[0]
    ordered = [negative_nan, -math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan]
    packed = struct.pack(f"<{len(ordered)}{code}", *ordered)
    column = pa.Array.from_buffers(to_arrow_array(kind, []).type, len(ordered), [None, pa.py_buffer(packed)])
    schema = Schema(NestedField(1, "x", kind))
    mixed = pa.table({"x": column.take(pa.array([3, 7, 0, 5, 1, 6, 2, 4]))})
    for direction, expected in ((SortDirection.ASC, column), (SortDirection.DESC, column[::-1])):
        result = sort_table(SortOrder(SortField(1, "identity", direction)), schema, mixed)["x"].combine_chunks()
        as_bits = pa.int64() if bits == 64 else pa.int32()
        assert result.view(as_bits).equals(expected.view(as_bits))


@pytest.mark.spec("SORT-01", "TRN-27")
def test_keys_are_transformed_and_may_are_in_structs() -> None:
    table = pa.table(
        {
            "id": [1, 2, 3, 4],
            "name": ["bb", "aa", None, "ab"],
            "at": [{"city": "Oslo"}, None, {"city": "Bergen"}, {"city": None}],
            "none": pa.nulls(4),
        }
    )
    by_city = SortOrder(SortField(5, null_order="nulls-last"), SortField(1, direction="desc"))
    assert sort_table(by_city, SCHEMA, table)["id"].to_pylist() == [3, 1, 4, 2]
    by_letter = SortOrder(SortField(2, "truncate[1]"), SortField(1, direction="desc"))
    assert sort_table(by_letter, SCHEMA, table)["id"].to_pylist() == [3, 4, 2, 1]
    by_bucket = sort_table(SortOrder(SortField(1, "bucket[3]")), SCHEMA, table)["id"]
    buckets = [BucketTransform(3).apply_value(value, LongType()) for value in by_bucket.to_pylist()]
    assert buckets == sorted(buckets)
    assert sort_table(SortOrder(SortField(8)), SCHEMA, table).equals(table)
    assert sort_table(UNSORTED, SCHEMA, table) is table


def test_a_column_that_is_missing_is_named() -> None:
    table = pa.table({"id": [1, 2]})
    with pytest.raises(InvalidArgument, match="no column 'name'"):
        sort_table(SortOrder(SortField(2)), SCHEMA, table)
    with pytest.raises(InvalidArgument, match="lacks column 99"):
        sort_table(SortOrder(SortField(99)), SCHEMA, table)


def test_decimals_and_dates_keep_their_values_through_a_sort() -> None:
    schema = Schema(NestedField(1, "d", DecimalType(38, 4)), NestedField(2, "t", DateType()))
    prices = [Decimal("10.0000"), Decimal("-9.5000"), None]
    table = pa.table([to_arrow_array(DecimalType(38, 4), prices), to_arrow_array(DateType(), [3, 1, 2])], ["d", "t"])
    result = sort_table(SortOrder(SortField(1, direction="desc")), schema, table)
    assert result["d"].to_pylist() == [Decimal("10.0000"), Decimal("-9.5000"), None]
    assert from_arrow_array(DateType(), result["t"]) == [3, 1, 2]
