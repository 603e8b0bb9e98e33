"""How tests commit under a lock."""

from __future__ import annotations

from uuid import uuid4

import pytest

# One lock table for all tests of a process: the locks are named after warehouses, and each test has its own.
TABLE = f"locks-{uuid4().hex}"


@pytest.fixture
def lock_properties(dynamodb: dict[str, str]) -> dict[str, str]:
    """Properties with the lock table, and a short lease."""
    quick = {"lock.heartbeat-interval-ms": "500", "lock.heartbeat-timeout-ms": "2000", "lock.acquire-interval-ms": "50"}
    return {**dynamodb, **quick, "lock.table": TABLE}
