"""The kit on a file system over obstore, written from the documentation alone."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from authors.objects.in_place import InPlace
from authors.objects.object_stores import ObjectFileSystem
from icefield.abc import FileSystem
from icefield_testing import FileSystemSuite


class TestObjectsInAFolder(FileSystemSuite):
    survives_fork = False  # the threads of obstore do not

    @pytest.fixture
    def file_system(self, tmp_path: Path) -> FileSystem:
        self.folder = tmp_path
        return ObjectFileSystem({"objects.url": tmp_path.as_uri()})

    @pytest.fixture
    def root(self) -> str:
        return "objects://wh"

    def place(self, location: str) -> Path:
        return Path(self.folder, location.partition("://")[2])

    def raw_get(self, location: str) -> bytes | None:
        return self.place(location).read_bytes() if self.place(location).is_file() else None

    def raw_put(self, location: str, data: bytes) -> None:
        self.place(location).parent.mkdir(parents=True, exist_ok=True)
        self.place(location).write_bytes(data)


class NotForked(TestObjectsInAFolder):
    """The suite on a file system that is broken on purpose."""

    __test__ = False


def test_what_a_fresh_interpreter_leaves_half_when_it_dies_is_found(tmp_path: Path) -> None:
    suite = NotForked()
    suite.folder = tmp_path
    broken = InPlace({"objects.url": tmp_path.as_uri()})
    with pytest.raises(AssertionError, match=r"a process that died \(-\d+\) left \d+ bytes of 262144"):
        suite.test_a_process_that_dies_while_it_writes_leaves_no_part(broken, "objects://wh")


def test_a_plugin_that_a_fresh_interpreter_cannot_import_fails_the_check(tmp_path: Path) -> None:
    suite = NotForked()
    suite.folder = tmp_path
    unknown = type("Unknown", (InPlace,), {"__module__": "no_such_module"})
    sys.modules["no_such_module"] = SimpleNamespace(Unknown=unknown)  # type: ignore[assignment]
    try:
        with pytest.raises(AssertionError, match="a fresh interpreter cannot load the file system"):
            suite.test_a_process_that_dies_while_it_writes_leaves_no_part(
                unknown({"objects.url": tmp_path.as_uri()}), "objects://wh"
            )
    finally:
        del sys.modules["no_such_module"]
