"""Faults between the plugin and the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import uuid4

import pytest
from http_between import Asked, Between
from icefield.abc import FileSystem
from icefield_adls.adls_file_system import AdlsFileSystem
from servers.azure import Azure
from store_faults import StoreFaults


class TestAdlsFaults(StoreFaults):
    prefix = "adls"

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
