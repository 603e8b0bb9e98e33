"""``icefield sql``: queries over tables of a catalog, which read nothing else."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import icefield
import pyarrow as pa
import pytest
from frame_tables import files_planned
from icefield.errors import InvalidArgument
from icefield.types import NestedField
from icefield_cli.main import main
from icefield_frames.duckdb_queries import querying
from icefield_frames.duckdb_relations import query_table
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
    listener = Listener()
    plugins = icefield.Plugins.installed(extra=[listener])
    given = {"type": "directory", "warehouse": catalog.properties["warehouse"]}
    table = icefield.load_catalog("c", plugins=plugins, **given).load_table("db.t")
    with querying("SELECT id FROM db.t WHERE id > 1000", lambda name: query_table(table.scan())) as found:
        assert found.read_all().num_rows == 0
    assert files_planned(listener) == 0


def test_a_query_writes_no_log(capfd: pytest.CaptureFixture[str]) -> None:
    logging = "enable_logging(level='trace', storage='stdout', storage_buffer_size=0)"
    for source in (logging, "query('SELECT * FROM " + logging.replace("'", "''") + "')"):
        log = f"WITH l AS MATERIALIZED (SELECT count(*) AS n FROM {source}) "
        sql = log + "SELECT n, write_log('planted' || range, scope := 'database') FROM l, range(2)"
        with (
            pytest.raises(InvalidArgument, match="without DuckDB's function"),
            querying(sql, lambda name: None) as found,
        ):
            found.read_all()
        assert "planted" not in capfd.readouterr().out


def test_the_first_rows_are_printed_unless_all_are_asked_for(run: Run) -> None:
    _, out, err = run("SELECT id FROM db.t")
    assert len(out.splitlines()) == 21
    assert "at most 20 rows are printed; --all prints every row" in err
    assert len(run("SELECT id FROM db.t", "--all")[1].splitlines()) == 101
    assert len(run("SELECT id FROM db.t", "--limit", "3", "--output", "csv")[1].splitlines()) == 4


def test_columns_of_one_name_are_told_apart(run: Run) -> None:
    assert rows(run("SELECT 1 AS a, 2 AS a, 3 AS a_1", "--output", "json")) == [{"a": 1, "a_2": 2, "a_1": 3}]
    assert run("SELECT 1 AS a, 2 AS a", "--output", "csv")[1] == '"a","a_1"\n1,2\n'
    joined = rows(run("SELECT * FROM db.t x JOIN deep.er.t y ON x.id = y.id - 1 WHERE x.id = 1", "--output", "json"))
    assert [(row["id"], row["id_1"]) for row in joined] == [(1, 2)]


def test_namespaces_of_one_and_of_two_levels_are_queried_together(run: Run, catalog: icefield.Catalog) -> None:
    catalog.create_table_as("deep.t", pa.table({"id": [1, 5]}))
    query = "SELECT count(*) AS n FROM deep.t JOIN deep.er.t USING (id) JOIN db.t USING (id)"
    assert rows(run(query, "--output", "json")) == [{"n": 2}]
    catalog.create_namespace("memory")
    catalog.create_table_as("memory.t", pa.table({"id": [1]}))
    assert rows(run("SELECT count(*) AS n FROM memory.t", "--output", "json")) == [{"n": 1}]


def test_uuids_are_uuids(run: Run, catalog: icefield.Catalog) -> None:
    given = uuid.uuid4()
    table = catalog.create_table("db.u", icefield.Schema(NestedField(1, "u", "uuid")))
    table.append([{"u": given}, {"u": None}])
    query = f"SELECT u FROM db.u WHERE u = '{given}'"
    assert rows(run(query, "--output", "json")) == [{"u": str(given)}]


def test_a_file_of_rows_has_all_of_them(run: Run) -> None:
    assert len(run("SELECT id FROM db.t", "--output", "csv")[1].splitlines()) == 101
    assert len(run("SELECT id FROM db.t", "--output", "csv", "--limit", "5")[1].splitlines()) == 6


def test_an_interval_is_written_as_text_or_refused(run: Run) -> None:
    assert run("SELECT INTERVAL 1 DAY AS i", "--output", "csv")[0] == 0
    status, _, err = run("SELECT INTERVAL 1 DAY AS i", "--output", "parquet")
    assert status == 1
    assert "column 'i' is an interval, which Parquet lacks" in err


def test_an_error_of_a_scan_is_one_line(run: Run, catalog: icefield.Catalog) -> None:
    for file in catalog.load_table("db.t").inspect.files()["file_path"].to_pylist():
        Path(file.removeprefix("file://")).unlink()
    status, _, err = run("SELECT sum(id) FROM db.t")
    assert status == 1
    assert "FileMissing" in err
    assert 'File "' not in err


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ('SELECT * FROM db.t x, db."T" y', "differ in case only"),
        ("SELECT * FROM a.b.c.t", "at most three parts"),
        ("SELECT * FROM system.t", "a name of DuckDB's own"),
        ("DROP TABLE db.t", "a statement that is no query"),
        ("COPY (SELECT 1) TO 'x.csv'", "a statement that is no query"),
        ("SET enable_external_access = true", "a statement that is no query"),
        ("SELECT 1; SELECT 2", "not 2 statements"),
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM db.none", "db.none"),
        ("SELECT * FROM none", "Table with name none does not exist"),
        ("SELECT * FROM '/etc/passwd'", "does not exist"),
        ("SELECT * FROM read_csv('/etc/passwd')", "without DuckDB's function read_csv"),
        ("SELECT * FROM read_text('/etc/passwd')", "without DuckDB's function read_text"),
        ("SELECT * FROM glob('/etc/*')", "without DuckDB's function glob"),
        ("SELECT * FROM read_parquet('https://127.0.0.1:1/x.parquet')", "without DuckDB's function read_parquet"),
        ("SELECT * FROM system.main.Enable_Profiling(save_location='x.json')", "without DuckDB's function"),
        ("SELECT * FROM query('SELECT 1')", "without DuckDB's function query"),
        ("SELECT * FROM given", "Table with name given does not exist"),
    ],
)
def test_what_is_no_query_of_tables_is_refused(run: Run, query: str, message: str) -> None:
    status, out, err = run(query)
    assert (status, out) == (1, "")
    assert message in err
