"""The Glue Data Catalog passes the kit: the catalog, the strategy of its tables, and what users hold of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import pytest
from icefield import Catalog, FileIO, LocalFileSystem, Plugins, load_catalog
from icefield.abc import CatalogBackend, CommitStrategy, FileSystem
from icefield_glue.backend import GlueBackend
from icefield_glue.options import GlueOptions
from icefield_glue.service import GlueService
from icefield_glue.strategy import GlueStrategy
from icefield_testing import CatalogSuite, CommitStrategySuite, LossyProxy, RequestFaults, TableBehaviourSuite
from servers.glue import client, drop_databases

SECRETS: Sequence[Mapping[str, str]] = (
    {"glue.access-key-id": "key-id", "glue.secret-access-key": "{secret}"},
    {"glue.access-key-id": "key-id", "glue.secret-access-key": "{secret}", "glue.session-token": "{secret}"},
    {"client.access-key-id": "key-id", "client.secret-access-key": "{secret}"},
)


class TestGlueCatalog(CatalogSuite):
    listing_page = 100
    unconditional_namespaces = True
    time_out_properties: ClassVar = {"glue.request-timeout": "1"}
    credentials: ClassVar = SECRETS

    @pytest.fixture
    def backend(self, glue: dict[str, str], tmp_path: Path) -> Iterator[CatalogBackend]:
        properties = {**glue, "warehouse": f"file://{tmp_path}/warehouse"}
        drop_databases(glue)
        yield GlueBackend("test", properties, FileIO(Plugins.installed(), properties))
        drop_databases(glue)

    @pytest.fixture
    def service(self, glue: dict[str, str]) -> Iterator[LossyProxy]:
        with LossyProxy(int(glue["glue.endpoint"].rpartition(":")[2])) as proxy:
            yield proxy

    def backend_through(self, service: RequestFaults, backend: CatalogBackend) -> CatalogBackend:
        assert isinstance(service, LossyProxy)
        given = {"glue.max-retries": "2", "glue.endpoint": f"http://127.0.0.1:{service.port}"}
        properties = {**backend.properties, **given}
        return GlueBackend("test", properties, FileIO(Plugins.installed(), properties))


@pytest.mark.spec("COMMIT-01", "COMMIT-05", "FS-10", "META-34")
class TestGlueStrategy(CommitStrategySuite):
    time_out_properties: ClassVar = TestGlueCatalog.time_out_properties
    glue_of_all: ClassVar[dict[str, str]]

    @pytest.fixture(autouse=True)
    def shared(self, glue: dict[str, str]) -> None:
        type(self).glue_of_all = glue
        asked = client(glue["glue.endpoint"])
        if all(each["Name"] != "strategies" for each in asked.get_databases()["DatabaseList"]):
            asked.create_database(DatabaseInput={"Name": "strategies"})

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return LocalFileSystem()

    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/warehouse/t"

    @pytest.fixture
    def service(self, glue: dict[str, str]) -> Iterator[LossyProxy]:
        with LossyProxy(int(glue["glue.endpoint"].rpartition(":")[2])) as proxy:
            yield proxy

    def strategy_through(self, service: RequestFaults, file_system: FileSystem, location: str) -> CommitStrategy:
        assert isinstance(service, LossyProxy)
        given = {"glue.max-retries": "2", "glue.endpoint": f"http://127.0.0.1:{service.port}"}
        return self._made(file_system, location, **given)

    def strategy_in_haste(self, service: RequestFaults, file_system: FileSystem, location: str) -> CommitStrategy:
        assert isinstance(service, LossyProxy)
        given = {"glue.max-retries": "1", "glue.endpoint": f"http://127.0.0.1:{service.port}"}
        return self._made(file_system, location, **given, **self.time_out_properties)

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return self._made(file_system, location)

    def _made(self, file_system: FileSystem, location: str, **more: str) -> CommitStrategy:
        service = GlueService("test", GlueOptions.of("test", {**self.glue_of_all, **more}))
        return strategy_of(GlueStrategy, service, file_system, location)


class TestTablesOfGlue(TableBehaviourSuite):
    @pytest.fixture
    def catalog(self, glue: dict[str, str], tmp_path: Path) -> Iterator[Catalog]:
        drop_databases(glue)
        with load_catalog("test", type="glue", warehouse=f"file://{tmp_path}/warehouse", **glue) as catalog:
            yield catalog
        drop_databases(glue)


class UncheckedService(GlueService):
    """Makes changes of tables without their version."""

    def change(self, operation: str, **given: Any) -> None:
        given.pop("VersionId", None)
        super().change(operation, **given)


@pytest.mark.spec("COMMIT-01")
def test_the_kit_finds_what_the_version_is_for(glue: dict[str, str], tmp_path: Path) -> None:
    class Unchecked(TestGlueStrategy):
        max_wait_seconds = 30.0

        def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
            service = UncheckedService("test", GlueOptions.of("test", glue))
            return strategy_of(GlueStrategy, service, file_system, location)

    client(glue["glue.endpoint"]).create_database(DatabaseInput={"Name": "strategies"})
    with pytest.raises(AssertionError):
        Unchecked().test_no_update_of_many_writers_is_lost(LocalFileSystem(), f"file://{tmp_path}/unchecked")
    drop_databases(glue)


def strategy_of(kind: type[GlueStrategy], service: GlueService, file_system: FileSystem, location: str) -> GlueStrategy:
    """The strategy of a table with another name for each location."""
    name = f"t{sha256(location.encode()).hexdigest()[:16]}"
    return kind(("strategies", name), location, file_system, {}, service)
