"""The plugin passes the kit on a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar
from uuid import uuid4

import pytest
from icefield import Plugins
from icefield.abc import CommitStrategy, FileSystem
from icefield_s3.s3_file_system import S3FileSystem
from icefield_testing import CommitStrategySuite, FileSystemSuite, LossyProxy
from object_stores import EntityTags
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

    def raw_list(self, prefix: str) -> list[str]:
        return [f"s3://{self.s3.bucket}/{key}" for key in self.s3.keys(f"{prefix.split('/', 3)[3]}/")]


@pytest.mark.spec("FS-04", "FS-05", "FS-06", "FS-10")
class TestS3(OnServer, EntityTags, FileSystemSuite):
    fail_fast: ClassVar = {"s3.retry.num-retries": "0"}
    time_out_properties: ClassVar = {"s3.connect-timeout": "1", "s3.request-timeout": "1"}

    @pytest.fixture
    def service(self, s3: S3) -> Iterator[LossyProxy]:
        with LossyProxy(int(s3.url.rpartition(":")[2])) as proxy:
            yield proxy

    def file_system_through(self, service: LossyProxy, file_system: FileSystem) -> FileSystem:
        return S3FileSystem({**file_system.properties, "s3.endpoint": f"http://127.0.0.1:{service.port}"})

    credentials: ClassVar = tuple(
        {f"{of}.access-key-id": "known", f"{of}.secret-access-key": "{secret}", f"{of}.session-token": "{secret}"}
        for of in ("s3", "client")
    )

    def raw_unfinished(self, prefix: str) -> list[str]:
        return self.s3.uploads(f"{prefix.split('/', 3)[3]}/")

    def foreign_location(self, host: str, port: int) -> str | None:
        return "s3://arn:aws:s3-outposts:us-east-1:123456789012:outpost:op-1:accesspoint:foreign/file"

    def foreign_properties(self, host: str, port: int) -> Mapping[str, str]:
        # A location names a bucket, which may lead to another host of Amazon's: a proxy stands before all of them.
        return {"s3.proxy-uri": f"http://{host}:{port}", "s3.endpoint": ""}


class TestS3WithoutConditionalPut(OnServer, FileSystemSuite):
    fail_fast: ClassVar = TestS3.fail_fast
    listing_page = 10  # the pages of the store are listed above

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return S3FileSystem({**self.s3.properties, "s3.conditional-put": "false"})


@pytest.mark.spec("COMMIT-01", "COMMIT-02", "FS-13", "FS-14", "META-33")
class TestCreateOnS3(OnServer, CommitStrategySuite):
    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return Plugins.installed().commit_strategy("create")(("db", "t"), location, file_system)
