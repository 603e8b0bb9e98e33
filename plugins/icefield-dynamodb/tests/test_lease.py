"""The lock: its items, its lease, and how it is taken over."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from icefield.errors import CommitFailed, InvalidArgument, StorageError
from icefield_dynamodb.items import ItemTable, ReplyLost
from icefield_dynamodb.lease import Lease, entity_of
from icefield_dynamodb.options import ClientOptions, LockOptions

ENTITY = "s3a://lake/wh/db/t/metadata/v6.metadata.json"


@pytest.fixture
def locks(lock_properties: dict[str, str]) -> ItemTable:
    return ItemTable.of(ClientOptions.of(lock_properties), lock_properties["lock.table"])


def lease(locks: ItemTable, owner: str, **properties: str) -> Lease:
    times = {"heartbeat-interval-ms": "50", "heartbeat-timeout-ms": "300", "acquire-timeout-ms": "20000"}
    given = {f"lock.{name.replace('_', '-')}": value for name, value in {**times, **properties}.items()}
    return Lease(locks, LockOptions.of({"lock.table": locks.name, **given}), ENTITY, owner)


@contextmanager
def held(one: Lease) -> Iterator[None]:
    assert one.acquire(lambda: False)
    with one:
        yield


def put_as_java_does(locks: ItemTable, owner: str, version: str, lease_ms: int) -> None:
    item = {"entityId": ENTITY, "ownerId": owner, "version": version, "leaseDurationMs": str(lease_ms)}
    assert locks.put(item, numbers=("leaseDurationMs",))


def test_a_lock_is_an_item_as_the_java_lock_manager_writes_it(locks: ItemTable) -> None:
    with held(lease(locks, "s3a://lake/wh/db/t/metadata/tmp.metadata.json")):
        found = locks._client.get_item(TableName=locks.name, Key={"entityId": {"S": ENTITY}})["Item"]
        assert set(found) == {"entityId", "ownerId", "version", "leaseDurationMs"}
        assert found["ownerId"] == {"S": "s3a://lake/wh/db/t/metadata/tmp.metadata.json"}
        assert found["leaseDurationMs"] == {"N": "300"}
        assert len(found["version"]["S"]) == 36
    assert locks.read(ENTITY) is None


def test_a_second_waits_until_the_first_lets_go(locks: ItemTable) -> None:
    order = []

    def second() -> None:
        with held(lease(locks, "second")):
            order.append("second")

    with held(lease(locks, "first")):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(1.0)  # three leases long: the heartbeats keep it
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_lock_whose_holder_is_silent_is_taken_over_after_its_lease(locks: ItemTable) -> None:
    put_as_java_does(locks, "dead", "11111111-1111-1111-1111-111111111111", 600)
    began = time.monotonic()
    with held(lease(locks, "heir")):
        assert time.monotonic() - began >= 0.6
        assert (locks.read(ENTITY) or {})["ownerId"] == "heir"


def test_a_holder_that_speaks_now_and_then_is_not_taken_over(locks: ItemTable) -> None:
    put_as_java_does(locks, "slow", "first", 500)
    stop = threading.Event()

    def speak() -> None:
        beat = 0
        while not stop.wait(0.2):
            beat += 1
            item = {"entityId": ENTITY, "ownerId": "slow", "version": str(beat), "leaseDurationMs": "500"}
            locks.put(item, numbers=("leaseDurationMs",), expected={"ownerId": "slow"})

    thread = threading.Thread(target=speak)
    thread.start()
    try:
        with pytest.raises(CommitFailed, match="held by slow"):
            lease(locks, "other", acquire_timeout_ms="1500").acquire(lambda: False)
    finally:
        stop.set()
        thread.join()


def test_waiting_ends_when_it_has_become_pointless(locks: ItemTable) -> None:
    with held(lease(locks, "first")):
        assert not lease(locks, "second").acquire(lambda: True)


def test_waiting_ends_though_nobody_holds_the_lock_and_no_write_is_answered(
    locks: ItemTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unanswered(*_: object, **__: object) -> bool:
        raise ReplyLost("test")

    monkeypatch.setattr(ItemTable, "put", unanswered)
    with pytest.raises(CommitFailed, match="nobody holds it"):
        lease(locks, "first", acquire_timeout_ms="200").acquire(lambda: False)


def test_a_lock_that_was_taken_over_is_neither_taken_back_nor_released(locks: ItemTable) -> None:
    paused = lease(locks, "paused", heartbeat_interval_ms="100", heartbeat_timeout_ms="101")
    with held(paused):
        locks.delete(ENTITY, {"ownerId": "paused"})
        put_as_java_does(locks, "heir", "v", 60_000)
        time.sleep(0.4)
        assert (locks.read(ENTITY) or {})["ownerId"] == "heir"
    assert (locks.read(ENTITY) or {})["ownerId"] == "heir"


def test_many_take_turns(locks: ItemTable) -> None:
    inside, most, done = [], [], []

    def work(number: int) -> None:
        with held(lease(locks, f"owner-{number}", heartbeat_timeout_ms="5000")):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.01)
            inside.remove(number)
        done.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(10))
    assert max(most) == 1


def test_a_local_path_is_named_as_hadoop_names_it() -> None:
    assert entity_of("file:///wh/t/metadata/v1.metadata.json") == "file:/wh/t/metadata/v1.metadata.json"
    assert entity_of("s3://b/t/metadata/v1.metadata.json") == "s3://b/t/metadata/v1.metadata.json"


def test_the_lock_table_is_made_by_whoever_is_first(lock_properties: dict[str, str]) -> None:
    options = ClientOptions.of(lock_properties)
    made: list[bool] = []

    def use() -> None:
        made.append(ItemTable.of(options, "made-once").put({"entityId": str(len(made)), "a": "b"}) is not None)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [True] * 8


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "lock.table"),
        ({"lock.table": "t", "lock.heartbeat-timeout-ms": "soon"}, "lock.heartbeat-timeout-ms"),
        ({"lock.table": "t", "lock.acquire-timeout-ms": "-1"}, "lock.acquire-timeout-ms"),
        ({"lock.table": "t", "lock.heartbeat-interval-ms": "15000"}, "every lease runs out"),
    ],
)
def test_a_wrong_property_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        LockOptions.of(given)


def test_a_server_that_cannot_be_reached_is_an_error_in_time_and_states_no_secret(
    lock_properties: dict[str, str],
) -> None:
    lost = {**lock_properties, "dynamodb.endpoint": "http://127.0.0.1:9"}
    options = ClientOptions.of(lost)
    assert "planted-secret" not in repr(options)
    began = time.monotonic()
    with pytest.raises(StorageError, match=r"dynamodb\.endpoint") as caught:
        ItemTable.of(options, "t")
    assert caught.value.retryable
    assert time.monotonic() - began < 40
    assert "planted-secret" not in str(caught.value)
