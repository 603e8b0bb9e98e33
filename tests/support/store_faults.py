"""A suite for an object store's plugin over a failing network: a real server behind a proxy with faults.

A subclass says how to reach the server through ``Between``, and how the store's requests look.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from multiprocessing.synchronize import Event
from typing import ClassVar

import pyarrow as pa
import pytest
from forked import forking
from http_between import Answered, Asked, Behaviour, Between, Forward, answer, lose_reply, lose_request, passing, slow
from icefield import Catalog, Table, load_catalog
from icefield.abc import FileSystem, PutMode
from icefield.errors import CommitStateUnknown, FileExists, IcefieldError, StorageError
from icefield.manifest import clear_caches
from icefield.toolkit import publish_by_create

PART = 256 * 1024
DATA = bytes(range(256)) * (PART // 256) * 3 + b"the rest"
SCHEMA = pa.schema([("n", pa.int64())])
FAULTS = ("lose-request", "lose-reply", "half", "503", "429", "slow")
KILLS = ("before", "after")
"""The times at a request at which a process is killed.

The server's state is the same before a request that changes something and after the previous change: a short run needs
only ``before``.
"""

QUICK = {"commit.retry.num-retries": "0", "commit.status-check.min-wait-ms": "20"}
"""Of a table: as many look-ups after a lost reply as ever, but milliseconds apart and not 1, 2 and 4 seconds."""

SHORT_LEASE = {"lock.heartbeat-interval-ms": "400", "lock.heartbeat-timeout-ms": "2000"}
"""Short enough to wait for, and longer than a busy machine keeps a living holder from its heartbeat."""

SOAK = bool(os.environ.get("ICEFIELD_SOAK"))


class CommitFaults:
    """Checks of commits to tables in an object store, with faults between its plugin and the server."""

    commit: ClassVar[str] = "create"
    """The commit strategy."""

    more_properties: Mapping[str, str] = {}
    """Further properties of the strategy."""

    prefix: ClassVar[str]
    """The prefix of the plugin's properties."""

    least_requests: ClassVar[int] = 9
    """How many requests a commit makes at least: fewer, and the faults have missed it."""

    tries: int = 1
    """How many requests in a row a fault befalls."""

    @pytest.fixture
    def between(self) -> Iterator[Between]:
        """The proxy in front of the server."""
        raise pytest.UsageError("give a fixture `between`")

    @pytest.fixture
    def root(self) -> str:
        """A fresh location."""
        raise pytest.UsageError("give a fixture `root`")

    def reached(self, url: str) -> Mapping[str, str]:
        """The properties that reach the server by an address."""
        raise pytest.UsageError("give a method `reached(url)`")

    def properties(self, between: Between, **more: str) -> dict[str, str]:
        quick = {"retry.min-wait-ms": "10", "retry.max-wait-ms": "50", "write": str(PART)}
        named = {f"{self.prefix}.{name.replace('_', '-')}": value for name, value in {**quick, **more}.items()}
        for write in ("channel.write.chunk-size-bytes", "write.block-size-bytes"):
            named[f"{self.prefix}.{write}"] = str(PART)
        return {**self.reached(between.url), **named}

    def fault(self, name: str, between: Between) -> Behaviour:
        faults = {"lose-request": lose_request, "lose-reply": lose_reply, "half": between.half, "slow": slow(1.5)}
        return faults.get(name) or answer(int(name))

    @pytest.mark.spec("COMMIT-02", "FS-13", "FS-14")
    @pytest.mark.parametrize("name", ["lose-request", "lose-reply", "half", "503"])
    def test_whatever_request_of_a_commit_fails_what_is_said_is_what_is_so(
        self, between: Between, root: str, name: str
    ) -> None:
        properties = {**self.properties(between, **{"retry.num-retries": "0"}), **self.more_properties}
        catalog = load_catalog("test", type="directory", warehouse=root, commit=self.commit, **properties)
        catalog.create_namespace("db")
        for step in range(60):
            table = catalog.create_table(f"db.t{step}", SCHEMA, properties=QUICK)
            table.append(pa.table({"n": [-1]}, schema=SCHEMA))
            clear_caches()
            counted: list[Asked] = []

            def nth(asked: Asked, counted: list[Asked] = counted, step: int = step) -> bool:
                counted.append(asked)
                return step < len(counted) <= step + self.tries

            between.faulty(self.fault(name, between), nth, self.tries)
            said = _said(table, step)
            between.faulty(passing, lambda asked: False)
            found = [row["n"] for row in catalog.load_table(f"db.t{step}").scan().to_arrow().to_pylist()]
            assert sorted(found) in ([-1], [-1, step])
            if said is not None:
                assert (step in found) == said, f"said {said} of request {step}: {counted[step].method}"
            if len(counted) <= step:
                break
        assert self.least_requests <= step < 59
        assert said


