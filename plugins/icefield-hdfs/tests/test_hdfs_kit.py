"""The plugin passes the kit on a real name node and data nodes, by Hadoop's protocol and over WebHDFS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar
from uuid import uuid4

import pytest
from icefield import Plugins
from icefield.abc import CommitStrategy, FileSystem
from icefield.toolkit import Backoff
from icefield_hdfs.hadoop_file_system import path_of
from icefield_hdfs.hdfs_file_system import HdfsFileSystem
from icefield_hdfs.web_file_system import WebHdfsFileSystem
from icefield_testing import CommitStrategySuite, FileSystemSuite, LossyProxy
from servers.hdfs import Hdfs, list_around, read_around, write_around


class OnHdfs:
    """A folder of the cluster, by Hadoop's protocol."""

    listing_page = 60  # see ``dfs.ls.limit`` of the cluster
    delete_page = 1
    fail_fast: ClassVar = {"hadoop.dfs.client.failover.max.attempts": "1"}

    kind: ClassVar[type[FileSystem]] = HdfsFileSystem

    @pytest.fixture(autouse=True)
    def server(self, hdfs: Hdfs) -> None:
        self.hdfs = hdfs

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return self.kind({})

    @pytest.fixture
    def root(self) -> Iterator[str]:
        with LossyProxy(self.hdfs.rpc_port) as self.proxy:
            yield f"hdfs://127.0.0.1:{self.proxy.port}/{uuid4().hex}"

    @contextmanager
    def outage(self, file_system: FileSystem) -> Iterator[None]:
        """No name node answers. Its connections are those of every file system of the process."""
        self.proxy.arm(lambda number: "lose-request")
        try:
            yield
        finally:
            self.proxy.disarm()

    @pytest.fixture
    def location(self, root: str) -> str:
        return f"{root}/db/t"

    def raw_get(self, location: str) -> bytes | None:
        # HDFS takes two slashes for one, which this way around the plugin refuses.
        return read_around(self.hdfs, path_of(location).replace("//", "/"))

    def raw_put(self, location: str, data: bytes) -> None:
        write_around(self.hdfs, path_of(location), data)

    def raw_list(self, prefix: str) -> list[str]:
        folder = path_of(prefix)
        return [f"{prefix}{path.removeprefix(folder)}" for path in list_around(self.hdfs, folder)]


class OverWebHdfs(OnHdfs):
    """A folder of the cluster, over WebHDFS."""

    kind = WebHdfsFileSystem

    @pytest.fixture(autouse=True)
    def gives_up_soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The plugin repeats a request four times; what it waits in between shows nothing."""
        monkeypatch.setattr("icefield_hdfs.web._RETRIES", 1)
        monkeypatch.setattr("icefield_hdfs.web._BACKOFF", Backoff(0.01, 0.1))

    @pytest.fixture
    def root(self) -> Iterator[str]:
        with LossyProxy(self.hdfs.http_port) as self.proxy:
            yield f"webhdfs://127.0.0.1:{self.proxy.port}/{uuid4().hex}"


class BehindTheProxy(FileSystemSuite):
    proxy: LossyProxy

    @pytest.fixture
    def service(self, root: str) -> LossyProxy:
        return self.proxy


@pytest.mark.spec("FS-02", "FS-06", "FS-09")
class TestHdfs(OnHdfs, BehindTheProxy):
    time_out_properties: ClassVar = {"hdfs.timeout": "1"}
    credentials: ClassVar = ({"hdfs.kerberos-principal": "{secret}"}, {"hdfs.kerberos-keytab": "/{secret}"})

    def foreign_location(self, host: str, port: int) -> str | None:
        return f"hdfs://{host}:{port}/foreign/file"


@pytest.mark.spec("FS-02", "FS-06", "FS-09")
class TestWebHdfs(OverWebHdfs, BehindTheProxy):
    time_out_properties: ClassVar = {"webhdfs.timeout": "1"}
    credentials: ClassVar = ({"webhdfs.token": "{secret}"},)

    def foreign_location(self, host: str, port: int) -> str | None:
        return f"webhdfs://{host}:{port}/foreign/file"


class RenamesOnHdfs(CommitStrategySuite):
    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return Plugins.installed().commit_strategy("rename")(("db", "t"), location, file_system)


@pytest.mark.spec("COMMIT-01", "COMMIT-02", "COMMIT-04", "FS-09", "FS-13", "FS-14", "META-33")
class TestRenameOnHdfs(OnHdfs, RenamesOnHdfs):
    @pytest.fixture
    def root(self) -> str:
        return f"{self.hdfs.url}/{uuid4().hex}"


@pytest.mark.slow
@pytest.mark.spec("COMMIT-01", "COMMIT-02", "FS-09", "FS-13")
class TestRenameOverWebHdfs(OverWebHdfs, RenamesOnHdfs):
    @pytest.fixture
    def root(self) -> str:
        return f"{self.hdfs.web_url}/{uuid4().hex}"
