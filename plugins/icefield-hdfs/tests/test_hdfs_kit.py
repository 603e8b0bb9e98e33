"""The plugin passes the kit on a real name node and data nodes, by Hadoop's protocol and over WebHDFS."""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

import pytest
from icefield.abc import CommitStrategy, FileSystem
from icefield.builtin.rename import RenameStrategy
from icefield.testing import CommitStrategySuite, FileSystemSuite
from icefield_hdfs.hadoop_file_system import path_of
from icefield_hdfs.hdfs_file_system import HdfsFileSystem
from icefield_hdfs.web_file_system import WebHdfsFileSystem
from servers.hdfs import Hdfs, read_around, write_around


class OnHdfs:
    """A folder of the cluster, by Hadoop's protocol."""

    kind: ClassVar[type[FileSystem]] = HdfsFileSystem

    @pytest.fixture(autouse=True)
    def server(self, hdfs: Hdfs) -> None:
        self.hdfs = hdfs

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return self.kind({})

    @pytest.fixture
    def root(self) -> str:
        return f"{self.hdfs.url}/{uuid4().hex}"

    @pytest.fixture
    def location(self, root: str) -> str:
        return f"{root}/db/t"

    def raw_get(self, location: str) -> bytes | None:
        return read_around(self.hdfs, path_of(location))

    def raw_put(self, location: str, data: bytes) -> None:
        write_around(self.hdfs, path_of(location), data)


class OverWebHdfs(OnHdfs):
    """A folder of the cluster, over WebHDFS."""

    kind = WebHdfsFileSystem

    @pytest.fixture
    def root(self) -> str:
        return f"{self.hdfs.web_url}/{uuid4().hex}"


@pytest.mark.spec("FS-02", "FS-06", "FS-09")
class TestHdfs(OnHdfs, FileSystemSuite):
    pass


@pytest.mark.spec("FS-02", "FS-06", "FS-09")
class TestWebHdfs(OverWebHdfs, FileSystemSuite):
    pass


class RenamesOnHdfs(CommitStrategySuite):
    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return RenameStrategy(("db", "t"), location, file_system)


@pytest.mark.spec("COMMIT-01", "COMMIT-02", "COMMIT-04", "FS-09", "FS-13", "FS-14", "META-33")
class TestRenameOnHdfs(OnHdfs, RenamesOnHdfs):
    pass


@pytest.mark.slow
@pytest.mark.spec("COMMIT-01", "COMMIT-02", "FS-09", "FS-13")
class TestRenameOverWebHdfs(OverWebHdfs, RenamesOnHdfs):
    pass
