"""Faults between the plugin and the server, the number of requests, and stores that do not keep their word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from uuid import uuid4

import pytest
from http_between import Asked, Between
from icefield.abc import FileSystem, PutMode
from icefield_gcs.gcs_file_system import GcsFileSystem
from icefield_testing import FileSystemSuite
from servers.gcs import Gcs, Uploads
from store_faults import StoreFaults
from store_requests import StoreRequests


class TestGcsFaults(StoreFaults, StoreRequests):
    prefix = "gcs"
    batch = 100

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

    def is_delete(self, asked: Asked) -> bool:
        return asked.method == "DELETE" or asked.path.startswith("/batch/")

    def is_listing(self, asked: Asked) -> bool:
        return asked.method == "GET" and asked.path.partition("?")[0].endswith("/o")

    def without_condition(self, asked: Asked) -> Asked:
        return replace(asked, path=asked.path.replace("&ifGenerationMatch=0", ""))

    def control(self, between: Between) -> FileSystem:
        return self.system(between)

    def unpublished(self, location: str) -> int:
        return len(self.uploads.arrived)

    def raw_get(self, location: str) -> bytes | None:
        return self.gcs.get(location.removeprefix(f"gs://{self.gcs.bucket}/"))


class Resumable(GcsFileSystem):
    """A plugin that trusts in gcsfs's ``xb``: a resumable upload, whose condition the server ignores."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        with (
            self.translated(location),
            self.fs.open(self.path(location), "xb" if mode is PutMode.CREATE else "wb") as f,
        ):
            f.write(data)


def test_the_suite_finds_that_a_resumable_upload_is_not_conditional(gcs: Gcs) -> None:
    system, root = Resumable({"gcs.service.host": gcs.url, "gcs.no-auth": "true"}), f"gs://{gcs.bucket}/{uuid4().hex}"
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        FileSystemSuite().test_creating_refuses_a_taken_name(system, root)
    with pytest.raises(AssertionError):
        FileSystemSuite().test_one_of_many_creators_wins(system, root)
