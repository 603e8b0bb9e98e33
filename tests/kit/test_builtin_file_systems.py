"""The kernel's own file systems pass the same kit as every plugin's."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import fsspec
import pytest
from fsspec.implementations.http import HTTPFileSystem
from icefield.abc import FileSystem, FileSystemAbility
from icefield.builtin.local import LocalFileSystem
from icefield.builtin.memory import MemoryFileSystem
from icefield.toolkit import FsspecFileSystem
from icefield_testing import FileSystemSuite, RecordingServer
from icefield_testing.file_systems import PlaceChecks


@pytest.mark.spec("FS-02", "FS-06", "FS-09")
class TestLocalFileSystem(FileSystemSuite):
    @pytest.fixture
    def file_system(self) -> FileSystem:
        return LocalFileSystem()

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/root"

    def raw_get(self, location: str) -> bytes | None:
        path = Path(location.removeprefix("file://"))
        return path.read_bytes() if path.is_file() else None

    def raw_put(self, location: str, data: bytes) -> None:
        path = Path(location.removeprefix("file://"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def raw_list(self, prefix: str) -> Collection[str]:
        folder = Path(prefix.removeprefix("file://"))
        return [f"{prefix}/{each.relative_to(folder)}" for each in folder.rglob("*") if each.is_file()]

    def test_a_crash_while_writing_leaves_no_file_under_the_name(self, file_system: FileSystem, root: str) -> None:
        process = os.fork()
        if process == 0:
            sink = file_system.open_output(f"{root}/half")
            sink.write(b"x" * 1000)
            os._exit(9)  # as after kill -9: nothing is cleaned up
        os.waitpid(process, 0)
        assert self.raw_get(f"{root}/half") is None


class TestLocalFileSystemInSmallParts(TestLocalFileSystem):
    """A plugin may write parts that are smaller than the files of the checks."""

    part_size = 64 * 1024


class TestMemoryFileSystem(FileSystemSuite):
    one_process = True

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return MemoryFileSystem()

    @pytest.fixture
    def root(self) -> str:
        return f"memory://kit/{uuid4().hex}"

    def raw_get(self, location: str) -> bytes | None:
        found = MemoryFileSystem.files.get(location)
        return None if found is None else found[0]

    def raw_put(self, location: str, data: bytes) -> None:
        MemoryFileSystem.files[location] = (data, 1_700_000_000_000 + len(MemoryFileSystem.files))

    def raw_list(self, prefix: str) -> Collection[str]:
        return [location for location in MemoryFileSystem.files if location.startswith(f"{prefix}/")]

    def test_listing_states_when_a_file_was_written(self, file_system: FileSystem, root: str) -> None:
        file_system.open_output(f"{root}/f").close()
        (listed,) = file_system.list_files(root)
        assert listed.modified_ms == file_system.stat(f"{root}/f").modified_ms


class FsspecLocal(FsspecFileSystem):
    """A plugin over fsspec, here over fsspec's local files."""

    abilities = frozenset({FileSystemAbility.LIST})

    def connect(self) -> fsspec.AbstractFileSystem:
        return fsspec.filesystem("file", auto_mkdir=True)


class TestFsspecFileSystem(TestLocalFileSystem):
    @pytest.fixture
    def file_system(self) -> FileSystem:
        return FsspecLocal()


class FsspecWeb(FsspecFileSystem):
    """A plugin over fsspec's file system of URLs, which connects to the host of each URL and sends one token to all."""

    def connect(self) -> fsspec.AbstractFileSystem:
        headers = {"Authorization": f"Bearer {self.properties.get('web.token')}"}
        return HTTPFileSystem(client_kwargs={"headers": headers})


class TestFsspecFileSystemOfUrls(PlaceChecks):
    """No HTTP server stores files here, so the suite checks only the hosts to which locations lead."""

    credentials: ClassVar = ({"web.token": "{secret}"},)

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return FsspecWeb()

    @pytest.fixture
    def root(self) -> Iterator[str]:
        with RecordingServer() as own:
            yield f"http://{own.host}:{own.port}/root"

    def foreign_location(self, host: str, port: int) -> str | None:
        return f"http://{host}:{port}/foreign/file"

    def raw_get(self, location: str) -> bytes | None:
        return None
