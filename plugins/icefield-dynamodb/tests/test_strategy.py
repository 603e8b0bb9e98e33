"""The strategy under the kit, with each fence."""

from __future__ import annotations

from pathlib import Path

import pytest
from icefield.abc import CommitStrategy, FileSystem
from icefield.builtin.local import LocalFileSystem
from icefield.testing import CommitStrategySuite
from icefield_dynamodb.strategy import DynamoDbLockStrategy

from .conftest import BareFileSystem


class _OnDisk(CommitStrategySuite):
    system: type[FileSystem]

    @pytest.fixture(autouse=True)
    def reach(self, lock_properties: dict[str, str]) -> None:
        self.properties = lock_properties

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return self.system({})

    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/t"

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return DynamoDbLockStrategy(("db", "t"), location, file_system, self.properties)


class TestFencedByTheStore(_OnDisk):
    system = LocalFileSystem


class TestDecidedByItems(_OnDisk):
    system = BareFileSystem
