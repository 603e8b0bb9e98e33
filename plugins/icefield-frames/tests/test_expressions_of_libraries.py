"""Expressions of pyarrow and Polars are filters, with the rows that the library itself selects."""

from __future__ import annotations

import datetime as dt
import warnings
from contextlib import suppress
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from icefield import Table
from icefield.errors import InvalidExpression
from icefield_frames.arrow_filters import from_arrow
from icefield_frames.polars_filters import from_polars
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
BY_ARROW: list[pc.Expression] = [
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
    pc.is_in(F("name"), pa.array(["a", None]), skip_nulls=True),
    ~pc.is_in(F("name"), pa.array(["a", None]), skip_nulls=True),
    F("name").isin(pa.array([], pa.string())),
    ~F("name").isin(pa.array([], pa.string())),
    F("x") > 1.0,
    ~(F("x") > 1.0),
    F("x").is_nan(),
    ~F("x").is_nan(),
    F("x").is_null(),
    F("x").is_null(nan_is_null=True),
    ~F("x").is_null(nan_is_null=True),
    F("id").is_null(nan_is_null=True),
    F("x").is_valid(),
    ~F("x").is_valid(),
    F("flag"),
    ~F("flag"),
    pc.scalar(True),
    pc.scalar(False),
    ~pc.scalar(False),
    F("at") >= dt.datetime(2024, 1, 2),
    F("at") == pa.scalar(dt.datetime(2024, 1, 2), pa.timestamp("us")),
    F("place", "city") == "Ulm",
    F("place", "city").is_null(),
    pc.starts_with(F("name"), "it"),
]
C = pl.col
BY_POLARS: list[pl.Expr] = [
    C("id") == 1,
    C("id") < 2,
    (C("id") == 1) | ~(C("name") == "it's"),
    C("id").is_between(1, 2),
    C("name").is_in(["a", "it's"]),
    ~C("name").is_in(["a", "it's"]),
    C("x") > 1.0,
    C("x").is_nan(),
    C("x").is_not_null(),
    C("flag"),
    ~C("flag"),
    C("at") >= dt.datetime(2024, 1, 2),
    C("place").struct.field("city") == "Ulm",
    C("name").str.starts_with("it"),
]


@pytest.fixture(scope="module")
def table() -> Table:
    return memory_catalog().create_table_as("db.t", ROWS)


def names(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows["name"].to_pylist()))


@pytest.mark.parametrize("expression", BY_ARROW, ids=str)
def test_a_scan_finds_the_rows_that_arrow_finds(table: Table, expression: pc.Expression) -> None:
    assert names(table.scan(expression).to_arrow()) == names(ROWS.filter(expression))


@pytest.mark.parametrize("expression", BY_POLARS, ids=str)
def test_a_scan_finds_the_rows_that_polars_finds(table: Table, expression: pl.Expr) -> None:
    expected = pl.DataFrame(ROWS).filter(expression)
    assert names(table.scan().filter(expression).to_arrow()) == sorted(map(str, expected["name"].to_list()))


def test_an_expression_is_written_in_the_language_of_filters(table: Table) -> None:
    assert str(table.scan((F("id") == 1) & F("name").is_valid()).row_filter) == "id = 1 and name is not null"


@pytest.mark.parametrize("library", [F, C])
def test_an_expression_also_restricts_changes(library: Any) -> None:
    table = memory_catalog().create_table_as("db.t", ROWS)
    assert table.delete(library("id") > 1).rows_deleted == 2
    assert table.update(library("id") == 1, {"name": "z"}).rows_updated == 1
    table.overwrite(ROWS.slice(0, 1), library("id") == 1)
    assert names(table.scan().to_arrow()) == ["None", "a"]


REFUSED: list[Any] = [
    F("id") + 1 == 2,
    F("id") == F("x"),
    F(0) == 1,
    F("id") == pa.scalar(None, pa.int64()),
    C("id") + 1 == 2,
    C("id") == C("x"),
    C("id").map_elements(bool, return_dtype=pl.Boolean),
]


@pytest.mark.parametrize("expression", REFUSED, ids=str)
def test_other_computations_are_refused(table: Table, expression: Any) -> None:
    with pytest.raises(InvalidExpression, match=r"is no filter of a table: .*; compare columns with literals"):
        table.scan(expression)


@pytest.mark.parametrize("expression", [F("none") == 1, C("none") == 1, C("ID") == 1], ids=str)
def test_a_column_that_the_table_lacks_is_named_with_those_that_there_are(table: Table, expression: Any) -> None:
    with pytest.raises(InvalidExpression, match=r"'(none|ID)'.*id"):
        table.scan(expression)


def test_a_series_is_no_filter(table: Table) -> None:
    with pytest.raises(InvalidExpression, match=r"a filter is an expression of Polars, .* not a Series"):
        table.scan(pl.Series([True]))  # type: ignore[arg-type]


def test_a_number_beyond_single_precision_gives_no_warning() -> None:
    table = memory_catalog().create_table_as("db.t", pa.table({"f": pa.array([1.0], pa.float32())}))
    with warnings.catch_warnings(), suppress(InvalidExpression):
        warnings.simplefilter("error")
        assert table.scan(C("f") < 1e300).count() == 1


def test_a_deep_expression_is_refused(table: Table) -> None:
    by_arrow, by_polars = F("flag"), C("flag")
    for _ in range(400):
        by_arrow, by_polars = ~by_arrow, ~by_polars
    for expression, translate in ((by_arrow, from_arrow), (by_polars, from_polars)):
        with pytest.raises(InvalidExpression, match="is no filter of a table"):
            translate(expression, table.schema())


def test_an_expression_of_another_library_is_refused(table: Table) -> None:
    with pytest.raises(InvalidExpression, match=r"a filter is an expression or its string, not datetime\.date"):
        table.scan(dt.date(2024, 1, 1))  # type: ignore[arg-type]
