"""Faults between the plugin and the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen
from uuid import uuid4

import pytest
from http_between import Asked, Between
from icefield.abc import FileSystem
from icefield_gcs.gcs_file_system import GcsFileSystem
from servers.gcs import Gcs, Uploads
from store_faults import StoreFaults


class TestGcsFaults(StoreFaults):
    prefix = "gcs"

    @pytest.fixture
    def between(self, gcs: Gcs) -> Iterator[Between]:
        self.gcs, self.uploads = gcs, Uploads()
        with Between(gcs.url).open() as between:
            between.server = self.uploads
            yield between

    @pytest.fixture
    def root(self, gcs: Gcs) -> str:
        return f"gs://{gcs.bucket}/{uuid4().hex}"

    def reached(self, url: str) -> Mapping[str, str]:
        return {"gcs.service.host": url, "gcs.no-auth": "true"}

    def made(self, properties: Mapping[str, str]) -> FileSystem:
        return GcsFileSystem(properties)

    def is_put(self, asked: Asked) -> bool:
        return "uploadType=multipart" in asked.path

    def is_part(self, asked: Asked) -> bool:
        return "uploadType=resumable" in asked.path and asked.method in ("POST", "PUT") and (asked.body != b"")

    def unpublished(self, location: str) -> int:
        return len(self.uploads.arrived)

    def raw_get(self, location: str) -> bytes | None:
        key = quote(location.removeprefix(f"gs://{self.gcs.bucket}/"), safe="")
        try:
            with urlopen(f"{self.gcs.url}/storage/v1/b/{self.gcs.bucket}/o/{key}?alt=media", timeout=10) as answer:
                return answer.read()
        except HTTPError as error:
            if error.code == 404:
                return None
            raise
