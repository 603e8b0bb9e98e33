"""Requests and replies that are lost, holders of locks that die or are paused: no update is lost or made twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import Catalog, Table, load_catalog
from icefield.errors import CommitStateUnknown, IcefieldError, NoSuchTable, StorageError, TableExists
from icefield_hive import locks as locks_module
from icefield_hive import strategy as strategy_module
from icefield_hive.client import Metastore
from icefield_hive.locks import HiveLock, held
from icefield_hive.messages import ALTER_TABLE, FIND_LOCKS, LOCK, UNLOCK
from icefield_hive.strategy import HiveStrategy, record_of
from rpc_between import RpcBetween
from servers.hive import serve_hive

WAITS = {
    "iceberg.hive.lock-check-min-wait-ms": "10",
    "iceberg.hive.lock-check-max-wait-ms": "200",
    "iceberg.hive.lock-timeout-ms": "20000",
}
SCHEMA = pa.schema([("n", pa.int64())])


@pytest.fixture(scope="module")
def between(hive: str) -> Iterator[RpcBetween]:
    with RpcBetween(int(hive.rpartition(":")[2])).open() as relay:
        yield relay


@pytest.fixture
def direct(hive: str, tmp_path: Path) -> Iterator[Catalog]:
    with load_catalog("test", type="hive", uri=hive, warehouse=f"file://{tmp_path}/warehouse", **WAITS) as catalog:
        yield catalog


@pytest.fixture
def faulty(between: RpcBetween, direct: Catalog) -> Iterator[Catalog]:
    """The same catalog through a relay that loses what a test says."""
    given = {**direct.properties, "uri": f"thrift://127.0.0.1:{between.port}"}
    with load_catalog("test", **given) as catalog:
        yield catalog


@pytest.fixture
def table(direct: Catalog) -> Table:
    space = f"f{uuid4().hex[:12]}"
    direct.create_namespace(space)
    quick = {"commit.retry.min-wait-ms": "10", "commit.status-check.min-wait-ms": "20"}
    properties = {**quick, "commit.retry.num-retries": "3"}
    return direct.create_table(f"{space}.t", SCHEMA, properties=properties)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": [*numbers]}, schema=SCHEMA)


def held_by(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow().column("n").to_pylist())


def locks_on(catalog: Catalog, table: Table) -> list[int]:
    database, name = table.name()
    shown = metastore_of(catalog).call(FIND_LOCKS, {"dbname": database, "tablename": name})
    return [lock["lockid"] for lock in shown["locks"]]


def metastore_of(catalog: Catalog) -> Metastore:
    found: Metastore = catalog._backend._metastore  # type: ignore[attr-defined]
    return found


# A process that dies, as by `kill -9`, just before or just after the change of the pointer.
KILLED = """
import json, os, signal, sys
import pyarrow as pa
from icefield import load_catalog
from icefield_hive.strategy import HiveStrategy

properties, name, when = sys.argv[1:]
alter = HiveStrategy._alter

def deadly(*given):
    if when == "after":
        alter(*given)
    os.kill(os.getpid(), signal.SIGKILL)

