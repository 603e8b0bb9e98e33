"""The plugin passes the kit on a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partialmethod
from typing import ClassVar
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from azure.storage.blob.aio import ContainerClient
from icefield import Plugins
from icefield.abc import CommitStrategy, FileSystem
from icefield_adls.adls_file_system import AdlsFileSystem
from icefield_testing import CommitStrategySuite, FileSystemSuite, LossyProxy
from object_stores import EntityTags
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

    def raw_list(self, prefix: str) -> list[str]:
        folder = prefix.split("/", 3)[3]
        return [f"{prefix.removesuffix(folder)}{name}" for name in self.azure.names(f"{folder}/")]

    def raw_unfinished(self, prefix: str) -> list[str]:
        return self.azure.uncommitted(f"{prefix.split('/', 3)[3]}/")


@pytest.mark.spec("FS-04", "FS-05", "FS-06", "FS-10")
class TestAdls(OnServer, EntityTags, FileSystemSuite):
    fail_fast: ClassVar = {"adls.retry.num-retries": "0"}
    time_out_properties: ClassVar = {"adls.connect-timeout": "1", "adls.request-timeout": "1"}
    delete_page = 256
    listing_page = 50
    credentials: ClassVar = tuple(
        {"adls.account-name": ACCOUNT, "adls.connection-string": "", **given}
        for given in (
            {"adls.account-key": "{secret}"},
            {"adls.sas-token": "sv=2024&sig={secret}"},
            {"adls.token": "{secret}"},
            {"adls.tenant-id": "tenant", "adls.client-id": "client", "adls.client-secret": "{secret}"},
            {"adls.connection-string": f"AccountName={ACCOUNT};SharedAccessSignature=sv=2024&sig={{secret}}"},
        )
    )

    @pytest.fixture
    def service(self, azure: Azure) -> Iterator[LossyProxy]:
        with LossyProxy(urlsplit(azure.url).port or 0) as proxy:
            yield proxy

    def file_system_through(self, service: LossyProxy, file_system: FileSystem) -> FileSystem:
        behind = replace(self.azure, url=f"http://127.0.0.1:{service.port}/{ACCOUNT}")
        return AdlsFileSystem({**file_system.properties, **behind.properties})

    def foreign_location(self, host: str, port: int) -> str | None:
        return f"abfss://foreign@{host}:{port}/file"

    @pytest.fixture(autouse=True)
    def small_pages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A page of the store has 5,000 names: ask for fewer, so that few files fill several."""
        for name in ("list_blobs", "walk_blobs"):
            listing = getattr(ContainerClient, name)
            monkeypatch.setattr(ContainerClient, name, partialmethod(listing, results_per_page=self.listing_page))


@pytest.mark.spec("COMMIT-01", "COMMIT-02", "FS-13", "FS-14", "META-33")
class TestCreateOnAdls(OnServer, CommitStrategySuite):
    base = "az://{container}"
    max_wait_seconds = 180.0  # the server is one thread of JavaScript, and other tests run at the same time

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return Plugins.installed().commit_strategy("create")(("db", "t"), location, file_system)
