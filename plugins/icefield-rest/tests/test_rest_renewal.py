"""Vended keys that end in the middle of a scan or a commit are renewed ahead of their end, once for all."""

from __future__ import annotations

import json
import pickle
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import Catalog, load_catalog
from icefield.errors import IcefieldError, StorageError
from icefield.scan import read_tasks
from icefield_rest.held import SharedProperties, held_for
from icefield_rest_server import Settings, app
from icefield_rest_server.tokens import Principal
from rest_served import served
from servers.s3 import S3

SCHEMA = pa.schema([("id", pa.int64())])
SECRET = "PLANTED-7351"
KEY = re.compile(r"Credential=([^/]+)/")
ENDED = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
LIFE = 4.0
GRACE = 1.0
"""Seconds after the end in which a key still opens: a request may be on its way for so long on a busy machine."""


class ShortLived:
    """Keys that end soon, each with a number."""

    def __init__(self, life: float = LIFE) -> None:
        self.life = life
        self.ends: dict[str, float] = {}

    def credentials(
        self, principal: Principal | None, table: tuple[str, ...], location: str, writes: bool
    ) -> list[tuple[str, dict[str, str]]]:
        name, ends = f"KEY{len(self.ends)}", time.time() + self.life
        self.ends[name] = ends
        given = {"s3.access-key-id": name, "s3.secret-access-key": SECRET, "s3.session-token": "token"}
        return [(location, {**given, "s3.session-token-expires-at-ms": str(int(ends * 1_000))})]


class Store(Between):
    """S3 that takes only keys that have not ended."""

    def __init__(self, s3: S3, vendor: ShortLived) -> None:
        super().__init__(s3.url)
        self.refused: list[Asked] = []
        self.keys: list[str] = []

        def behave(asked: Asked, forward: Forward) -> Answered | None:
            signed = KEY.search(asked.headers.get("authorization", ""))
            if signed is None or time.time() > vendor.ends.get(signed[1], 0) + GRACE:
                self.refused.append(asked)
                return Answered(403, {"Content-Type": "application/xml"}, ENDED)
            self.keys.append(signed[1])
            return forward(asked)

        self.behave = behave


@pytest.fixture
def vendor() -> ShortLived:
    return ShortLived()


@pytest.fixture
def store(s3: S3, vendor: ShortLived) -> Iterator[Store]:
    with Store(s3, vendor).open() as made:
        assert isinstance(made, Store)
        yield made


@pytest.fixture
def service(s3: S3, store: Store, vendor: ShortLived, tmp_path: Path) -> Iterator[Between]:
    """What stands before our server over SQLite, whose tables are on S3."""
    own = {**s3.properties, "s3.path-style-access": "true"}
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"s3://{s3.bucket}/{tmp_path.name}"
    settings = Settings(vendor=vendor, defaults={"s3.endpoint": store.url, "s3.path-style-access": "true"})
    with load_catalog("served", type="sql", uri=uri, warehouse=warehouse, **own) as catalog:
        catalog.create_namespace("db")
        with served(app(catalog, settings)) as address, Between(address).open() as made:
            yield made


@pytest.fixture
def catalog(service: Between) -> Iterator[Catalog]:
    with load_catalog("test", type="rest", uri=service.url) as made:
        yield made


def renewals(service: Between) -> int:
    """How often credentials were asked for."""
    return sum(asked.path.partition("?")[0].endswith("/credentials") for asked in service.asked)


@pytest.mark.slow
def test_a_scan_that_is_longer_than_the_life_of_its_keys_is_read_to_its_end(
    catalog: Catalog, store: Store, service: Between
) -> None:
    began = time.monotonic()
    table = catalog.create_table("db.t", SCHEMA)
    for number in range(4):
        table.append(pa.table({"id": [number]}))
    scan = catalog.load_table("db.t").scan()
    found = []
    for task in scan.plan_files():
        time.sleep(LIFE * 0.6)
        batches = read_tasks([task], scan.context, workers=1)
        found += [row for batch in batches for row in batch["id"].to_pylist()]
    assert sorted(found) == list(range(4))
    assert store.refused == []
    assert len(set(store.keys)) >= 2
    assert 1 <= renewals(service) <= 2 * (time.monotonic() - began) / LIFE


@pytest.mark.slow
def test_a_commit_whose_keys_end_before_it_is_made_is_made(catalog: Catalog, store: Store) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    with table.transaction() as tx:
        for number in range(2):
            tx.append(pa.table({"id": [number]}))
            time.sleep(LIFE + GRACE)
    assert sorted(catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == [0, 1]
    assert store.refused == []


@pytest.mark.slow
def test_a_process_that_was_given_a_scan_asks_once_for_all_its_threads(
    catalog: Catalog, store: Store, service: Between, vendor: ShortLived
) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    for number in range(8):
        table.append(pa.table({"id": [number]}))
    scan = catalog.load_table("db.t").scan()
    tasks = list(scan.plan_files())
    sent = pickle.dumps(scan.context)
    vendor.life = 60
    time.sleep(LIFE + GRACE)  # what was sent has ended
    before = renewals(service)

    def read(task: Any) -> int:
        context = pickle.loads(sent)
        return sum(batch.num_rows for batch in read_tasks([task], context, workers=1))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(read, tasks)) == 8
    assert store.refused == []
    assert renewals(service) - before == 1


