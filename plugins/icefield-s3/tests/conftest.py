"""A lock table for each test that commits under a lock."""

from __future__ import annotations

from uuid import uuid4

import pytest


@pytest.fixture
def lock_properties(dynamodb: dict[str, str]) -> dict[str, str]:
    """Properties with a lock table of the test's own, and a short lease."""
    quick = {"lock.heartbeat-interval-ms": "500", "lock.heartbeat-timeout-ms": "2000", "lock.acquire-interval-ms": "50"}
    return {**dynamodb, **quick, "lock.table": f"locks-{uuid4().hex}"}
