"""Tables of DuckDB: a query over a scan gives the rows of the same query over a table of DuckDB's own."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest
from frame_tables import files_planned, frame_table
from icefield import Table
from tables import Listener

duckdb = pytest.importorskip("duckdb")

LITERALS: dict[str, list[str]] = {
    "id": ["0", "7", "100", "-1"],
    "i": ["-5", "0", "3", "1.5"],
    "f": ["0", "'-0.0'::FLOAT", "1.5", "0.1", "'inf'::FLOAT", "'nan'::FLOAT"],
    "d": ["0", "'-0.0'::DOUBLE", "1.5", "0.1", "'inf'::DOUBLE", "'nan'::DOUBLE"],
    "name": ["''", "'a'", "'ab'", "'ä'", "'it''s'"],
    "day": ["DATE '2024-01-01'", "DATE '2023-12-30'"],
    "ts": ["TIMESTAMP '2024-01-01 12:00:00'", "TIMESTAMP '2024-01-01 00:00:00.000001'"],
    "tz": ["TIMESTAMPTZ '2024-01-01 12:00:00+00'", "TIMESTAMPTZ '2024-01-01 12:00:00+02'"],
    "dec": ["1.5", "0.555", "2"],
    "bin": ["'\\x05'::BLOB"],
    "new": ["-1", "3"],
    "st.q": ["2", "-1"],
    "st.t": ["'t2'"],
}


@pytest.fixture(scope="module")
def made() -> Any:
    table, heard = frame_table(f"memory://{uuid.uuid4().hex}")
    with duckdb.connect() as connection:
        connection.sql("SET TimeZone = 'UTC'")
        whole = table.scan().to_arrow()
        connection.register("arrow", whole)
        connection.sql("CREATE TABLE own AS SELECT * FROM arrow")
        table.scan().to_duckdb("t", connection)
        yield table, heard, connection


def condition(chance: random.Random, depth: int = 2) -> str:
    if depth and chance.random() < 0.6:
        first, second = condition(chance, depth - 1), condition(chance, depth - 1)
        return chance.choice([f"NOT ({first})", f"({first} AND {second})", f"({first} OR {second})"])
    name = chance.choice(sorted(LITERALS))
    first, second = (chance.choice(LITERALS[name]) for _ in range(2))
    other = chance.choice(sorted(LITERALS))
    kinds = [
        f"{name} {chance.choice(['=', '<>', '<', '<=', '>', '>='])} {first}",
        f"{name} IN ({first}, {second})",
        f"{name} NOT IN ({first}, {second})",
        f"{name} BETWEEN {first} AND {second}",
        f"{other} IS NULL",
        f"{other} IS NOT NULL",
        "b",
        "name LIKE 'a%'",
        "name LIKE '%b'",
        "isnan(d)",
        "id % 3 = 0",
        "i = new",
        f"{name} IS DISTINCT FROM {first}",
    ]
    return chance.choice(kinds)


@pytest.mark.parametrize("seed", range(100))
def test_a_query_gives_the_rows_of_the_whole_table(made: Any, seed: int) -> None:
    _, _, connection = made
    chance = random.Random(seed)
    where = condition(chance)
    columns = chance.choice(["*", "id, d", "count(*), sum(i)", "name, count(*), max(d)"])
    tail = "GROUP BY name ORDER BY name" if columns.startswith("name") else "ORDER BY id" if "id" in columns else ""
    tail = "ORDER BY id" if columns == "*" else tail
    found, expected = (
        connection.sql(f"SELECT {columns} FROM {name} WHERE {where} {tail}").fetchall() for name in ("t", "own")
    )
    assert repr(found) == repr(expected), where


def test_filters_and_columns_reach_the_scan(made: tuple[Table, Listener, Any]) -> None:
    table, heard, connection = made
    assert connection.sql("SELECT count(name) FROM t WHERE id >= 120").fetchall()[0][0] > 0
    assert files_planned(heard) == 6 < len(list(table.scan().plan_files()))


def test_a_table_is_queried_again_and_joined_with_itself(made: tuple[Table, Listener, Any]) -> None:
    _, _, connection = made
    query = "SELECT count(*) FROM t a JOIN t b USING (id) WHERE a.d > 0 AND b.i IS NOT NULL"
    found = connection.sql(query).fetchall()
    assert found == connection.sql(query.replace("t a", "own a").replace("t b", "own b")).fetchall()
    assert found == connection.sql(query).fetchall()


def test_a_connection_of_the_caller_is_used_and_returned(made: tuple[Table, Listener, Any]) -> None:
    table, _, _ = made
    with duckdb.connect() as mine:
        assert table.scan("id = 8").to_duckdb("u", mine) is mine
        assert mine.sql("SELECT id FROM u").fetchall() == [(8,)]
    fresh = table.scan(limit=3).to_duckdb("v")
    assert fresh.sql("SELECT count(*) FROM v").fetchall() == [(3,)]
    fresh.close()