class KilledCommits(CommitFaults):
    """Checks of commits in a process that is killed, as by ``kill -9``, at any of its requests."""

    also_between: tuple[Between, ...] = ()
    """The proxies in front of further servers that the strategy uses."""

    first_step: ClassVar[int] = 0
    """The change that a short run begins at."""

    preloaded: ClassVar[tuple[str, ...]] = ()
    """Modules that take the plugin long to import."""

    long: ClassVar[bool] = False
    """Whether even a short run takes long, and is for ``make soak``."""

    @pytest.mark.counted
    @pytest.mark.slow
    @pytest.mark.spec("COMMIT-02", "COMMIT-24", "FS-13", "FS-14", "META-01")
    @pytest.mark.parametrize("name", KILLS if SOAK else KILLS[:1])
    def test_whatever_request_a_process_is_killed_at_the_table_opens_and_takes_commits(
        self, between: Between, root: str, name: str
    ) -> None:
        if self.long and not SOAK:
            pytest.skip("takes long: `make soak` runs it")
        properties = {**self.properties(between), **self.more_properties, **SHORT_LEASE}
        given = {"type": "directory", "warehouse": root, "commit": self.commit, **properties}
        catalog = load_catalog("test", **given)
        catalog.create_namespace("db")
        catalog.create_table("db.t", SCHEMA).append(pa.table({"n": [-1]}, schema=SCHEMA))
        seen: set[str] = set()
        for step in range(0 if SOAK else self.first_step, 100):
            died = self._dies_at(step, name, given, between)
            found = _numbers(catalog)
            assert found in ([-1], [-1, step]), f"a partial change is visible after request {step}"
            seen.add("old" if found == [-1] else "new")
            # The next change succeeds despite everything that the dead process left behind, such as a lock.
            catalog.load_table("db.t").overwrite(pa.table({"n": [-1]}, schema=SCHEMA))
            assert _numbers(catalog) == [-1]
            if not died:
                break
        assert seen == {"old", "new"}
        assert 5 <= step < 99  # data, manifest, list of manifests, metadata, hint

    def _dies_at(self, step: int, name: str, given: Mapping[str, str], between: Between) -> bool:
        """Append in a process that is killed at that request; False if the process ended before it."""
        context = forking("store_faults", *self.preloaded)
        begun, counted = context.Event(), list[Asked]()
        process = context.Process(target=_append_number, args=(dict(given), step, begun))

        def nth(asked: Asked) -> bool:
            counts = begun.is_set() and (SOAK or asked.method not in ("GET", "HEAD"))
            counted.extend([asked] if counts else [])
            return len(counted) == step + 1

        def kill(asked: Asked, forward: Forward) -> Answered | None:
            if name == "after":
                forward(asked)
            os.kill(process.pid or 0, signal.SIGKILL)
            return None

        for each in (between, *self.also_between):
            each.faulty(kill, nth)
        process.start()
        process.join()
        for each in (between, *self.also_between):
            each.faulty(passing, lambda asked: False)
        assert process.exitcode in (0, -signal.SIGKILL), "the append failed by itself"
        return process.exitcode != 0


