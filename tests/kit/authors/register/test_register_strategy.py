"""The kit on a commit strategy over a service, written from the documentation alone, and tables that commit by it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from authors.register.register_catalog import RegisterBackend
from authors.register.register_strategy import RegisterStrategy
from icefield import Catalog, FileIO, LocalFileSystem, Plugins
from icefield.abc import CatalogBackend, CommitStrategy, FileSystem
from icefield_testing import CatalogSuite, CommitStrategySuite, LossyProxy, RequestFaults, TableBehaviourSuite


@pytest.fixture
def backend(own_port: int, tmp_path: Path) -> CatalogBackend:
    """A catalog that commits its tables by the strategy."""
    given = {"register.port": str(own_port), "warehouse": (tmp_path / "warehouse").as_uri(), "file.sync": "false"}
    return RegisterBackend("test", given, FileIO(Plugins.installed(), given))


@pytest.fixture
def own_port() -> Iterator[int]:
    """The port of a service with nothing in it."""
    with running_service() as port:
        yield port


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a service that many checks share."""
    with running_service() as port:
        yield port


@contextmanager
def running_service() -> Iterator[int]:
    """The port of a service that runs in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("register_service.py"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.terminate()


class TestRegisterStrategy(CommitStrategySuite):
    @pytest.fixture(autouse=True)
    def known_port(self, port: int) -> None:
        self.port = port

    @pytest.fixture
    def service(self, port: int) -> Iterator[LossyProxy]:
        with LossyProxy(port) as proxy:
            yield proxy

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return LocalFileSystem()

    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return (tmp_path / "t").as_uri()

    def strategy(self, file_system: FileSystem, location: str, port: int | None = None) -> CommitStrategy:
        return RegisterStrategy(("db", location), location, file_system, {"register.port": str(port or self.port)})

    def strategy_through(self, service: LossyProxy, file_system: FileSystem, location: str) -> CommitStrategy:
        return self.strategy(file_system, location, service.port)


class TestRegisterCatalog(CatalogSuite):
    """The fixture ``backend`` is above."""

    @pytest.fixture
    def backend(self, backend: CatalogBackend) -> CatalogBackend:
        return backend

    @pytest.fixture
    def service(self, own_port: int) -> Iterator[LossyProxy]:
        with LossyProxy(own_port) as proxy:
            yield proxy

    def backend_through(self, service: RequestFaults, backend: CatalogBackend) -> CatalogBackend:
        assert isinstance(service, LossyProxy)
        given = {**backend.properties, "register.port": str(service.port)}
        return RegisterBackend(backend.name, given, backend.io)


class TestTablesOfTheRegister(TableBehaviourSuite):
    """The whole behaviour of tables, through the author's strategy."""

    @pytest.fixture
    def catalog(self, backend: CatalogBackend) -> Catalog:
        return Catalog(backend)
