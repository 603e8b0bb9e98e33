"""Expressions of pyarrow are filters, with the rows that Arrow finds."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from icefield.errors import InvalidExpression
from icefield.expressions import as_expression
from tables import memory_catalog

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, None], pa.int64()),
        "name": ["a", "b", "it's", None],
        "x": pa.array([0.5, float("nan"), None, 2.0], pa.float64()),
        "flag": [True, False, None, True],
        "at": pa.array([dt.datetime(2024, 1, n) for n in (1, 2, 3)] + [None], pa.timestamp("us")),
        "place": pa.array([{"city": "Ulm"}, {"city": None}, None, {"city": "Bonn"}]),
    }
)
F = pc.field
FOUND: list[pc.Expression] = [
    F("id") == 1,
    F("id") != 1,
    F("id") < 2,
    F("id") <= 2,
    F("id") > 2,
    F("id") >= 2,
    pc.scalar(2) > F("id"),
    pc.scalar(2) <= F("id"),
    (F("id") == 1) | (F("name") == "it's"),
    (F("id") == 1) & (F("name") == "a") | ~(F("id") < 3),
    F("name").isin(["a", "it's"]),
    ~F("name").isin(["a", "it's"]),
    F("name").isin(["a", None]),
    ~F("name").isin(["a", None]),
    F("name").isin(pa.array([], pa.string())),
    ~F("name").isin(pa.array([], pa.string())),
    F("x").is_nan(),
    F("x").is_null(),
    F("x").is_null(nan_is_null=True),
    F("x").is_valid(),
    ~F("x").is_valid(),
    F("flag"),
    ~F("flag"),
    pc.scalar(True),
    pc.scalar(False),
    F("at") >= dt.datetime(2024, 1, 2),
    F("at") == pa.scalar(dt.datetime(2024, 1, 2), pa.timestamp("us")),
    F("place", "city") == "Ulm",
    F("place", "city").is_null(),
    pc.starts_with(F("name"), "it"),
]


@pytest.mark.parametrize("expression", FOUND, ids=str)
def test_a_scan_finds_the_rows_that_arrow_finds(expression: pc.Expression) -> None:
    table = memory_catalog().create_table_as("db.t", ROWS)
    key = [[row["name"]] for row in table.scan(expression).to_arrow().to_pylist()]
    assert sorted(key, key=str) == sorted([[name] for name in ROWS.filter(expression)["name"].to_pylist()], key=str)


def test_an_expression_is_written_in_the_language_of_filters() -> None:
    assert str(as_expression((F("id") == 1) & F("name").is_valid())) == "id = 1 and name is not null"
    assert str(as_expression(F("a.b") == 1)) == '"a.b" = 1'


def test_an_expression_also_restricts_changes() -> None:
    table = memory_catalog().create_table_as("db.t", ROWS)
    assert table.delete(F("id") > 1).rows_deleted == 2
    assert table.update(F("id") == 1, {"name": "z"}).rows_updated == 1


REFUSED: list[tuple[Any, str]] = [
    (F("id") + 1 == 2, "'add_checked' of this pyarrow expression is no filter"),
    (F("id") == F("x"), "'equal' of this pyarrow expression is no filter"),
    (F(0) == 1, "no filter of a table"),
    (F("id") == pa.scalar(None, pa.int64()), "null equals nothing"),
]


@pytest.mark.parametrize(("expression", "message"), REFUSED, ids=str)
def test_other_computations_are_refused(expression: pc.Expression, message: str) -> None:
    with pytest.raises(InvalidExpression, match=message):
        as_expression(expression)


def test_a_deep_expression_is_refused() -> None:
    expression = F("flag")
    for _ in range(400):
        expression = ~expression
    with pytest.raises(InvalidExpression, match="nested deeper"):
        as_expression(expression)
