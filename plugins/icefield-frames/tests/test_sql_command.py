"""``icefield sql``: queries over tables of a catalog, which read nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import icefield
import pyarrow as pa
import pytest
from frame_tables import files_planned
from icefield_cli.main import main
from tables import Listener

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    return {"type": "directory", "warehouse": tmp_path.as_uri(), "file.sync": "false"}


@pytest.fixture
def catalog(given: dict[str, str]) -> icefield.Catalog:
    catalog = icefield.load_catalog("c", **given)
    rows = pa.table({"id": [*range(100)], "kind": ["a", "b"] * 50, "x": [0.5] * 99 + [float("nan")]})
    catalog.create_namespace("db")
    catalog.create_namespace("deep")
    catalog.create_namespace("deep.er")
    for name in ("db.t", "db.two words", "deep.er.t"):
        catalog.create_table_as(tuple(name.split(".")), rows)
    return catalog


@pytest.fixture
def run(catalog: icefield.Catalog, given: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Run:
    options = [part for key, value in given.items() for part in ("-p", f"{key}={value}")]

    def ran(query: str, *more: str) -> tuple[int, str, str]:
        status = main(["sql", query, "--catalog", "c", *options, *more])
        return (status, *capsys.readouterr())

    return ran


def rows(found: tuple[int, str, str]) -> list[dict[str, object]]:
    assert found[0] == 0, found[2]
    return [json.loads(line) for line in found[1].splitlines()]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT kind, count(*) AS n FROM db.t GROUP BY kind HAVING kind > 'a'", [{"kind": "b", "n": 50}]),
        ("FROM db.t WHERE id = 7", [{"id": 7, "kind": "b", "x": 0.5}]),
        ('SELECT max(id) AS m FROM db."two words" -- a comment', [{"m": 99}]),
        ("SELECT count(*) AS n FROM deep.er.t JOIN db.t USING (id)", [{"n": 100}]),
        ("WITH w AS (SELECT id FROM db.t WHERE x > 1) SELECT count(*) AS n FROM w", [{"n": 1}]),
        ("SELECT (SELECT max(id) FROM db.t) AS m", [{"m": 99}]),
        ("SELECT count(*) AS n FROM (SUMMARIZE SELECT id, kind FROM db.t)", [{"n": 2}]),
    ],
)
def test_a_query_reads_tables_of_the_catalog(run: Run, query: str, expected: list[dict[str, object]]) -> None:
    assert rows(run(query, "--output", "json")) == expected


def test_columns_and_filters_reach_the_scan(catalog: icefield.Catalog) -> None:
    from icefield_frames.duckdb_queries import querying

    listener = Listener()
    plugins = icefield.Plugins.installed(extra=[listener])
    given = {"type": "directory", "warehouse": catalog.properties["warehouse"]}
    table = icefield.load_catalog("c", plugins=plugins, **given).load_table("db.t")
    with querying("SELECT id FROM db.t WHERE id > 1000", lambda name: table.scan()) as found:
        assert found.read_all().num_rows == 0
    assert files_planned(listener) == 0


def test_the_first_rows_are_printed_unless_all_are_asked_for(run: Run) -> None:
    _, out, err = run("SELECT id FROM db.t")
    assert len(out.splitlines()) == 21
    assert "at most 20 rows are printed; --all prints every row" in err
    assert len(run("SELECT id FROM db.t", "--all")[1].splitlines()) == 101
    assert len(run("SELECT id FROM db.t", "--limit", "3", "--output", "csv")[1].splitlines()) == 4


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("DROP TABLE db.t", "a statement that is no query"),
        ("COPY (SELECT 1) TO 'x.csv'", "a statement that is no query"),
        ("SET enable_external_access = true", "a statement that is no query"),
        ("SELECT 1; SELECT 2", "not 2 statements"),
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM db.none", "db.none"),
        ("SELECT * FROM none", "Table with name none does not exist"),
        ("SELECT * FROM '/etc/passwd'", "does not exist"),
        ("SELECT * FROM read_csv('/etc/passwd')", "file system operations are disabled"),
        ("SELECT * FROM read_text('/etc/passwd')", "file system operations are disabled"),
        ("SELECT * FROM glob('/etc/*')", "file system operations are disabled"),
        ("SELECT * FROM read_parquet('https://127.0.0.1:1/x.parquet')", "disabled"),
        ("SELECT * FROM given", "Table with name given does not exist"),
    ],
)
def test_what_is_no_query_of_tables_is_refused(run: Run, query: str, message: str) -> None:
    status, out, err = run(query)
    assert (status, out) == (1, "")
    assert message in err
