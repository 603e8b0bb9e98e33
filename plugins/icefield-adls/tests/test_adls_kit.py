"""The plugin passes the kit on a server."""

from __future__ import annotations

from uuid import uuid4

import pytest
from icefield.abc import CommitStrategy, FileSystem
from icefield.builtin.create import CreateStrategy
from icefield.testing import CommitStrategySuite, FileSystemSuite
from icefield_adls.adls_file_system import AdlsFileSystem
from servers.azure import ACCOUNT, Azure


class OnServer:
    """A container that is written and read without the plugin."""

    base = f"abfss://{{container}}@{ACCOUNT}.dfs.core.windows.net"

    @pytest.fixture(autouse=True)
    def server(self, azure: Azure) -> None:
        self.azure = azure

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return AdlsFileSystem(self.azure.properties)

    @pytest.fixture
    def root(self) -> str:
        return f"{self.base.format(container=self.azure.container)}/{uuid4().hex}"

    @pytest.fixture
    def location(self, root: str) -> str:
        return f"{root}/db/t"

    def raw_get(self, location: str) -> bytes | None:
        return self.azure.get(location.split("/", 3)[3])

    def raw_put(self, location: str, data: bytes) -> None:
        self.azure.put(location.split("/", 3)[3], data)


@pytest.mark.spec("FS-04", "FS-05", "FS-06", "FS-10")
class TestAdls(OnServer, FileSystemSuite):
    pass


@pytest.mark.spec("COMMIT-01", "COMMIT-02", "FS-13", "FS-14", "META-33")
class TestCreateOnAdls(OnServer, CommitStrategySuite):
    base = "az://{container}"
    patience_seconds = 180.0  # the server is one thread of JavaScript, and other tests run beside

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return CreateStrategy(("db", "t"), location, file_system)
