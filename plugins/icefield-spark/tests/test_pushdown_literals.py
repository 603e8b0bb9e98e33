"""What is no plain literal for Spark becomes no filter."""

from __future__ import annotations

from typing import Any

import pytest
from icefield import Schema
from icefield.types import DateType, DecimalType, LongType, NestedField, TimestampType
from sqlglot import exp, parse_one

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "d", DateType(), required=False),
    NestedField(3, "ts", TimestampType(), required=False),
    NestedField(4, "dec", DecimalType(38, 28), required=False),
)


def filter_of(condition: str) -> Any:
    from icefield_spark.sql.pushdown import Pushdown

    tree: Any = parse_one(f"SELECT 1 WHERE {condition}", read="spark").find(exp.Where)
    return Pushdown(SCHEMA, lambda column: column.name, "UTC").filter(tree.this)


@pytest.mark.parametrize(
    "condition",
    [
        "dec = CAST(1.7 AS BIGINT)",
        "id = CAST(1.7 AS BIGINT)",
        "dec = CAST(-0.5 AS TINYINT)",
        "dec = 1.00000000000000000000000000001",
        "dec = CAST('1_0' AS DECIMAL(2, 0))",
        "d = '2024-W01-1'",
        "d = DATE '2024-W01-1'",
        "ts = '2024-W01-1T00:00:00'",
        "ts = '2024-01-01x00:00:00'",
        "ts = '2024-01-01 00:00:00,000000'",
    ],
)
def test_a_constant_that_python_reads_otherwise_than_spark_is_left_to_spark(condition: str) -> None:
    assert filter_of(condition) is None


@pytest.mark.parametrize("condition", ["id = 1L", "dec = 1.70", "d = '2024-01-01'", "ts = '2024-01-01 00:00:00'"])
def test_a_plain_literal_is_a_filter(condition: str) -> None:
    assert filter_of(condition) is not None
