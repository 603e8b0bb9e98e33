"""Spark's filters as expressions: judged, row by row, by an evaluator of Spark's semantics in plain Python."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import struct
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from icefield import Schema
from icefield.expressions import bind, evaluate
from icefield.schema_arrow import schema_to_arrow
from icefield.types import NestedField, StructType, parse_type
from icefield.values import to_arrow_array, to_internal
from icefield_spark.filters import to_expression
from pyspark.sql import datasource as spark

UTC = dt.UTC
NAN = math.nan

POOLS: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int": [-(2**31), -1, 0, 1, 2, 2**31 - 1],
    "long": [-(2**63), -1, 0, 1, 2, 2**63 - 1],
    "float": [NAN, math.inf, -math.inf, -0.0, 0.0, 1.5, struct.unpack("<f", struct.pack("<f", 0.1))[0]],
    "double": [NAN, math.inf, -math.inf, -0.0, 0.0, 1.5, 0.1],
    "decimal(9,2)": [Decimal("-0.05"), Decimal("0.00"), Decimal("0.01"), Decimal("9999999.99")],
    "date": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31)],
    "timestamp": [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1), dt.datetime(2024, 3, 10, 2)],
    "timestamptz": [dt.datetime(1970, 1, 1, tzinfo=UTC), dt.datetime(2024, 3, 10, 10, tzinfo=UTC)],
    "string": ["", "a", "ab", "abc", "é", "\uffff", "\U0001f600"],
    "binary": [b"", b"a", b"ab", b"\x7f", b"\x80\x00"],
    "fixed[2]": [b"\x00\x00", b"ab", b"\x80\x01"],
    "uuid": [str(uuid.UUID(int=1)), str(uuid.UUID(int=2**127)), "0a1b2c3d-0000-0000-0000-00000000abcd"],
}
"""Values as Spark shows them: few, so that they meet, and the ends of each range."""

PATHS: dict[tuple[str, ...], str] = {
    **{(f"c_{kind.split('(')[0].split('[')[0]}",): kind for kind in POOLS},
    ("with.dot",): "int",
    ("s", "x"): "int",
    ("s", "d"): "double",
    ("s", "t"): "string",
}


def _schema() -> Schema:
    top = [path for path in PATHS if len(path) == 1]
    fields = [NestedField(i, path[0], parse_type(PATHS[path])) for i, path in enumerate(top, 1)]
    inner = [path for path in PATHS if len(path) == 2]
    children = [NestedField(i, path[1], parse_type(PATHS[path])) for i, path in enumerate(inner, 101)]
    return Schema(*fields, NestedField(100, "s", StructType(*children)))


SCHEMA = _schema()


def filters_of(path: tuple[str, ...], pool: list[Any]) -> Iterator[spark.Filter]:
    """Every filter on a column whose literals are of the pool, and each negated."""
    for found in _leaves(path, pool):
        yield found
        yield spark.Not(found)


def _leaves(path: tuple[str, ...], pool: list[Any]) -> Iterator[spark.Filter]:
    yield from (spark.IsNull(path), spark.IsNotNull(path), spark.EqualNullSafe(path, None))
    for value in pool:
        for kind in (*_ORDERS, spark.EqualTo, spark.EqualNullSafe):
            yield kind(path, value)
    for values in itertools.product([None, *pool], repeat=2):
        yield spark.In(path, values)
    if isinstance(pool[0], str):
        for prefix in ("", "a", "ab", "0", "é"):
            for kind in (spark.StringStartsWith, spark.StringEndsWith, spark.StringContains):
                yield kind(path, prefix)


def rows_of(path: tuple[str, ...]) -> list[dict[tuple[str, ...], Any]]:
    """A row for each value of the column and for each way in which it can be null."""
    bare: dict[tuple[str, ...], Any] = {**dict.fromkeys(PATHS), ("s",): True}
    return [{**bare, path: value} for value in POOLS[PATHS[path]]] + [bare, {**bare, ("s",): None}]


_ORDERS = {
    spark.LessThan: lambda order: order < 0,
    spark.LessThanOrEqual: lambda order: order <= 0,
    spark.GreaterThan: lambda order: order > 0,
    spark.GreaterThanOrEqual: lambda order: order >= 0,
}


def _order(left: Any, right: Any) -> int:
    """How Spark orders two values: NaN equals itself and is greater than any number."""
    nans = [isinstance(value, float) and math.isnan(value) for value in (left, right)]
    if any(nans):
        return nans[0] - nans[1]
    return (left > right) - (left < right)


def spark_says(found: spark.Filter, row: dict[tuple[str, ...], Any]) -> bool | None:
    """True, False or None (unknown), as Spark evaluates a filter on a row."""
    if isinstance(found, spark.Not):
        inner = spark_says(found.child, row)
        return None if inner is None else not inner
    value = row[found.attribute]
    if isinstance(found, spark.IsNull | spark.IsNotNull):
        return (value is None) is isinstance(found, spark.IsNull)
    if isinstance(found, spark.EqualNullSafe):
        if value is None or found.value is None:
            return value is None and found.value is None
        return _order(value, found.value) == 0
    if value is None:
        return None
    if isinstance(found, spark.In):
        if any(each is not None and _order(value, each) == 0 for each in found.value):
            return True
        return None if None in found.value else False
    if isinstance(found, spark.EqualTo):
        return _order(value, found.value) == 0
    if isinstance(found, spark.StringStartsWith):
        return value.startswith(found.value)
    if isinstance(found, spark.StringEndsWith):
        return value.endswith(found.value)
    if isinstance(found, spark.StringContains):
        return found.value in value
    return _ORDERS[type(found)](_order(value, found.value))


def batch_of(found: list[dict[tuple[str, ...], Any]]) -> pa.RecordBatch:
    """The rows in Arrow, under ``SCHEMA``."""
    columns = []
    for field in SCHEMA.fields:
        if isinstance(field.field_type, StructType):
            children = field.field_type.fields
            values = [
                None
                if row[("s",)] is None
                else tuple(_internal(child.field_type, row[("s", child.name)]) for child in children)
                for row in found
            ]
        else:
            values = [_internal(field.field_type, row[(field.name,)]) for row in found]
        columns.append(to_arrow_array(field.field_type, values))
    arrow = schema_to_arrow(SCHEMA)
    arrays = [column.cast(field.type) for column, field in zip(columns, arrow, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)


def _internal(kind: Any, value: Any) -> Any:
    return None if value is None else to_internal(kind, value)


@pytest.mark.parametrize("path", PATHS, ids=".".join)
def test_what_is_taken_loses_no_row_and_adds_none_when_it_decides_alone(
    path: tuple[str, ...],
) -> None:
    found = rows_of(path)
    batch = batch_of(found)
    taken = 0
    for pushed in filters_of(path, POOLS[PATHS[path]]):
        made = to_expression(pushed, SCHEMA)
        if made is None:
            continue
        taken += 1
        expression, alone = made
        mask = evaluate(bind(SCHEMA, expression), batch).to_pylist()
        for row, matched in zip(found, mask, strict=True):
            wanted = spark_says(pushed, row) is True
            assert matched or not wanted, f"{pushed} matches {row[path]}, {expression} does not"
            assert not alone or matched is wanted, f"{expression} decides alone, and not as {pushed} on {row[path]}"
    assert taken > 20


def test_whether_a_struct_is_null_is_told_as_spark_tells_it() -> None:
    found = rows_of(("s", "x"))
    for pushed in (spark.IsNull(("s",)), spark.IsNotNull(("s",)), spark.EqualNullSafe(("s",), None)):
        for each in (pushed, spark.Not(pushed)):
            made = to_expression(each, SCHEMA)
            assert made is not None
            mask = evaluate(bind(SCHEMA, made[0]), batch_of(found)).to_pylist()
            assert mask == [spark_says(each, row) is True for row in found]


TAKEN_ALONE = [
    spark.EqualTo(("c_int",), 1),
    spark.EqualNullSafe(("c_int",), 1),
    spark.EqualNullSafe(("c_int",), None),
    spark.EqualNullSafe(("c_double",), None),
    spark.LessThanOrEqual(("c_date",), dt.date(2020, 1, 1)),
    spark.GreaterThan(("c_timestamp",), dt.datetime(2020, 1, 1)),
    spark.GreaterThan(("c_timestamptz",), dt.datetime(2020, 1, 1, tzinfo=UTC)),
    spark.LessThan(("c_decimal",), Decimal("1.50")),
    spark.In(("c_string",), ("a", "b")),
    spark.EqualTo(("c_binary",), b"ab"),
    spark.EqualTo(("c_fixed",), b"ab"),
    spark.EqualTo(("c_uuid",), POOLS["uuid"][2]),
    spark.StringStartsWith(("c_string",), "a"),
    spark.EqualTo(("s", "x"), 1),
    spark.EqualTo(("with.dot",), 1),
    spark.IsNull(("s",)),
    spark.IsNotNull(("s", "t")),
]


@pytest.mark.parametrize("pushed", TAKEN_ALONE, ids=str)
def test_a_filter_that_means_the_same_is_taken_off_sparks_hands(pushed: spark.Filter) -> None:
    made = to_expression(pushed, SCHEMA)
    assert made is not None
    assert made[1]
    negated = to_expression(spark.Not(pushed), SCHEMA)
    assert negated is not None
    assert negated[1]


@pytest.mark.parametrize(
    "pushed",
    [
        spark.EqualTo(("c_double",), 1.5),
        spark.EqualTo(("c_double",), NAN),
        spark.EqualNullSafe(("c_float",), 1.5),
        spark.GreaterThan(("c_double",), 1.5),
        spark.LessThan(("c_float",), 1.5),
        spark.In(("c_double",), (1.5, NAN)),
        spark.In(("c_int",), (1, None)),
        spark.LessThan(("s", "d"), 0.5),
    ],
    ids=str,
)
def test_a_filter_that_is_taken_in_part_is_given_back_and_never_negated(pushed: spark.Filter) -> None:
    made = to_expression(pushed, SCHEMA)
    assert made is not None
    assert not made[1]
    assert to_expression(spark.Not(pushed), SCHEMA) is None


@pytest.mark.parametrize(
    "pushed",
    [
        spark.StringEndsWith(("c_string",), "a"),
        spark.StringContains(("c_string",), "a"),
        spark.EqualTo(("c_uuid",), "not a uuid"),
        spark.EqualTo(("c_uuid",), POOLS["uuid"][2].upper()),  # no text of a uuid in Spark's spelling
        spark.LessThan(("c_uuid",), POOLS["uuid"][2]),
        spark.EqualTo(("c_fixed",), b"abc"),
        spark.EqualTo(("c_int",), "text"),
        spark.EqualTo(("c_int",), None),
        spark.In(("c_int",), (None,)),
        spark.LessThan(("c_double",), NAN),
        spark.EqualTo(("s",), None),
        spark.EqualTo(("nosuch",), 1),
        spark.EqualTo(("with", "dot"), 1),
        spark.IsNull(("_file",)),
        spark.Not(spark.StringContains(("c_string",), "a")),
    ],
    ids=str,
)
def test_a_filter_that_cannot_be_told_is_left_to_spark(pushed: spark.Filter) -> None:
    assert to_expression(pushed, SCHEMA) is None


@pytest.mark.parametrize("kind", ["time", "timestamp_ns", "timestamptz_ns", "geometry", "geography", "variant"])
def test_a_column_that_spark_spells_in_another_type_is_only_tested_for_null(kind: str) -> None:
    schema = Schema(NestedField(1, "c", parse_type(kind)))
    assert to_expression(spark.EqualTo(("c",), 1), schema) is None
    assert to_expression(spark.IsNotNull(("c",)), schema) is not None
