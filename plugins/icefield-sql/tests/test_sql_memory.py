"""A catalog in the memory of one process: it works there, as a whole, and nowhere else."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import Catalog, FileIO, LocalFileSystem, Plugins, load_catalog
from icefield.abc import CatalogBackend, CommitStrategy, FileSystem
from icefield.errors import InvalidArgument, StorageError
from icefield_sql.backend import SqlBackend
from icefield_sql.database import Database
from icefield_sql.sqlite import SqliteConnection
from icefield_sql.strategy import SqlStrategy
from icefield_testing import CatalogSuite, CommitStrategySuite

ROWS = pa.table({"id": [1, 2]})
URIS = ["sqlite:///:memory:", "sqlite://", "sqlite+pysqlite:///:memory:"]


@pytest.fixture(params=URIS)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    with load_catalog("test", type="sql", uri=request.param, warehouse=f"file://{tmp_path}/warehouse") as made:
        yield made


def test_tables_are_made_changed_and_listed_in_it(catalog: Catalog) -> None:
    catalog.create_namespace("db", {"owner": "me"})
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.delete("id = 1")
    assert catalog.list_tables("db") == [("db", "t")]
    assert catalog.rename_table("db.t", "db.u").scan().to_arrow()["id"].to_pylist() == [2]
    catalog.purge_table("db.u")
    catalog.drop_namespace("db")
    assert catalog.list_namespaces() == []


def test_threads_use_the_same_one(catalog: Catalog) -> None:
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema, properties={"commit.retry.num-retries": "50"})

    def work(number: int) -> None:
        catalog.create_table(f"db.t{number}", ROWS.schema)
        catalog.load_table("db.t").append(ROWS)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))
    assert table.refresh().scan().count() == 16
    assert len(catalog.list_tables("db")) == 9


def test_two_catalogs_have_a_database_each(catalog: Catalog) -> None:
    catalog.create_namespace("db")
    with load_catalog("test", type="sql", uri="sqlite://", warehouse="file:///nowhere") as other:
        assert other.list_namespaces() == []


def test_a_table_that_is_pickled_finds_its_catalog_again_in_its_process(catalog: Catalog) -> None:
    catalog.create_namespace("db")
    again = pickle.loads(pickle.dumps(catalog.create_table("db.t", ROWS.schema)))
    again.append(ROWS)
    assert catalog.load_table("db.t").scan().count() == 2


_ELSEWHERE = """
import pickle, sys
strategy = pickle.load(sys.stdin.buffer)
try:
    print(strategy.load())
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.slow
def test_another_process_is_stated_and_finds_no_empty_catalog(catalog: Catalog) -> None:
    catalog.create_namespace("db")
    catalog.create_table("db.t", ROWS.schema)
    given = pickle.dumps(catalog._backend.strategy(("db", "t")))
    said = subprocess.run([sys.executable, "-c", _ELSEWHERE], input=given, capture_output=True, check=True).stdout
    assert said.startswith(b"StorageError catalog 'test' is in the memory of the process that opened it")


def test_a_forked_process_is_reported(catalog: Catalog) -> None:
    catalog.create_namespace("db")
    context = multiprocessing.get_context("fork")
    replies = context.SimpleQueue()

    def ask() -> None:
        try:
            catalog.create_namespace("lost")
            replies.put("done")
        except StorageError as error:
            replies.put(str(error))

    process = context.Process(target=ask)
    process.start()
    assert "write uri=sqlite:////path/catalog.db" in replies.get()
    process.join()
    assert catalog.list_namespaces() == [("db",)]


def test_an_interrupt_in_a_statement_costs_no_table(catalog: Catalog) -> None:
    catalog.create_namespace("db")
    database: Database = catalog._backend._database  # type: ignore[attr-defined]

    def interrupted() -> None:
        with database.transaction() as connection:
            assert isinstance(connection, SqliteConnection)
            connection.close()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert catalog.list_namespaces() == [("db",)]


def test_it_ends_with_the_catalog_and_says_so(tmp_path: Path) -> None:
    catalog = load_catalog("test", type="sql", uri="sqlite://", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    catalog.close()
    with pytest.raises(InvalidArgument, match="was closed"):
        catalog.list_namespaces()


@pytest.mark.parametrize(
    "uri",
    [
        ":memory:",
        "file::memory:?cache=shared",
        "file:shared?mode=memory&cache=shared",
        "sqlite:///file::memory:?cache=shared",
        "sqlite:///file::memory:?cache=shared&uri=true",
        "sqlite:///file:shared?mode=memory&cache=shared&uri=true",
        "sqlite:///file:/data/catalog.db",
    ],
)
def test_what_looks_like_one_and_is_none_is_refused_with_what_to_write(uri: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"sqlite:///:memory:") as refused:
        load_catalog("test", uri=uri, warehouse=f"file://{tmp_path}")
    assert "sqlite:////path/catalog.db" in str(refused.value)
    assert "\n" not in str(refused.value)


class TestCatalogInMemory(CatalogSuite):
    def another(self, backend: CatalogBackend) -> CatalogBackend:
        return backend  # nobody else has this database

    @pytest.fixture
    def backend(self, tmp_path: Path) -> Iterator[CatalogBackend]:
        properties = {"uri": "sqlite:///:memory:", "warehouse": f"file://{tmp_path}/warehouse"}
        made = SqlBackend("test", properties, FileIO(Plugins.installed(), properties))
        yield made
        made.close()


class TestStrategyInMemory(CommitStrategySuite):
    one_process = True

    @pytest.fixture
    def service(self) -> None:
        """A database in this process gives no reply that could be lost."""

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return LocalFileSystem()

    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/{uuid4().hex}/db/t"

    database = Database("test", {"uri": "sqlite:///:memory:"})

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return SqlStrategy(("db", location), location, file_system, {}, self.database)
