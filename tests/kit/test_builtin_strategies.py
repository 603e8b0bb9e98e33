"""The kernel's own strategies pass the kit."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from icefield.abc import CommitStrategy, FileSystem
from icefield.builtin.local import LocalFileSystem
from icefield.builtin.memory import MemoryFileSystem
from icefield.builtin.strategies import CreateStrategy, RenameStrategy
from icefield_testing import CommitStrategySuite


class OnLocalDisk(CommitStrategySuite):
    @pytest.fixture
    def file_system(self) -> FileSystem:
        return LocalFileSystem()

    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/db/t"


@pytest.mark.spec("COMMIT-01", "COMMIT-02", "COMMIT-04", "FS-09", "FS-13", "FS-14", "META-33")
class TestRename(OnLocalDisk):
    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return RenameStrategy(("db", "t"), location, file_system)


@pytest.mark.spec("COMMIT-01", "COMMIT-02", "FS-13", "FS-14", "META-33")
class TestCreate(OnLocalDisk):
    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return CreateStrategy(("db", "t"), location, file_system)


class TestCreateInMemory(CommitStrategySuite):
    one_process = True

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return MemoryFileSystem()

    @pytest.fixture
    def location(self) -> str:
        return f"memory://kit/{uuid4().hex}"

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return CreateStrategy(("db", "t"), location, file_system)
