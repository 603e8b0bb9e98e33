"""The Hive Metastore passes the kit: the catalog, and the strategy of its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

import pytest
from icefield import FileIO, LocalFileSystem, Plugins
from icefield.abc import CatalogBackend, CommitStrategy, FileSystem, Proposal
from icefield.toolkit import Backoff
from icefield_hive.backend import HiveBackend
from icefield_hive.client import Metastore
from icefield_hive.locks import HiveLock
from icefield_hive.strategy import KEEP_STATISTICS, HiveStrategy
from icefield_hive.structs import Record
from icefield_testing import CatalogSuite, CommitStrategySuite, LossyProxy, RequestFaults
from servers.hive import drop_databases

# A loaded machine takes longer to back off than the waits that suit a busy metastore.
WAITS = {"iceberg.hive.lock-check-min-wait-ms": "10", "iceberg.hive.lock-check-max-wait-ms": "200"}


class TestHiveCatalog(CatalogSuite):
    listing_page = 10
    # Seen in 15 of 18,000 reads beside a writer, each change one transaction of the metastore.
    namespaces_read_by_rows = True  # by Derby, the metastore's database here
    locks_expire = True  # by the metastore's ``hive.txn.timeout``
    namespaces_of_the_store: ClassVar = frozenset({("default",)})
    time_out_properties: ClassVar = {"hive.metastore.client.socket.timeout": "1"}
    properties_of_the_store: ClassVar = frozenset(
        {"location", "hive.metastore.database.owner", "hive.metastore.database.owner-type"}
    )

    @pytest.fixture(autouse=True)
    def looks_soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The strategy waits less between its looks for the outcome of a change whose reply was lost."""
        monkeypatch.setattr("icefield_hive.strategy._LOOK_AGAIN", Backoff(0.01, 0.1, jitter=0))

    @pytest.fixture
    def backend(self, hive: str, tmp_path: Path) -> Iterator[CatalogBackend]:
        properties = {"uri": hive, "warehouse": f"file://{tmp_path}/warehouse", **WAITS}
        made = HiveBackend("test", properties, FileIO(Plugins.installed(), properties))
        drop_databases(hive)
        yield made
        drop_databases(hive)
        made.close()

    @pytest.fixture
    def service(self, hive: str) -> Iterator[LossyProxy]:
        with LossyProxy(int(hive.rpartition(":")[2])) as proxy:
            yield proxy

    def backend_through(self, service: RequestFaults, backend: CatalogBackend) -> CatalogBackend:
        assert isinstance(service, LossyProxy)
        soon = {f"iceberg.hive.lock-creation-{name}-ms": "200" for name in ("timeout", "min-wait", "max-wait")}
        properties = {**backend.properties, **soon, "uri": f"thrift://127.0.0.1:{service.port}"}
        return HiveBackend("test", properties, FileIO(Plugins.installed(), properties))


@pytest.mark.spec("COMMIT-01", "COMMIT-05", "FS-10", "META-34")
class TestHiveStrategy(CommitStrategySuite):
    time_out_properties: ClassVar = TestHiveCatalog.time_out_properties
    lease_seconds = 300.0  # the metastore forgets a lock without heartbeats after five minutes

    @pytest.fixture
    def file_system(self) -> FileSystem:
        return LocalFileSystem()

    @pytest.fixture
    def metastore(self, hive: str) -> Iterator[Metastore]:
        made = Metastore("test", {"uri": hive, **WAITS})
        yield made
        made.close()

    @pytest.fixture(autouse=True)
    def shared(self, metastore: Metastore) -> None:
        type(self).metastore_of_all = metastore

    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/warehouse/t"

    metastore_of_all: ClassVar[Metastore]

    @pytest.fixture
    def service(self, hive: str) -> Iterator[LossyProxy]:
        with LossyProxy(int(hive.rpartition(":")[2])) as proxy:
            soon = {f"iceberg.hive.lock-creation-{name}-ms": "200" for name in ("timeout", "min-wait", "max-wait")}
            given = {"uri": f"thrift://127.0.0.1:{proxy.port}", **WAITS, **soon}
            self.metastore_behind = Metastore("test", given)
            self.hasty_metastore = Metastore("test", {**given, **self.time_out_properties})
            yield proxy
            self.metastore_behind.close()
            self.hasty_metastore.close()

    def strategy_through(self, service: RequestFaults, file_system: FileSystem, location: str) -> CommitStrategy:
        return HiveStrategy(("default", name_of(location)), location, file_system, {}, self.metastore_behind)

    def strategy_in_haste(self, service: RequestFaults, file_system: FileSystem, location: str) -> CommitStrategy:
        return HiveStrategy(("default", name_of(location)), location, file_system, {}, self.hasty_metastore)

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return HiveStrategy(("default", name_of(location)), location, file_system, {}, self.metastore_of_all)


class PlainStrategy(HiveStrategy):
    """Looks first and alters then: neither the lock nor the condition."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        lock = HiveLock(self._metastore, [])
        return self._create(lock, new, proposal) if old is None else self._update(lock, old, new, proposal)

    def _alter(self, record: Record, context: Mapping[str, str]) -> None:
        super()._alter(record, KEEP_STATISTICS)


@pytest.mark.spec("COMMIT-01")
def test_the_kit_finds_what_the_lock_and_the_condition_are_for(hive: str, tmp_path: Path) -> None:
    class Plain(TestHiveStrategy):
        metastore_of_all = Metastore("test", {"uri": hive})
        max_wait_seconds = 30.0

        def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
            return PlainStrategy(("default", name_of(location)), location, file_system, {}, self.metastore_of_all)

    # The racers lose updates, or never get through since one of them overwrote what another had in hand.
    with pytest.raises(AssertionError):
        Plain().test_no_update_of_many_writers_is_lost(LocalFileSystem(), f"file://{tmp_path}/plain")


def name_of(location: str) -> str:
    """A table's name, another for each location."""
    return f"t{sha256(location.encode()).hexdigest()[:16]}"
