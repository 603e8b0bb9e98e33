"""The plugin passes the kit on a server."""

from __future__ import annotations

from uuid import uuid4

import pytest
from icefield.abc import CommitStrategy, FileSystem
from icefield.builtin.create import CreateStrategy
from icefield.testing import CommitStrategySuite, FileSystemSuite
from icefield_s3.s3_file_system import S3FileSystem
from servers.s3 import S3


class OnServer:
    """A bucket that is written and read without the plugin."""

    @pytest.fixture(autouse=True)
    def server(self, s3: S3) -> None:
        self.s3 = s3

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return S3FileSystem(self.s3.properties)

    @pytest.fixture
    def root(self) -> str:
        return f"s3://{self.s3.bucket}/{uuid4().hex}"

    @pytest.fixture
    def location(self, root: str) -> str:
        return f"{root}/db/t"

    def raw_get(self, location: str) -> bytes | None:
        return self.s3.get(location.split("/", 3)[3])

    def raw_put(self, location: str, data: bytes) -> None:
        self.s3.put(location.split("/", 3)[3], data)


@pytest.mark.spec("FS-04", "FS-05", "FS-06", "FS-10")
class TestS3(OnServer, FileSystemSuite):
    pass


class TestS3WithoutConditionalPut(OnServer, FileSystemSuite):
    @pytest.fixture
    def file_system(self) -> FileSystem:
        return S3FileSystem({**self.s3.properties, "s3.conditional-put": "false"})


@pytest.mark.spec("COMMIT-01", "COMMIT-02", "FS-13", "FS-14", "META-33")
class TestCreateOnS3(OnServer, CommitStrategySuite):
    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return CreateStrategy(("db", "t"), location, file_system)
