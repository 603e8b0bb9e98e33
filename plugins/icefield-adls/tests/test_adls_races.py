"""Many processes commit to a table in a container; and what happens where the store's condition is not kept."""

from __future__ import annotations

from uuid import uuid4

import pytest
from many_writers import check_race
from servers.azure import Azure


def catalog_of(azure: Azure, scheme: str = "az") -> dict[str, str]:
    warehouse = f"{scheme}://{azure.container}/{uuid4().hex}"
    return {"type": "directory", "warehouse": warehouse, "commit": "create", **azure.properties}


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("COMMIT-01", "COMMIT-03", "COMMIT-07", "COMMIT-13", "FS-09", "FS-10", "FS-13", "META-01")
def test_no_commit_of_many_processes_is_lost(azure: Azure) -> None:
    check_race(catalog_of(azure))
