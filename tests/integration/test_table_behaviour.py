"""The same behaviour over all catalogs and commit strategies without a server, and over PostgreSQL if there is one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import pytest
from catalogs import properties_of
from icefield import Catalog, load_catalog
from icefield_testing import TableBehaviourSuite
from rest_behaviour import Served
from sqlalchemy import create_engine, text


class TestDirectoryWithRename(TableBehaviourSuite):
    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        return load_catalog("test", type="directory", warehouse=f"file://{tmp_path}/warehouse", commit="rename")


class TestDirectoryWithCreate(TableBehaviourSuite):
    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        return load_catalog("test", type="directory", warehouse=f"file://{tmp_path}/warehouse", commit="create")


class TestDirectoryInMemory(TableBehaviourSuite):
    one_process = True

    @pytest.fixture
    def catalog(self) -> Catalog:
        return load_catalog("test", type="directory", warehouse=f"memory://behaviour/{uuid4().hex}")


class TestTablesOfAvro(TestDirectoryInMemory):
    table_properties: ClassVar[dict[str, str]] = {"write.format.default": "avro"}


class TestTablesOfOrc(TestDirectoryInMemory):
    table_properties: ClassVar[dict[str, str]] = {"write.format.default": "orc"}


class TestSqlite(TableBehaviourSuite):
    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Iterator[Catalog]:
        uri = f"sqlite:///{tmp_path}/catalog.db"
        with load_catalog("test", type="sql", uri=uri, warehouse=f"file://{tmp_path}/warehouse") as catalog:
            yield catalog


@pytest.fixture(scope="module")
def database(postgres: str) -> str:
    """A database that the tests share: each works in a namespace of its own."""
    name = uuid4().hex
    with create_engine(postgres, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    return postgres.rpartition("/")[0] + "/" + name


class TestPostgres(TableBehaviourSuite):
    @pytest.fixture
    def catalog(self, database: str, tmp_path: Path) -> Iterator[Catalog]:
        with load_catalog("test", type="sql", uri=database, warehouse=f"file://{tmp_path}/warehouse") as catalog:
            yield catalog


@pytest.mark.slow
class TestRestOverSqlite(Served, TableBehaviourSuite):
    @pytest.fixture(scope="class")
    @classmethod
    def behind(cls, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
        return properties_of("sql", tmp_path_factory.mktemp("served"))


@pytest.mark.soak
@pytest.mark.slow
class TestRestPlannedByTheServer(TestRestOverSqlite):
    @pytest.fixture
    def catalog(self, service: str) -> Iterator[Catalog]:
        with load_catalog("test", type="rest", uri=service, **{"scan-planning-mode": "server"}) as catalog:
            yield catalog
