"""The forms of partition specs and sort orders."""

from __future__ import annotations

import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument, InvalidSchema
from icefield.partitioning import (
    UNPARTITIONED,
    UNSORTED,
    NullOrder,
    PartitionField,
    PartitionSpec,
    SortDirection,
    SortField,
    SortOrder,
)
from icefield.partitioning.parse import partition_spec_of, sort_order_of, transform_of
from icefield.partitioning.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from icefield.schema import schema_from_arrow

SCHEMA = schema_from_arrow(
    pa.schema(
        [
            ("id", pa.int64()),
            ("ts", pa.timestamp("us")),
            ("region", pa.string()),
            ("day(x)", pa.string()),
            ("s", pa.struct([("x", pa.int32())])),
        ]
    )
)


def spec(given) -> list[tuple[int, str, str]]:
    return [(field.source_id, str(field.transform), field.name) for field in partition_spec_of(given, SCHEMA).fields]


def order(given) -> list[tuple[int, str, str, str]]:
    fields = sort_order_of(given, SCHEMA).fields
    return [(f.source_id, str(f.transform), f.direction.value, f.null_order.value) for f in fields]


@pytest.mark.spec("PART-01")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("region", (3, "identity", "region")),
        ("day(ts)", (2, "day", "ts_day")),
        ("days(ts)", (2, "day", "ts_day")),
        (" hours ( ts ) ", (2, "hour", "ts_hour")),
        ("bucket[16](id)", (1, "bucket[16]", "id_bucket_16")),
        ("bucket(16, id)", (1, "bucket[16]", "id_bucket_16")),
        ("truncate(region, 3)", (3, "truncate[3]", "region_trunc_3")),
        ("TRUNCATE[3](region)", (3, "truncate[3]", "region_trunc_3")),
        ("day(x)", (4, "identity", "day(x)")),
        ("identity(`day(x)`)", (4, "identity", "day(x)")),
        ("bucket[4](s.x)", (6, "bucket[4]", "s.x_bucket_4")),
        (("ts", "day"), (2, "day", "ts_day")),
        (("ts", "day", "d"), (2, "day", "d")),
        (["ts", "month"], (2, "month", "ts_month")),
        (("id", BucketTransform(4)), (1, "bucket[4]", "id_bucket_4")),
    ],
)
def test_a_partition_field_is_given_as_strings_or_tuple(given, expected):
    assert spec([given]) == [expected]


def test_a_spec_is_a_list_or_one_string_or_an_object_or_nothing():
    assert spec([("ts", "day"), "bucket[16](id)", "region"]) == [
        (2, "day", "ts_day"),
        (1, "bucket[16]", "id_bucket_16"),
        (3, "identity", "region"),
    ]
    assert spec("day(ts)") == [(2, "day", "ts_day")]
    assert [field.field_id for field in partition_spec_of(["region", "id"], SCHEMA).fields] == [1000, 1001]
    assert partition_spec_of(None, SCHEMA) is UNPARTITIONED
    assert partition_spec_of([], SCHEMA) == UNPARTITIONED
    given = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"))
    assert partition_spec_of(given, SCHEMA) is given


@pytest.mark.parametrize(
    "wrong",
    [
        "nowhere",
        "zorder(id)",
        "day(id)",
        "bucket(id)",
        "bucket[0](id)",
        ("ts",),
        ("ts", "day", "d", "x"),
        7,
        ("id", 7),
        "s",
    ],
)
def test_a_partition_field_that_cannot_be_is_refused(wrong):
    with pytest.raises((InvalidArgument, InvalidSchema)):
        spec([wrong])


def test_a_spec_that_is_no_list_is_refused():
    with pytest.raises(InvalidArgument, match="partition_spec"):
        partition_spec_of(7, SCHEMA)


@pytest.mark.spec("SORT-01")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("id", (1, "identity", "asc", "nulls-first")),
        ("id desc", (1, "identity", "desc", "nulls-last")),
        ("id ASC NULLS LAST", (1, "identity", "asc", "nulls-last")),
        ("day(ts) desc nulls first", (2, "day", "desc", "nulls-first")),
        ("region nulls last", (3, "identity", "asc", "nulls-last")),
        ("day(x)", (4, "identity", "asc", "nulls-first")),
        (("id", "desc"), (1, "identity", "desc", "nulls-last")),
        (("bucket[4](id)", "asc", "last"), (1, "bucket[4]", "asc", "nulls-last")),
        (("id", "asc", "nulls-last"), (1, "identity", "asc", "nulls-last")),
        (("id", SortDirection.DESC, NullOrder.NULLS_FIRST), (1, "identity", "desc", "nulls-first")),
        (SortField(1, TruncateTransform(2)), (1, "truncate[2]", "asc", "nulls-first")),
    ],
)
def test_a_sort_field_is_given_as_strings_tuple_or_object(given, expected):
    assert order([given]) == [expected]


def test_an_order_is_a_list_or_one_string_or_an_object_or_nothing():
    assert len(order(["id", "ts desc"])) == 2
    assert order("id") == [(1, "identity", "asc", "nulls-first")]
    assert sort_order_of(None, SCHEMA) is UNSORTED
    assert sort_order_of([], SCHEMA) == UNSORTED
    given = SortOrder(SortField(1))
    assert sort_order_of(given, SCHEMA) is given


@pytest.mark.parametrize(
    "wrong", ["nowhere", ("id", "sideways"), ("id", "asc", "middle"), 7, ("id",), "zorder(id) asc"]
)
def test_a_sort_field_that_cannot_be_is_refused(wrong):
    with pytest.raises((InvalidArgument, InvalidSchema)):
        order([wrong])


def test_a_transform_is_given_as_the_format_or_as_sql_writes_it():
    assert transform_of("days") == transform_of("Day") == transform_of(DayTransform()) == DayTransform()
    with pytest.raises(InvalidArgument, match="known are"):
        transform_of("zorder")
