"""Many processes commit to a table in a bucket; and what happens where the store's condition is not kept."""

from __future__ import annotations

from uuid import uuid4

import pytest
from many_writers import check_race
from servers.gcs import Gcs


def catalog_of(gcs: Gcs, scheme: str = "gs") -> dict[str, str]:
    warehouse = f"{scheme}://{gcs.bucket}/{uuid4().hex}"
    return {"type": "directory", "warehouse": warehouse, "commit": "create", **gcs.properties}


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("COMMIT-01", "COMMIT-03", "COMMIT-07", "COMMIT-13", "FS-09", "FS-10", "FS-13", "META-01")
def test_no_commit_of_many_processes_is_lost(gcs: Gcs) -> None:
    check_race(catalog_of(gcs))
