"""The SQL metastore passes the kit, on SQLite and, where a server can be started, on PostgreSQL."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import pytest
from icefield import FileIO, LocalFileSystem, Plugins
from icefield.abc import CatalogBackend, CommitStrategy, FileSystem
from icefield.errors import InvalidArgument, StorageError
from icefield_sql.backend import SqlBackend
from icefield_sql.database import Database
from icefield_sql.servers import ServerEngine
from icefield_sql.strategy import SqlStrategy
from icefield_testing import CatalogSuite, CommitStrategySuite, LossyProxy, RequestFaults
from sqlalchemy import URL, create_engine, make_url, text


def backend_at(uri: str, folder: Path, name: str = "test") -> SqlBackend:
    properties = {"uri": uri, "warehouse": f"file://{folder}/warehouse"}
    return SqlBackend(name, properties, FileIO(Plugins.installed(), properties))


def url_of(database: Database) -> URL:
    """The URL of a database of a server."""
    assert isinstance(database.engine, ServerEngine)
    return database.engine.engine.url


class TestSqliteCatalog(CatalogSuite):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Iterator[CatalogBackend]:
        made = backend_at(f"sqlite:///{tmp_path}/catalog.db", tmp_path)
        yield made
        made.close()

    def test_two_catalogs_share_a_database_and_see_their_own(self, tmp_path: Path) -> None:
        uri = f"sqlite:///{tmp_path}/catalog.db"
        one, two = backend_at(uri, tmp_path, "one"), backend_at(uri, tmp_path, "two")
        one.create_namespace(("a",), {})
        two.create_namespace(("b",), {})
        self.create_table(one, ("a", "t"))
        assert one.list_namespaces(()).items == (("a",),)
        assert two.list_namespaces(()).items == (("b",),)
        assert two.strategy(("a", "t")).load() is None

    def test_a_level_with_a_dot_is_refused(self, backend: CatalogBackend) -> None:
        with pytest.raises(InvalidArgument, match="dots"):
            backend.create_namespace(("a.b",), {})


@pytest.mark.spec("COMMIT-01", "COMMIT-05", "FS-10", "META-34")
class TestSqliteStrategy(CommitStrategySuite):
    @pytest.fixture
    def service(self) -> None:
        """A database in a file gives no reply that could be lost."""

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return LocalFileSystem()

    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/warehouse/db/t"

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        root = location.removeprefix("file://").partition("/warehouse/")[0]
        database = Database("test", {"uri": f"sqlite:///{root}/catalog.db"})
        return SqlStrategy(("db", location), location, file_system, {}, database)


def database_of_its_own(postgres: str, name: str) -> str:
    """A fresh database on the server."""
    with create_engine(postgres, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    return postgres.rpartition("/")[0] + "/" + name


SHORT_TIME_OUTS = {"sql.connect-timeout": "1", "sql.request-timeout": "1"}


class TestPostgresCatalog(CatalogSuite):
    time_out_properties: ClassVar = SHORT_TIME_OUTS

    @pytest.fixture
    def backend(self, postgres: str, tmp_path: Path) -> Iterator[CatalogBackend]:
        made = backend_at(database_of_its_own(postgres, uuid4().hex), tmp_path)
        yield made
        made.close()

    @pytest.fixture
    def service(self, postgres: str) -> Iterator[LossyProxy]:
        with LossyProxy(make_url(postgres).port or 0) as proxy:
            yield proxy

    def backend_through(self, service: RequestFaults, backend: CatalogBackend) -> CatalogBackend:
        assert isinstance(service, LossyProxy)
        url = make_url(backend.properties["uri"]).set(port=service.port)
        given = {**backend.properties, "uri": url.render_as_string(hide_password=False)}
        return SqlBackend(backend.name, given, backend.io)


class TestPostgresStrategy(CommitStrategySuite):
    time_out_properties: ClassVar = SHORT_TIME_OUTS
    lease_seconds = math.inf  # a row is locked until the transaction ends

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return LocalFileSystem()

    @pytest.fixture
    def database(self, postgres: str) -> Iterator[Database]:
        made = Database("test", {"uri": database_of_its_own(postgres, uuid4().hex)})
        yield made
        made.close()

    @pytest.fixture
    def location(self, tmp_path: Path, database: Database) -> str:
        self.database_of[str(tmp_path)] = database
        return f"file://{tmp_path}/warehouse/db/t"

    database_of: ClassVar[dict[str, Database]] = {}

    @pytest.fixture
    def service(self, database: Database) -> Iterator[LossyProxy]:
        with LossyProxy(url_of(database).port or 0) as proxy:
            yield proxy

    def strategy_through(self, service: RequestFaults, file_system: FileSystem, location: str) -> CommitStrategy:
        return self._through(service, file_system, location)

    def _through(self, service: RequestFaults, file_system: FileSystem, location: str, **more: str) -> CommitStrategy:
        assert isinstance(service, LossyProxy)
        root = location.removeprefix("file://").partition("/warehouse/")[0]
        url = url_of(self.database_of[root]).set(port=service.port)
        database = Database("test", {"uri": url.render_as_string(hide_password=False), **more})
        return SqlStrategy(("db", location), location, file_system, {}, database)

    def strategy_in_haste(self, service: RequestFaults, file_system: FileSystem, location: str) -> CommitStrategy:
        return self._through(service, file_system, location, **self.time_out_properties)

    def in_another_process(self) -> None:
        for database in self.database_of.values():
            assert isinstance(database.engine, ServerEngine)
            database.engine.engine.dispose(close=False)

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        root = location.removeprefix("file://").partition("/warehouse/")[0]
        database = self.database_of.get(root) or Database("test", {"uri": "postgresql+psycopg://nobody@127.0.0.1:1/no"})
        return SqlStrategy(("db", location), location, file_system, {}, database)


def test_a_database_of_the_first_version_is_used_as_it_is(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/old.db"
    with create_engine(uri).begin() as connection:
        connection.execute(
            text(
                "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, "
                "table_namespace VARCHAR(255) NOT NULL,"
                " table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000),"
                " previous_metadata_location VARCHAR(1000), PRIMARY KEY (catalog_name, table_namespace, table_name))"
            )
        )
    backend = backend_at(uri, tmp_path)
    backend.create_namespace(("a",), {})
    CatalogSuite().create_table(backend, ("a", "t"))
    assert backend.list_tables(("a",)).items == (("a", "t"),)


def test_a_password_is_in_no_message(tmp_path: Path) -> None:
    uri = f"postgresql+psycopg://user:hunter2-secret@127.0.0.1:1/{tmp_path.name}"
    backend = backend_at(uri, tmp_path)
    with pytest.raises(StorageError) as caught:
        backend.list_namespaces(())
    assert "hunter2" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)
    for wrong in ("no-such-dialect://user:hunter2-secret@host/db", "://hunter2-secret@", ""):
        with pytest.raises(InvalidArgument) as refused:
            backend_at(wrong, tmp_path)
        assert "hunter2" not in str(refused.value)


def test_the_option_commit_is_refused(tmp_path: Path) -> None:
    properties = {"uri": "sqlite://", "commit": "rename"}
    with pytest.raises(InvalidArgument, match="commit"):
        SqlBackend("test", properties, FileIO(Plugins.installed(), properties))
