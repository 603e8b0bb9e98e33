"""A lock table for each test, and storage without any fence."""

from __future__ import annotations

from uuid import uuid4

import pytest
from icefield import LocalFileSystem
from icefield.abc import FileSystemAbility, PutMode
from icefield.errors import UnsupportedFeature


class BareFileSystem(LocalFileSystem):
    """Local disks as a store with neither an atomic create nor an atomic rename."""

    abilities = frozenset({FileSystemAbility.LIST})

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is PutMode.CREATE:
            raise UnsupportedFeature("this storage cannot create atomically")
        super().put(location, data, mode)

    def rename(self, source: str, target: str) -> None:
        raise UnsupportedFeature("this storage cannot rename")


@pytest.fixture
def lock_properties(dynamodb: dict[str, str]) -> dict[str, str]:
    """Properties with a lock table of the test's own, and a short lease."""
    quick = {"lock.heartbeat-interval-ms": "100", "lock.heartbeat-timeout-ms": "400", "lock.acquire-interval-ms": "50"}
    return {**dynamodb, **quick, "lock.table": f"locks-{uuid4().hex}"}
