"""The Hive Metastore passes the kit: the catalog, and the strategy of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

import pytest
from icefield import Plugins
from icefield.abc import CatalogBackend, CommitStrategy, FileSystem
from icefield.builtin.local import LocalFileSystem
from icefield.file_io import FileIO
from icefield.testing import CatalogSuite, CommitStrategySuite
from icefield_hive.backend import HiveBackend
from icefield_hive.client import Metastore
from icefield_hive.strategy import HiveStrategy
from servers.hive import drop_databases

# A loaded machine takes longer to back off than the waits that suit a busy metastore.
WAITS = {"iceberg.hive.lock-check-min-wait-ms": "10", "iceberg.hive.lock-check-max-wait-ms": "200"}


class TestHiveCatalog(CatalogSuite):
    namespaces_of_the_store: ClassVar = frozenset({("default",)})
    properties_of_the_store: ClassVar = frozenset(
        {"location", "hive.metastore.database.owner", "hive.metastore.database.owner-type"}
    )

    @pytest.fixture
    def backend(self, hive: str, tmp_path: Path) -> Iterator[CatalogBackend]:
        properties = {"uri": hive, "warehouse": f"file://{tmp_path}/warehouse", **WAITS}
        made = HiveBackend("test", properties, FileIO(Plugins.installed(), properties))
        drop_databases(hive)
        yield made
        drop_databases(hive)
        made.close()


@pytest.mark.spec("COMMIT-01", "COMMIT-05", "FS-10", "META-34")
class TestHiveStrategy(CommitStrategySuite):
    @pytest.fixture
    def file_system(self) -> FileSystem:
        return LocalFileSystem()

    @pytest.fixture
    def metastore(self, hive: str) -> Iterator[Metastore]:
        made = Metastore("test", {"uri": hive, **WAITS})
        yield made
        made.close()

    @pytest.fixture
    def location(self, tmp_path: Path, metastore: Metastore) -> str:
        type(self).metastore_of_all = metastore
        return f"file://{tmp_path}/warehouse/t"

    metastore_of_all: ClassVar[Metastore]

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        name = f"t{sha256(location.encode()).hexdigest()[:16]}"
        return HiveStrategy(("default", name), location, file_system, {}, self.metastore_of_all)
