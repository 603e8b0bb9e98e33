"""The plugin passes the kit on a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar
from uuid import uuid4

import pytest
from icefield import Plugins
from icefield.abc import CommitStrategy, FileSystem
from icefield_gcs.gcs_file_system import GcsFileSystem
from icefield_testing import CommitStrategySuite, FileSystemSuite, LossyProxy
from object_stores import EntityTags
from servers.gcs import Gcs


class OnServer:
    """A bucket that is written and read without the plugin."""

    @pytest.fixture(autouse=True)
    def server(self, gcs: Gcs) -> None:
        self.gcs = gcs

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return GcsFileSystem(self.gcs.properties)

    @pytest.fixture
    def root(self) -> str:
        return f"gs://{self.gcs.bucket}/{uuid4().hex}"

    @pytest.fixture
    def location(self, root: str) -> str:
        return f"{root}/db/t"

    def raw_get(self, location: str) -> bytes | None:
        return self.gcs.get(location.removeprefix(f"gs://{self.gcs.bucket}/"))

    def raw_put(self, location: str, data: bytes) -> None:
        self.gcs.put(location.removeprefix(f"gs://{self.gcs.bucket}/"), data)

    def raw_list(self, prefix: str) -> list[str]:
        root = f"gs://{self.gcs.bucket}/"
        return [root + name for name in self.gcs.names(f"{prefix.removeprefix(root)}/")]


@pytest.mark.spec("FS-04", "FS-05", "FS-06", "FS-10")
class TestGcs(OnServer, EntityTags, FileSystemSuite):
    fail_fast: ClassVar = {"gcs.retry.num-retries": "0"}
    time_out_properties: ClassVar = {"gcs.connect-timeout": "1", "gcs.request-timeout": "1"}
    delete_page = 100
    credentials: ClassVar = ({"gcs.oauth2.token": "{secret}", "gcs.no-auth": "false"},)

    @pytest.fixture
    def service(self, gcs: Gcs) -> Iterator[LossyProxy]:
        with LossyProxy(int(gcs.url.rpartition(":")[2])) as proxy:
            yield proxy

    def file_system_through(self, service: LossyProxy, file_system: FileSystem) -> FileSystem:
        return GcsFileSystem({**file_system.properties, "gcs.service.host": f"http://127.0.0.1:{service.port}"})


@pytest.mark.spec("COMMIT-01", "COMMIT-02", "FS-13", "FS-14", "META-33")
class TestCreateOnGcs(OnServer, CommitStrategySuite):
    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return Plugins.installed().commit_strategy("create")(("db", "t"), location, file_system)
