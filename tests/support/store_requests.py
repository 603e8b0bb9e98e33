"""Checks of the requests of an object store plugin, and of the suites' findings on a store that ignores conditions.

Mixed into a subclass of ``StoreFaults``.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections import Counter

import pyarrow as pa
import pytest
from forked import ended
from http_between import Asked, Between, Forward
from icefield import load_catalog
from icefield.abc import CommitStrategy, Committed, FileSystem, PutMode
from icefield.builtin.strategies import CreateStrategy
from icefield.manifest import clear_caches
from icefield_testing import CommitStrategySuite, FileSystemSuite

_MIB = 1024 * 1024


class _Suite(CommitStrategySuite):
    max_wait_seconds = 20.0

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return CreateStrategy(("db", "t"), location, file_system)


class StoreRequests:
    """Checks of the number of requests, and a negative control for the suites."""

    batch: int
    """How many files one request deletes."""

    def is_delete(self, asked: Asked) -> bool:
        """Whether a request deletes one file or many."""
        raise pytest.UsageError("give a method `is_delete(asked)`")

    def is_listing(self, asked: Asked) -> bool:
        """Whether a request lists files."""
        raise pytest.UsageError("give a method `is_listing(asked)`")

    def without_condition(self, asked: Asked) -> Asked:
        """The request without the condition that no file has the name."""
        raise pytest.UsageError("give a method `without_condition(asked)`")

    def control(self, between: Between) -> FileSystem:
        """A file system with requests that a proxy may change on their way."""
        raise pytest.UsageError("give a method `control(between)`")

    # -- requests

    def test_files_are_deleted_in_batches(self, between: Between, root: str) -> None:
        system = self.system(between)
        names = [f"{root}/{number}" for number in range(self.batch + 5)]
        odd = [f"{root}/{name}" for name in ("a b", "a%20b", "p=1/q=x%2Fy", "ü-日本", "[x]{y}*?#z&+")]
        for location in [*names[:3], names[-1], *odd]:
            system.put(location, b"x", PutMode.OVERWRITE)
        kept = f"{root}/a"
        system.put(kept, b"x", PutMode.OVERWRITE)
        between.asked.clear()
        system.delete_many([*odd, *names])
        assert sum(map(self.is_delete, between.asked)) == len(between.asked) == 2
        assert [info.location for info in system.list_files(root)] == [kept]

    def test_a_long_listing_comes_in_pages(self, between: Between, root: str) -> None:
        system = self.system(between)
        for number in range(3):
            system.put(f"{root}/d/{number}", b"x", PutMode.OVERWRITE)
        assert len(list(system.list_files(f"{root}/d"))) == 3
        between.asked.clear()
        assert [info.location for info in system.list_files(root, shallow=True)] == [f"{root}/d/"]
        assert list(system.list_files(f"{root}/no")) == []
        assert all(map(self.is_listing, between.asked))
        assert len(between.asked) == 2

    def test_a_small_file_is_one_request_and_a_large_one_comes_in_parts(self, between: Between, root: str) -> None:
        system = self.system(between)
        small, large = os.urandom(100_000), os.urandom(20 * _MIB)
        system.put(f"{root}/small", small, PutMode.CREATE)
        system.put(f"{root}/large", large, PutMode.CREATE)
        assert sum(map(self.is_put, between.asked)) == len(between.asked) == 2  # one each, for any size
        between.asked.clear()
        source = system.open_input(f"{root}/small")
        assert source.seek(0, 2) == len(small)
        source.seek(0)
        assert source.read() == small
        assert len(between.asked) == 1
        between.asked.clear()
        assert system.open_input(f"{root}/large").read() == large
        assert len(between.asked) == 4
        between.asked.clear()
        assert system.stat(f"{root}/large").size == len(large)
        assert len(between.asked) == 1

    def test_a_table_opens_and_plans_with_no_more_requests_than_files(self, between: Between, root: str) -> None:
        made = load_catalog("test", type="directory", warehouse=root, commit="create", **self.properties(between))
        made.create_namespace("db")
        schema = pa.schema([("n", pa.int64()), ("kind", pa.string())])
        properties = {"commit.manifest-merge.enabled": "false"}
        table = made.create_table("db.t", schema, partition_spec="kind", properties=properties)
        for number in range(6):
            table.append(pa.table({"n": [number], "kind": [f"k{number % 3}"]}, schema=schema))
        clear_caches()
        catalog = load_catalog("test", type="directory", warehouse=root, commit="create", **self.properties(between))
        between.asked.clear()
        found = list(catalog.load_table("db.t").scan("kind = 'k1'").plan_files())
        assert len(found) == 2
        read = [asked.path for asked in between.asked if asked.method == "GET" and not self.is_listing(asked)]
        files = Counter(path for path in read if ".avro" in path)
        # The manifest list, and the two of six manifests that may have files of this kind, once each.
        assert len(files) == 3
        assert set(files.values()) == {1}
        assert not any(map(self.is_listing, between.asked))
        # Finding the pointer reads the hint, and checks for its version and for all names of the next version.
        # ``VersionedStrategy`` explains why fewer requests do not suffice.
        pointer, metadata = 5, 1
        assert len(between.asked) <= pointer + metadata + len(files)

    def test_whoever_commits_again_does_not_read_its_last_version(self, between: Between, root: str) -> None:
        catalog = load_catalog("test", type="directory", warehouse=root, commit="create", **self.properties(between))
        catalog.create_namespace("db")
        rows = pa.table({"n": [1]})
        table = catalog.create_table("db.t", rows.schema)
        table.append(rows)
        between.asked.clear()
        table.append(rows)
        read = [asked.path for asked in between.asked if any(name.endswith("range") for name in asked.headers)]
        assert [path for path in read if ".metadata.json" in path] == []

    def test_a_table_is_found_without_waiting_for_one_answer_after_the_other(self, between: Between, root: str) -> None:
        catalog = load_catalog("test", type="directory", warehouse=root, commit="create", **self.properties(between))
        catalog.create_namespace("db")
        catalog.create_table("db.t", pa.schema([("n", pa.int64())]))
        at_once = threading.Barrier(3)

        def together(asked: Asked, forward: Forward):
            at_once.wait(30)  # or the connection breaks, each time that it is tried again
            return forward(asked)

        # The names that the next version may have.
        between.faulty(together, lambda asked: "/v2." in asked.path.replace("%2F", "/"), times=None)
        assert catalog.load_table("db.t").metadata_location.endswith("/v1.metadata.json")

    def test_a_forked_process_has_connections_of_its_own(self, between: Between, root: str) -> None:
        system = self.system(between)
        system.put(f"{root}/a", b"before", PutMode.CREATE)

        def add() -> None:
            system.put(f"{root}/b", system.open_input(f"{root}/a").read() + b" and after", PutMode.CREATE)
            gc.collect()  # to close a connection of the parent's would take it from the parent's event loop

        assert ended(add, 60.0) == 0
        begun = time.monotonic()
        assert system.open_input(f"{root}/b").read() == b"before and after"
        assert time.monotonic() - begun < 10  # the read did not wait for a connection with lost answers

    # -- negative control

    @pytest.fixture
    def careless(self, between: Between) -> FileSystem:
        """A file system on a store that ignores the condition of a request."""
        system = self.control(between)

        def unconditional(asked: Asked, forward: Forward):
            return forward(self.without_condition(asked))

        between.behave = unconditional
        return system

    def test_the_suite_finds_that_a_store_ignores_the_condition(self, careless: FileSystem, root: str) -> None:
        for check in ("test_creating_refuses_a_taken_name", "test_one_of_many_creators_wins"):
            with pytest.raises((AssertionError, pytest.fail.Exception)):
                getattr(FileSystemSuite(), check)(careless, f"{root}/{check}")

    def test_the_suite_finds_the_lost_update(self, careless: FileSystem, root: str) -> None:
        suite = _Suite()
        for check in ("test_an_old_base_is_a_conflict_and_leaves_nothing", "test_no_update_of_many_writers_is_lost"):
            with pytest.raises(AssertionError):
                getattr(suite, check)(careless, f"{root}/{check}")

    def test_both_of_two_writers_learn_that_they_committed(self, careless: FileSystem, root: str) -> None:
        suite, place = _Suite(), f"{root}/t"
        base = suite.create(careless, place)
        told = [
            suite.strategy(careless, place).commit(base, suite.changed(careless, base, key, "1")) for key in ("a", "b")
        ]
        assert all(isinstance(outcome, Committed) for outcome in told)
        current = suite.strategy(careless, place).load()
        assert current is not None
        assert set(suite.read(careless, current).properties) == {"b"}
