"""The guide's quickstart of the REST server, as its reader types it: a warehouse on a local disk, DuckDB as client."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import DuckDBEngine
from fenced import Block, Page
from icefield import Catalog, load_catalog
from servers.process import answers, free_port, running

pytestmark = pytest.mark.slow

GUIDE = Page(Path("docs/guide/rest-server.md"))
ADDRESS = "127.0.0.1:8181"


def block(language: str, word: str) -> Block:
    """The only block of the guide in this language that contains the word."""
    (found,) = (each for each in GUIDE.blocks if each.language == language and word in each.text)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the reader, with the guide's configuration; only the location of the data differs."""
    folder = tmp_path_factory.mktemp("quickstart")
    _, _, shown = block("sh", "icefield serve").text.partition("$ cat icefield.toml\n")
    configuration, _, _ = shown.partition("$ ")
    (folder / "icefield.toml").write_text(configuration.replace("/data/", f"{folder}/"))
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The guide's server, on a free port."""
    (line,) = (each for each in block("sh", "icefield serve").text.splitlines() if each.startswith("$ icefield serve"))
    _, _, *arguments = line.split()
    port = str(free_port())
    command = [sys.executable, "-m", "icefield_cli.main", *arguments, "--port", port]
    here = {"ICEFIELD_CONFIG": str(folder / "icefield.toml")}
    with running(command, lambda: answers(f"http://127.0.0.1:{port}/health/live"), environment=here, seconds=120):
        yield f"127.0.0.1:{port}"


@pytest.fixture
def past(folder: Path) -> Iterator[Catalog]:
    """The catalog behind, opened without the server."""
    place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    with load_catalog("lake", type="sql", **place) as catalog:
        yield catalog


def test_duckdb_creates_tables_from_queries(duck: DuckDBEngine, address: str, past: Catalog) -> None:
    statements = block("sql", "-- DuckDB").text.replace(ADDRESS, address)
    for statement in statements.split(";\n"):
        if statement:
            duck.execute(statement)
    assert duck.fetchall() == [(1000,)]
    duck.execute("CREATE TABLE lake.db.few AS SELECT * FROM lake.db.numbers WHERE id < 10")
    duck.execute("CREATE TABLE lake.db.none AS SELECT * FROM lake.db.numbers WHERE id < 0")
    duck.execute("INSERT INTO lake.db.none VALUES (1, 'one')")
    duck.execute("DETACH lake")
    rows = {name: sorted(past.load_table(f"db.{name}").scan().to_arrow()["id"].to_pylist()) for name in ("few", "none")}
    assert rows == {"few": list(range(10)), "none": [1]}
    assert past.load_table("db.numbers").scan().to_arrow()["name"].to_pylist()[-1] == "n999"


def test_duckdb_leaves_no_table_of_a_query_that_fails(duck: DuckDBEngine, address: str, past: Catalog) -> None:
    duck.execute(f"ATTACH 'lake' AS again (TYPE iceberg, ENDPOINT 'http://{address}', AUTHORIZATION_TYPE 'none')")
    duck.execute("CREATE SCHEMA again.failed")
    query = "SELECT range AS id, CASE WHEN range = 9 THEN error('this row is bad') END AS x FROM range(10)"
    with pytest.raises(Exception, match="this row is bad"):
        duck.execute(f"CREATE TABLE again.failed.t AS {query}")
    assert past.list_tables("failed") == []
    duck.execute(f"CREATE TABLE again.failed.t AS {query.replace('range = 9', 'range = 10')}")
    duck.execute("DETACH again")
    assert past.load_table("failed.t").scan().count() == 10
