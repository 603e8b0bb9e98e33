"""Faults between the plugin and the server, the number of requests, and stores that do not keep their word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas
from http_between import Asked, Between
from icefield.abc import FileSystem
from icefield_adls.adls_file_system import AdlsFileSystem
from servers.azure import ACCOUNT, KEY, Azure
from store_faults import StoreFaults
from store_requests import StoreRequests


class TestAdlsFaults(StoreFaults, StoreRequests):
    prefix = "adls"
    batch = 256

    @pytest.fixture
    def between(self, azure: Azure) -> Iterator[Between]:
        self.azure = azure
        with Between(azure.url).open() as between:
            yield between

    @pytest.fixture
    def root(self, azure: Azure) -> str:
        return f"az://{azure.container}/{uuid4().hex}"

    def reached(self, url: str) -> Mapping[str, str]:
        return Azure(url).properties

    def made(self, properties: Mapping[str, str]) -> FileSystem:
        return AdlsFileSystem(properties)

    def is_put(self, asked: Asked) -> bool:
        return asked.method == "PUT" and "comp=" not in asked.path

    def is_part(self, asked: Asked) -> bool:
        return asked.method == "PUT" and "comp=block" in asked.path

    def is_delete(self, asked: Asked) -> bool:
        return asked.method == "DELETE" or "comp=batch" in asked.path

    def is_listing(self, asked: Asked) -> bool:
        return asked.method == "GET" and "comp=list" in asked.path

    def without_condition(self, asked: Asked) -> Asked:
        return replace(asked, headers={name: v for name, v in asked.headers.items() if name != "if-none-match"})

    def control(self, between: Between) -> FileSystem:
        # A request that is signed with the key would be refused when a header is taken away; a signature in its
        # address says nothing of headers.
        return self.made(
            {
                "adls.account-name": ACCOUNT,
                "adls.account-host": between.url.removeprefix("http://"),
                "adls.blob-storage-scheme": "http",
                "adls.sas-token": generate_account_sas(
                    ACCOUNT,
                    KEY,
                    ResourceTypes(container=True, object=True),
                    AccountSasPermissions(read=True, write=True, delete=True, list=True, create=True, add=True),
                    datetime.now(UTC) + timedelta(hours=1),
                ),
            }
        )

    def unpublished(self, location: str) -> int:
        return self.azure.unpublished(location.split("/", 3)[3])

    def raw_get(self, location: str) -> bytes | None:
        return self.azure.get(location.split("/", 3)[3])

    def test_blocks_that_nobody_discards_would_be_seen_by_these_tests(self, between: Between, root: str) -> None:
        sink = self.system(between).open_output(f"{root}/left")
        sink.write(bytes(600_000))
        sink.cancel = lambda: None
        sink.abort()
        assert self.unpublished(f"{root}/left") == 1