class StoreFaults(CommitFaults):
    """Checks of a plugin for an object store, with faults between it and the server."""

    at_a_time: ClassVar[int] = 1
    """How many parts of a file are on their way at a time."""

    def made(self, properties: Mapping[str, str]) -> FileSystem:
        """The file system under test."""
        raise pytest.UsageError("give a method `made(properties)`")

    def is_put(self, asked: Asked) -> bool:
        """Whether a request uploads a whole file."""
        raise pytest.UsageError("give a method `is_put(asked)`")

    def is_part(self, asked: Asked) -> bool:
        """Whether a request uploads a part of a file, or publishes one of parts."""
        raise pytest.UsageError("give a method `is_part(asked)`")

    def unpublished(self, location: str) -> int:
        """How many uploads to a location were begun, and neither done nor given up."""
        raise pytest.UsageError("give a method `unpublished(location)`")

    def raw_get(self, location: str) -> bytes | None:
        """Read a file without the plugin, and without the proxy."""
        raise pytest.UsageError("give a method `raw_get(location)`")

    def system(self, between: Between, **more: str) -> FileSystem:
        return self.made(self.properties(between, **{name.replace("__", "."): value for name, value in more.items()}))

    # -- one small file

    @pytest.mark.parametrize("name", FAULTS)
    def test_one_fault_does_not_change_who_has_created_a_file(self, between: Between, root: str, name: str) -> None:
        system = self.system(between, request_timeout="1")
        between.faulty(self.fault(name, between), self.is_put)
        assert publish_by_create(system, f"{root}/mine", b"mine")
        assert self.raw_get(f"{root}/mine") == b"mine"
        between.faulty(self.fault(name, between), self.is_put)
        assert not publish_by_create(system, f"{root}/mine", b"late")
        assert self.raw_get(f"{root}/mine") == b"mine"

    @pytest.mark.spec("COMMIT-02")
    def test_a_reply_that_stays_lost_is_settled_by_the_bytes(self, between: Between, root: str) -> None:
        system = self.system(between, retry__num_retries="0")
        between.faulty(lose_reply, self.is_put, None)
        with pytest.raises((StorageError, FileExists)) as failed:
            system.put(f"{root}/a", b"mine", PutMode.CREATE)
        assert isinstance(failed.value, FileExists) or failed.value.retryable
        assert publish_by_create(system, f"{root}/b", b"mine")
        assert self.raw_get(f"{root}/b") == b"mine"

    @pytest.mark.spec("COMMIT-02")
    @pytest.mark.parametrize("name", ["lose-request", "503"])
    def test_a_request_that_stays_unanswered_leaves_the_outcome_unknown(
        self, between: Between, root: str, name: str
    ) -> None:
        system = self.system(between)
        between.faulty(self.fault(name, between), self.is_put, None)
        with pytest.raises(CommitStateUnknown):
            publish_by_create(system, f"{root}/a", b"mine")
        assert self.raw_get(f"{root}/a") is None

    def test_a_refusal_after_a_lost_reply_is_not_taken_for_a_failure(self, between: Between, root: str) -> None:
        """The first request wrote the file, so a refusal of the second, such as for an expired token, is no outcome."""
        tries: list[Asked] = []

        def first_lost_then_refused(asked, forward):
            tries.append(asked)
            return lose_reply(asked, forward) if len(tries) == 1 else answer(403)(asked, forward)

        between.faulty(first_lost_then_refused, self.is_put, None)
        with pytest.raises(StorageError) as failed:
            self.system(between).put(f"{root}/a", b"mine", PutMode.CREATE)
        assert failed.value.retryable
        tries.clear()
        assert publish_by_create(self.system(between), f"{root}/b", b"mine")

    def test_a_refusal_is_reported_at_once(self, between: Between, root: str) -> None:
        between.faulty(answer(403), lambda asked: True, None)
        with pytest.raises(StorageError, match="403") as failed:
            self.system(between).put(f"{root}/a", b"mine", PutMode.CREATE)
        assert not failed.value.retryable
        assert len(between.asked) == 1, [(each.method, each.path) for each in between.asked]

    @pytest.mark.parametrize("data", [b"second", b""])
    def test_an_upload_is_not_repeated_silently_when_a_reused_connection_breaks(
        self, between: Between, root: str, data: bytes
    ) -> None:
        system = self.system(between, retry__num_retries="0")
        system.put(f"{root}/a", b"first", PutMode.CREATE)  # the connection is kept
        between.faulty(lose_request, self.is_put)
        with pytest.raises(StorageError) as failed:
            system.put(f"{root}/b", data, PutMode.CREATE)
        assert failed.value.retryable
        assert len(between.asked) == 2

    @pytest.mark.parametrize("status", [429, 503])
    def test_throttling_is_met_with_growing_waits(self, between: Between, root: str, status: int) -> None:
        times: list[float] = []

        def throttle(asked, forward):
            times.append(time.monotonic())
            return answer(status)(asked, forward)

        between.faulty(throttle, self.is_put, 4)
        system = self.system(between, retry__min_wait_ms="100", retry__max_wait_ms="1000")
        system.put(f"{root}/a", b"mine", PutMode.CREATE)
        times.append(time.monotonic())
        waits = [later - earlier for earlier, later in pairwise(times)]
        assert all(wait >= 0.05 * 2**turn for turn, wait in enumerate(waits))
        assert len(waits) == 4
        assert self.raw_get(f"{root}/a") == b"mine"

    @pytest.mark.parametrize("name", ["lose-request", "503", "slow"])
    def test_giving_up_takes_no_longer_than_was_asked(self, between: Between, root: str, name: str) -> None:
        system = self.system(between, retry__num_retries="1000", retry__total_timeout_ms="700", request_timeout="1")
        between.faulty(self.fault(name, between), lambda asked: True, None)
        for action in (
            lambda: system.put(f"{root}/a", b"x", PutMode.CREATE),
            lambda: system.open_input(f"{root}/a"),
            lambda: system.stat(f"{root}/a"),
            lambda: list(system.list_files(root)),
        ):
            begun = time.monotonic()
            with pytest.raises(StorageError) as failed:
                action()
            assert failed.value.retryable
            assert time.monotonic() - begun < 3

    # -- reading, listing, deleting

    @pytest.mark.parametrize("name", FAULTS)
    def test_one_fault_of_any_request_changes_no_answer(self, between: Between, root: str, name: str) -> None:
        system = self.system(between, request_timeout="1")
        names = {f"{root}/{number}" for number in range(5)}
        for location in names:
            system.put(location, DATA, PutMode.CREATE)
        fault = self.fault(name, between)
        between.faulty(fault, lambda asked: True)
        assert system.open_input(f"{root}/0").read() == DATA
        between.faulty(fault, lambda asked: True)
        assert system.stat(f"{root}/0").size == len(DATA)
        between.faulty(fault, lambda asked: True)
        assert {info.location for info in system.list_files(root)} == names
        between.faulty(fault, lambda asked: True)
        system.delete_many([*names, f"{root}/never"])
        assert list(system.list_files(root)) == []

    def test_a_reply_that_ends_early_is_not_taken_for_the_file(self, between: Between, root: str) -> None:
        system = self.system(between)
        system.put(f"{root}/a", DATA, PutMode.CREATE)
        between.faulty(between.half_reply, lambda asked: asked.method == "GET")
        assert system.open_input(f"{root}/a").read() == DATA

    # -- large files

    @pytest.mark.parametrize("name", FAULTS)
    def test_a_fault_of_any_part_leaves_the_file_whole(self, between: Between, root: str, name: str) -> None:
        system = self.system(between, request_timeout="1")
        requests = 1
        for step in range(20):
            seen: list[Asked] = []

            def nth(asked: Asked, seen: list[Asked] = seen, step: int = step) -> bool:
                if self.is_part(asked):
                    seen.append(asked)
                return len(seen) == step + 1

            between.faulty(self.fault(name, between), nth)
            with system.open_output(f"{root}/large-{step}") as sink:
                sink.write(DATA)
            assert self.raw_get(f"{root}/large-{step}") == DATA
            requests = max(requests, len(seen))
            if step >= 4 or name == "slow":
                break
        assert requests >= 4

    def test_a_part_that_stays_undelivered_leaves_nothing(self, between: Between, root: str) -> None:
        system = self.system(between, retry__num_retries="1")
        broken: list[Asked] = []

        def from_the_second(asked: Asked) -> bool:
            broken.extend([asked] if self.is_part(asked) else [])
            return self.is_part(asked) and len(broken) > 1

        between.faulty(lose_request, from_the_second, 2 * self.at_a_time)

        def write() -> None:
            with system.open_output(f"{root}/large") as sink:
                for start in range(0, len(DATA), 100_000):
                    sink.write(DATA[start : start + 100_000])

        with pytest.raises(StorageError) as failed:
            write()
        assert failed.value.retryable
        assert self.raw_get(f"{root}/large") is None
        assert self.unpublished(f"{root}/large") == 0

    def test_an_aborted_upload_leaves_no_parts_with_the_store(self, between: Between, root: str) -> None:
        system = self.system(between)
        sink = system.open_output(f"{root}/large")
        sink.write(DATA)
        assert self.raw_get(f"{root}/large") is None
        sink.abort()
        assert self.raw_get(f"{root}/large") is None
        assert self.unpublished(f"{root}/large") == 0
        assert list(system.list_files(root)) == []
        assert any(self.is_part(asked) for asked in between.asked)


def _said(table: Table, number: int) -> bool | None:
    """Append a row, and return whether the commit reports success; None for an unknown outcome."""
    try:
        table.append(pa.table({"n": [number]}, schema=SCHEMA))
    except CommitStateUnknown:
        return None
    except IcefieldError:
        return False
    return True


def _numbers(catalog: Catalog) -> list[int]:
    """The rows of the table, loaded anew without caches."""
    clear_caches()
    return sorted(row["n"] for row in catalog.load_table("db.t").scan().to_arrow().to_pylist())


def _append_number(given: dict[str, str], number: int, begun: Event) -> None:
    """Append a number, in the process that is killed."""
    table = load_catalog("test", **given).load_table("db.t")
    begun.set()
    table.append(pa.table({"n": [number]}, schema=SCHEMA))
