"""The base of the checks: fixtures and methods that an author provides, and helpers."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import ClassVar
from uuid import uuid4

import pytest
from icefield.abc import FileSystem, FileSystemAbility

from icefield_testing.base import Suite
from icefield_testing.file_systems.limits import sockets, store_out_of_reach
from icefield_testing.processes import needs_fork
from icefield_testing.service_faults import LossyProxy

RACERS = 16
ROUNDS = 10


class FileSystemChecks(Suite):
    """Fixtures and methods that an author provides, and helpers."""

    listing_page: ClassVar[int] = 1000
    """How many names the store lists in one page at most. A check writes a few files more than that, so give less where
    the page can be made smaller by a property."""

    delete_page: ClassVar[int] = 1000
    """How many files one request deletes at most; 1 where each is a request of its own."""

    part_size: ClassVar[int] = 8 * 1024 * 1024
    """In how many bytes an output stream cuts a file into parts."""

    one_process: ClassVar[bool] = False
    """Whether the store lives in this process, such as files in memory: then nothing is tried with other processes."""

    survives_fork: ClassVar[bool] = True
    """Whether the file system works in a forked process. False where the client has threads of its own, as one in Rust
    or Go has: then another process is a fresh interpreter, which imports the class by the name of its module."""

    fail_fast: ClassVar[Mapping[str, str]] = {}
    """Properties with which the file system gives up at once, where it retries what a store does not answer."""

    time_out_properties: ClassVar[Mapping[str, str]] = {}
    """Properties with which the file system waits a second or so for an answer, and repeats little. Without them, a
    store that never answers is not tried."""

    silence_seconds: ClassVar[float] = 15.0
    """The longest time that a call may take, with ``time_out_properties``, when the store never answers."""

    shares_connections: ClassVar[bool] = False
    """Whether file systems with other properties share connections: then an outage breaks all of this process."""

    credentials: ClassVar[Sequence[Mapping[str, str]]] = ()
    """The ways to give credentials, each as the properties that belong together, such as
    ``({"my.user": "me", "my.password": "{secret}"}, {"my.token": "{secret}"})``. A secret is planted for ``{secret}``,
    and looked for at a foreign host."""

    @pytest.fixture
    def file_system(self) -> FileSystem:
        """The file system under test."""
        raise pytest.UsageError("give a fixture `file_system` that returns the file system under test")

    @pytest.fixture
    def root(self) -> str:
        """A location without files below it, different for each test."""
        raise pytest.UsageError("give a fixture `root` that returns a fresh location, different for each test")

    def raw_get(self, location: str) -> bytes | None:
        """Read a file without the file system under test."""
        raise pytest.UsageError("give a method `raw_get(location)` that reads around the file system")

    def raw_put(self, location: str, data: bytes) -> None:
        """Write a file without the file system under test."""
        raise pytest.UsageError("give a method `raw_put(location, data)` that writes around the file system")

    def raw_list(self, prefix: str) -> Collection[str] | None:
        """The locations of all files below a folder, found without the file system under test; None skips checks."""
        return None

    def raw_unfinished(self, prefix: str) -> Collection[str] | None:
        """The writes below a folder that the store holds open, such as pending uploads and leases; None skips checks.

        The store is asked without the file system under test.
        """
        return None

    @pytest.fixture
    def service(self) -> LossyProxy | None:
        """A ``LossyProxy`` before the store, which can lose or stop requests; None skips checks."""
        return None

    def file_system_through(self, service: LossyProxy, file_system: FileSystem) -> FileSystem:
        """The same file system with its requests sent through ``service``. By default, all requests already are."""
        return file_system

    def foreign_location(self, host: str, port: int) -> str | None:
        """A location at ``host``, which the configuration does not name; None if no location leads to a host.

        Provide it if a location names a host, an account or anything else that determines the server for requests. If
        it is None, a location that looks like one of that host is tried nevertheless.
        """
        return None

    def foreign_properties(self, host: str, port: int) -> Mapping[str, str]:
        """Properties that redirect requests to foreign places to ``host``, such as the properties of a proxy.

        They are for a store whose locations can name foreign places, but not a host and a port.
        """
        return {}

    @contextmanager
    def outage(self, file_system: FileSystem) -> Iterator[None]:
        """During the block, the store fails all requests of ``file_system``, which ``alone`` returned.

        By default, the connections that it opened break, and this process can neither open a file or a socket, nor
        write to a file. Override it if the store is reached in another way, or is in this process.
        """
        if self.one_process:
            pytest.skip("the store lives in this process: give a method `outage(file_system)` to see it fail")
        with store_out_of_reach(self._sockets_of_others):
            yield

    # -- helpers

    def needs(self, file_system: FileSystem, ability: FileSystemAbility) -> None:
        """Skip a check whose ability is not declared."""
        if ability not in file_system.abilities:
            pytest.skip(f"{type(file_system).__name__} does not declare {ability.name}")

    def needs_processes(self) -> None:
        """Skip a check of several processes if the store is in one process, or if processes cannot be forked."""
        if self.one_process:
            pytest.skip("the store lives in one process (`one_process`)")
        if self.survives_fork:
            needs_fork()

    def needs_working_forks(self) -> None:
        """Skip a check of a forked process that uses the file system of its parent."""
        self.needs_processes()
        if not self.survives_fork:
            pytest.skip("the file system does not work in a forked process (`survives_fork`)")

    def copy(self, file_system: FileSystem) -> FileSystem:
        """A copy as an executor gets it."""
        made: FileSystem = pickle.loads(pickle.dumps(file_system))
        return made

    def alone(self, file_system: FileSystem, **properties: str) -> FileSystem:
        """The same file system with clients and connections of its own, and without retries."""
        self._sockets_of_others = frozenset() if self.shares_connections else sockets()
        return type(file_system)({**file_system.properties, **self.fail_fast, "test.alone": uuid4().hex, **properties})

    _sockets_of_others: frozenset[str] = frozenset()


def race(action: Callable[[int], bytes | None]) -> list[bytes | None]:
    """Run the action in many threads that start at the same time."""
    barrier = threading.Barrier(RACERS)

    def run(number: int) -> bytes | None:
        barrier.wait()
        return action(number)

    with ThreadPoolExecutor(RACERS) as pool:
        return list(pool.map(run, range(RACERS)))
