"""Tables of a Hive Metastore behave as those of every other catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from icefield import Catalog, load_catalog
from icefield_testing import TableBehaviourSuite

WAITS = {"iceberg.hive.lock-check-min-wait-ms": "10", "iceberg.hive.lock-check-max-wait-ms": "200"}


class TestHive(TableBehaviourSuite):
    @pytest.fixture
    def catalog(self, hive: str, tmp_path: Path) -> Iterator[Catalog]:
        with load_catalog("test", type="hive", uri=hive, warehouse=f"file://{tmp_path}/warehouse", **WAITS) as catalog:
            yield catalog