@pytest.mark.slow
def test_without_the_endpoint_the_table_is_loaded_again(service: Between, store: Store) -> None:
    def without(asked: Asked, forward: Forward) -> Answered | None:
        found = forward(asked)
        if not asked.path.startswith("/v1/config"):
            return found
        body = json.loads(found.body)
        body["endpoints"] = [each for each in body["endpoints"] if not each.endswith("/credentials")]
        return Answered(200, {"Content-Type": "application/json"}, json.dumps(body).encode())

    service.behave = without
    with load_catalog("test", type="rest", uri=service.url) as catalog:
        table = catalog.create_table("db.t", SCHEMA)
        table.append(pa.table({"id": [1]}))
        time.sleep(LIFE + GRACE)
        assert table.scan().to_arrow().num_rows == 1
    assert renewals(service) == 0
    assert store.refused == []


def test_what_is_not_to_be_renewed_is_not_and_its_secrets_stay_on_the_driver(
    service: Between, store: Store, vendor: ShortLived
) -> None:
    vendor.life = 600
    off = {"client.refresh-credentials-enabled": "false", "header.x-planted": "PLANTED-HEADER"}
    with load_catalog("test", type="rest", uri=service.url, **off) as catalog:
        table = catalog.create_table("db.t", SCHEMA)
        table.append(pa.table({"id": [1]}))
        scan = catalog.load_table("db.t").scan()
        tasks = list(scan.plan_files())
        (access,) = scan.context.io.access
        assert b"PLANTED-HEADER" not in pickle.dumps(access)
        vendor.ends.clear()
        with pytest.raises(StorageError, match="expired"):
            list(read_tasks(tasks, scan.context, workers=1))
    assert renewals(service) == 0


def test_access_shows_no_secret(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    (access,) = table.io.access
    assert "KEY0" not in repr(access)
    assert SECRET in table.io.properties.values()
    assert SECRET not in repr(access) + repr(table.io) + repr(table)


# -- what a process holds


def asks(*answers: tuple[dict[str, str], float | None] | IcefieldError) -> Callable[[], Any]:
    left = list(answers)

    def ask() -> Any:
        found = left.pop(0)
        if isinstance(found, IcefieldError):
            raise found
        return found

    return ask


def test_what_has_no_end_is_never_asked_for() -> None:
    held = SharedProperties({"a": "1"}, 0.0, None)
    assert not held.waits()
    assert held.current(asks()) == {"a": "1"}


def test_others_go_on_with_what_there_is_while_one_asks() -> None:
    now = time.time()
    held = SharedProperties({"a": "1"}, now - 1_000, now + 50)
    asked, may = threading.Event(), threading.Event()

    def ask() -> tuple[dict[str, str], float]:
        asked.set()
        assert may.wait(10)
        return {"a": "2"}, time.time() + 1_000

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(held.current, ask)
        assert asked.wait(10)
        assert not held.waits()
        assert held.current(asks()) == {"a": "1"}
        may.set()
        assert first.result(10) == {"a": "2"}
    assert held.current(asks()) == {"a": "2"}


def test_after_the_end_all_wait_and_one_asks() -> None:
    now, count = time.time(), []
    held = SharedProperties({"a": "1"}, now - 1_000, now - 1)

    def ask() -> tuple[dict[str, str], float]:
        count.append(1)
        time.sleep(0.05)
        return {"a": "2"}, time.time() + 1_000

    with ThreadPoolExecutor(16) as pool:
        found = [each.result() for each in [pool.submit(held.current, ask) for _ in range(16)]]
    assert found == [{"a": "2"}] * 16
    assert len(count) == 1


def test_a_failure_counts_only_when_the_credentials_have_ended() -> None:
    now = time.time()
    problem = StorageError("the service is not there")
    assert SharedProperties({"a": "1"}, now - 1_000, now + 50).current(asks(problem)) == {"a": "1"}
    held = SharedProperties({"a": "1"}, now - 1_000, now - 1)
    ask = asks(problem)
    for _ in range(3):  # and is not asked again at once: it would have no answer
        with pytest.raises(StorageError, match="not there"):
            held.current(ask)


def test_a_service_that_gives_the_same_again_is_not_asked_with_each_request() -> None:
    now = time.time()
    held = SharedProperties({"a": "1"}, now - 1_000, now + 50)
    count = []

    def ask() -> tuple[dict[str, str], float]:
        count.append(1)
        return {"a": "1"}, now + 50

    for _ in range(100):
        held.current(ask)
    assert len(count) == 1


def test_what_came_with_a_later_answer_is_taken_without_asking() -> None:
    key, now = object(), time.time()
    held_for(key, {"a": "1"}, now - 1_000, now + 1)
    assert held_for(key, {"a": "2"}, now, now + 1_000).current(asks()) == {"a": "2"}
    assert held_for(key, {"a": "1"}, now - 1_000, now + 1).current(asks()) == {"a": "2"}