HiveStrategy._alter = deadly
load_catalog("test", **json.loads(properties)).load_table(name).append(pa.table({"n": [1]}))
"""

CALLS = ["lock", "get_table_req", "alter_table_with_environment_context", "unlock"]


@pytest.mark.spec("COMMIT-18", "COMMIT-01")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("before", [True, False], ids=["request", "reply"])
def test_what_is_said_of_an_append_is_so_when_the_connection_breaks(
    between: RpcBetween, direct: Catalog, faulty: Catalog, table: Table, call: str, before: bool
) -> None:
    seen = faulty.load_table(table.name())
    between.struck = 0
    between.lose(call, before=before)
    try:
        seen.append(rows(1))
    except CommitStateUnknown:
        # Only the request of the change itself, which may still be on its way for all the client knows.
        assert (call, before) == ("alter_table_with_environment_context", True)
        assert held_by(table) == []
    else:
        assert held_by(table) == [1]
    assert between.struck == 1
    table.append(rows(2))  # fails if the lock of the broken commit is in the way
    assert held_by(table)[-1] == 2
    assert locks_on(direct, table) == []


@pytest.mark.spec("COMMIT-18", "COMMIT-30")
@pytest.mark.parametrize("before", [True, False], ids=["request", "reply"])
def test_what_is_said_of_a_creation_is_so_when_the_connection_breaks(
    between: RpcBetween, direct: Catalog, faulty: Catalog, table: Table, before: bool
) -> None:
    name = (table.name()[0], "created")
    between.lose("create_table_with_environment_context", before=before)
    try:
        made = faulty.create_table(name, SCHEMA)
    except CommitStateUnknown:
        assert before
        assert not direct.table_exists(name)
    else:
        assert not before
        assert direct.load_table(name).metadata == made.metadata


@pytest.mark.spec("COMMIT-18")
def test_nothing_is_deleted_when_nobody_answers_any_more(
    between: RpcBetween, direct: Catalog, faulty: Catalog, table: Table
) -> None:
    seen = faulty.load_table(table.name())
    between.lose("alter_table_with_environment_context", then_down=True)
    with pytest.raises(CommitStateUnknown) as caught:
        seen.append(rows(1))
    between._down = False
    assert "no file was deleted" in str(caught.value)
    assert held_by(table) == [1]
    assert table.metadata_location == caught.value.data["location"]


@pytest.mark.spec("COMMIT-18")
def test_a_registration_that_may_have_happened_is_not_to_be_repeated(
    between: RpcBetween, direct: Catalog, faulty: Catalog, table: Table
) -> None:
    name = (table.name()[0], "registered")
    location = table.metadata_location
    direct.drop_table(table.name())
    between.lose("create_table_with_environment_context", then_down=True)
    with pytest.raises(CommitStateUnknown, match="the reply to registering") as caught:
        faulty.register_table(name, location)
    between._down = False
    assert not caught.value.retryable
    assert (caught.value.data["table"], caught.value.data["location"]) == (name, location)
    assert direct.table_exists(name)


@pytest.mark.parametrize("call", ["drop_table", "create_database", "drop_database", "alter_database"])
def test_a_lost_reply_to_another_change_is_said_to_be_lost(
    between: RpcBetween, direct: Catalog, faulty: Catalog, table: Table, call: str
) -> None:
    space = table.name()[0]
    bare = f"{space}_bare"
    direct.create_namespace(bare)
    changes: dict[str, Callable[[], Any]] = {
        "drop_table": lambda: faulty.drop_table(table.name()),
        "create_database": lambda: faulty.create_namespace(f"{space}_new"),
        "drop_database": lambda: faulty.drop_namespace(bare),
        "alter_database": lambda: faulty.update_namespace_properties(bare, updates={"a": "1"}),
    }
    between.lose(call)
    # Whether a table is gone decides whether its files may go: that it is not known is a class of its own.
    raised = (CommitStateUnknown, "was lost") if call == "drop_table" else (StorageError, "not known")
    with pytest.raises(raised[0], match=raised[1]):
        changes[call]()
    done: dict[str, Callable[[], bool]] = {
        "drop_table": lambda: not direct.table_exists(table.name()),
        "create_database": lambda: direct.namespace_exists(f"{space}_new"),
        "drop_database": lambda: not direct.namespace_exists(bare),
        "alter_database": lambda: direct.load_namespace_properties(bare).get("a") == "1",
    }
    deadline = time.monotonic() + 10
    while not done[call]() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert done[call]()


def test_reading_goes_on_with_another_server(hive: str, table: Table, direct: Catalog) -> None:
    given = {**direct.properties, "uri": f"thrift://127.0.0.1:1,{hive}"}
    with load_catalog("test", **given) as catalog:
        catalog.load_table(table.name()).append(rows(7))
    assert held_by(table) == [7]
    with load_catalog("test", **{**given, "uri": "thrift://127.0.0.1:1"}) as nowhere:
        with pytest.raises(StorageError, match=r"no connection to 127\.0\.0\.1:1") as caught:
            nowhere.list_namespaces()
        assert caught.value.retryable


# -- locks


@pytest.mark.spec("COMMIT-01")
def test_a_holder_that_was_paused_past_its_lease_does_not_overwrite(
    table: Table, direct: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = load_catalog("test", **direct.properties).load_table(table.name())
    alter = HiveStrategy._alter
    paused = []

    def after_a_pause(self: HiveStrategy, *given: Any) -> None:
        if not paused:
            paused.append(True)
            for lock in locks_on(direct, table):  # as the metastore does when the lease is over
                metastore_of(direct).call(UNLOCK, {"lockid": lock})
            monkeypatch.setattr("icefield_hive.locks._TURNS", {})  # the other is another process
            outside.append(rows(1))
        alter(self, *given)

    monkeypatch.setattr(HiveStrategy, "_alter", after_a_pause)
    table.append(rows(2))
    assert paused
    assert held_by(table) == [1, 2]
    assert [snapshot.sequence_number for snapshot in table.snapshots()] == [1, 2]


def test_without_the_condition_the_paused_holder_overwrites_so_that_the_test_above_shows_something(
    table: Table, direct: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    alter = HiveStrategy._alter
    monkeypatch.setattr(
        HiveStrategy, "_alter", lambda self, record, context: alter(self, record, strategy_module.KEEP_STATISTICS)
    )
    with pytest.raises(AssertionError):
        test_a_holder_that_was_paused_past_its_lease_does_not_overwrite(table, direct, monkeypatch)


@pytest.fixture(scope="module")
def forgetful() -> Iterator[str]:
    """A metastore that forgets locks whose holders are silent for four seconds."""
    with serve_hive(hive_txn_timeout="4s") as uri:
        yield uri


@pytest.mark.slow
class TestLeases:
    @pytest.fixture
    def catalog(self, forgetful: str, tmp_path: Path) -> Iterator[Catalog]:
        given = {"type": "hive", "uri": forgetful, "warehouse": f"file://{tmp_path}/warehouse", **WAITS}
        with load_catalog("test", **given) as catalog:
            catalog.create_namespace_if_not_exists("db")
            yield catalog

    def test_the_lock_of_a_dead_holder_is_waited_for_and_expires(self, catalog: Catalog) -> None:
        table = catalog.create_table("db.dead", SCHEMA)
        component = {"type": 3, "level": 2, "dbname": "db", "tablename": "dead"}
        request = {"component": [component], "user": "u", "hostname": "h", "agentInfo": "dead"}
        began = time.monotonic()
        metastore_of(catalog).call(LOCK, request)
        table.append(rows(1))
        assert time.monotonic() - began > 2
        assert held_by(table) == [1]

    @pytest.mark.spec("COMMIT-01", "META-01")
    @pytest.mark.parametrize(("when", "left"), [("before", []), ("after", [1])])
    def test_a_process_that_is_killed_with_the_lock_in_hand_leaves_a_version(
        self, catalog: Catalog, when: str, left: list[int]
    ) -> None:
        table = catalog.create_table(f"db.killed_{when}", SCHEMA)
        arguments = [json.dumps(dict(catalog.properties)), ".".join(table.name()), when]
        ended = subprocess.run([sys.executable, "-c", KILLED, *arguments], timeout=120, check=False)
        assert ended.returncode == -signal.SIGKILL
        assert held_by(table) == left
        table.append(rows(2))
        assert held_by(table) == [*left, 2]

    def test_a_holder_that_is_alive_keeps_its_lock(self, catalog: Catalog) -> None:
        table = catalog.create_table("db.alive", SCHEMA)
        beating = Metastore("test", {**catalog.properties, "iceberg.hive.lock-heartbeat-interval-ms": "500"})
        hasty = Metastore("test", {**catalog.properties, "iceberg.hive.lock-timeout-ms": "200"})
        of_another_process = HiveLock(hasty, [("db", "alive")])
        with held(beating, [("db", "alive")]) as lock:
            time.sleep(6)
            lock.ensure_held()
            with pytest.raises(StorageError, match=r"no lock on db\.alive"):
                of_another_process.acquire(lambda: False)
            of_another_process.release()
        table.append(rows(1))
        assert held_by(table) == [1]

    def test_a_holder_whose_heart_stopped_notices(self, catalog: Catalog) -> None:
        catalog.create_table("db.paused", SCHEMA)
        slow = Metastore("test", {**catalog.properties, "iceberg.hive.lock-heartbeat-interval-ms": "2000"})
        with held(slow, [("db", "paused")]) as lock:
            lock._done.set()  # the thread stops, as all do in a process that is paused
            time.sleep(7)
            with pytest.raises(StorageError, match="gave it up"):
                lock.ensure_held()


def test_threads_of_one_process_queue_here_and_not_at_the_metastore(table: Table, direct: Catalog) -> None:
    metastore = metastore_of(direct)
    asked: list[str] = []
    call = metastore.call

    def counted(method: Any, *values: Any) -> Any:
        asked.append(method.name)
        return call(method, *values)

    metastore.call = counted  # type: ignore[method-assign]
    threads = [threading.Thread(target=lambda n=n: held_once(metastore, table, n)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (asked.count("lock"), asked.count("check_lock"), asked.count("unlock")) == (5, 0, 5)


def test_a_turn_is_kept_for_each_of_several_names(direct: Catalog) -> None:
    metastore = metastore_of(direct)
    entered = threading.Event()

    def other(name: str) -> None:
        with locks_module._turns(metastore, [("db", name)]):
            entered.set()

    for name in ("a", "b"):
        entered.clear()
        with locks_module._turns(metastore, [("db", "a"), ("db", "b")]):
            thread = threading.Thread(target=other, args=(name,))
            thread.start()
            assert not entered.wait(0.3)
        assert entered.wait(10)
        thread.join()


def held_once(metastore: Metastore, table: Table, number: int) -> None:
    database, name = table.name()
    with held(metastore, [(database, name)]):
        time.sleep(0.01 * number)


def test_errors_are_in_the_users_words(direct: Catalog, table: Table) -> None:
    space = table.name()[0]
    with pytest.raises(TableExists, match=rf"{space}\.t"):
        direct.create_table(table.name(), SCHEMA)
    direct.drop_table(table.name())
    for call in (lambda: direct.drop_table(table.name()), lambda: table.append(rows(1))):
        with pytest.raises(NoSuchTable) as caught:
            call()
        assert "Thrift" not in str(caught.value)
    assert record_of(metastore_of(direct), table.name()) is None
    assert issubclass(NoSuchTable, IcefieldError)
    assert ALTER_TABLE.name not in str(caught.value)
