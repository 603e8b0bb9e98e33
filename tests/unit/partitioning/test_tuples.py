"""Partition tuples: their groups, the names of their fields, and values that manifests can hold."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.partitioning.spec import check_partition_values, takes_name_of_column
from icefield.partitioning.transforms import parse_transform
from icefield.partitioning.tuples import tuple_groups
from icefield.schema import Schema
from icefield.types import NestedField, parse_type


def test_equal_tuples_have_one_number_and_their_first_row() -> None:
    tuples = pa.array(
        [(2, "b"), (1, None), (2, "b"), (1, "b"), (1, None)], pa.struct([("x", pa.int64()), ("y", pa.string())])
    )
    numbers, rows = tuple_groups(tuples)
    assert numbers[0] == numbers[2]
    assert numbers[1] == numbers[4]
    assert sorted(set(numbers.tolist())) == [0, 1, 2]
    assert rows[numbers].tolist() == [0, 1, 0, 3, 1]


def test_a_field_takes_the_name_of_a_column_only_if_the_column_is_not_its_source() -> None:
    schema = Schema(NestedField(1, "a", "int"), NestedField(2, "b", "int"))
    for name, taken in [("a", False), ("b", True), ("c", False)]:
        assert takes_name_of_column(PartitionField(1, 1000, "identity", name), schema) == taken


def test_a_decimal_that_truncation_rounds_beyond_its_type_is_refused_in_any_field() -> None:
    spec = PartitionSpec(PartitionField(1, 1000, "identity", "a"), PartitionField(2, 1001, "truncate[50]", "b"))
    kind = pa.struct([("a", pa.string()), ("b", pa.decimal128(4, 2))])
    check_partition_values(spec, pa.array([{"a": "x", "b": Decimal("-99.50")}, {"a": "x", "b": None}], kind))
    beyond = pa.array([{"a": "x", "b": Decimal("1.00")}], pa.struct([("a", pa.string()), ("b", pa.decimal128(2, 1))]))
    check_partition_values(spec, beyond)
    numbers = pa.array([-1_000], pa.decimal128(4, 0)).cast(pa.decimal128(4, 0)).view(pa.decimal128(4, 0))
    wide = pa.Array.from_buffers(pa.decimal128(3, 0), 1, numbers.buffers())
    tuples = pa.StructArray.from_arrays([pa.array(["x"]), wide], names=["a", "b"])
    with pytest.raises(InvalidArgument, match="partition field 'b' cannot hold it"):
        check_partition_values(spec, tuples)


def test_numbers_of_another_type_are_cast_before_a_transform() -> None:
    bucket, kind = parse_transform("bucket[4]"), parse_type("decimal(20, 2)")
    decimals = pa.array([Decimal("1.00"), Decimal("7.00"), None], pa.decimal128(20, 2))
    assert bucket.apply(decimals.cast(pa.decimal128(21, 3)), kind).equals(bucket.apply(decimals, kind))
    assert bucket.apply(pa.array([1, 7, None], pa.int32()), kind).equals(bucket.apply(decimals, kind))
