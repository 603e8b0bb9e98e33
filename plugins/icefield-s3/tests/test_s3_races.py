"""Many processes commit to a table in a bucket; and to one in a store that does not keep the condition."""

from __future__ import annotations

from uuid import uuid4

import pytest
from many_writers import check_race
from servers.s3 import S3


def catalog_of(s3: S3, commit: str, **more: str) -> dict[str, str]:
    warehouse = f"s3://{s3.bucket}/{uuid4().hex}"
    return {"type": "directory", "warehouse": warehouse, "commit": commit, **s3.properties, **more}


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("COMMIT-01", "COMMIT-03", "COMMIT-07", "COMMIT-13", "FS-09", "FS-10", "FS-13", "META-01")
def test_no_commit_of_many_processes_is_lost(s3: S3) -> None:
    check_race(catalog_of(s3, "create"))


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("COMMIT-01", "COMMIT-03", "FS-09")
def test_no_commit_of_many_processes_is_lost_under_a_lock(s3: S3, lock_properties: dict[str, str]) -> None:
    lease = {"lock.heartbeat-timeout-ms": "5000", "lock.heartbeat-interval-ms": "1000"}
    check_race(catalog_of(s3, "dynamodb-lock", **{**lock_properties, **lease}))
