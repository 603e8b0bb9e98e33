"""The suite of the kit on local disks, in memory, and on a store behind an SDK that can fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from icefield.abc import FileSystem
from icefield.builtin.memory import MemoryFileSystem
from icefield.storage import local_path
from icefield_testing import FileSystemSuite, LossyProxy

from mutants.file_systems.failing import Remote
from mutants.file_systems.places import Bound
from mutants.file_systems.silence import OverASocket, service_port
from mutants.file_systems.uploads import Uploads


class OnDisk(FileSystemSuite):
    def raw_get(self, location: str) -> bytes | None:
        path = Path(local_path(location))
        return path.read_bytes() if path.is_file() else None

    def raw_put(self, location: str, data: bytes) -> None:
        path = Path(local_path(location))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def raw_list(self, prefix: str) -> Collection[str]:
        folder = Path(local_path(prefix))
        return [f"{prefix}/{each.relative_to(folder)}" for each in folder.rglob("*") if each.is_file()]


class OnServers(OnDisk):
    credentials: ClassVar = ({"test.token": "{secret}"},)

    def foreign_location(self, host: str, port: int) -> str | None:
        return f"file://{host}:{port}/foreign/file"


class InMemory(FileSystemSuite):
    one_process = True

    def raw_get(self, location: str) -> bytes | None:
        found = MemoryFileSystem.files.get(location)
        return None if found is None else found[0]

    def raw_put(self, location: str, data: bytes) -> None:
        MemoryFileSystem.files[location] = (data, time.time_ns() // 1_000_000)

    def raw_list(self, prefix: str) -> Collection[str]:
        return [location for location in MemoryFileSystem.files if location.startswith(f"{prefix}/")]


class BehindAnSdk(InMemory):
    @contextmanager
    def outage(self, file_system: FileSystem) -> Iterator[None]:
        kind: Any = type(file_system)
        kind.up = False
        try:
            yield
        finally:
            kind.up = True


class OfUploads(BehindAnSdk):
    part_size = 1_000

    def raw_unfinished(self, prefix: str) -> Collection[str]:
        return [location for location in Uploads.held.values() if location.startswith(f"{prefix}/")]


class OnASocket(OfUploads):
    time_out_properties: ClassVar = {"socket.seconds": "0.3"}
    silence_seconds = 3.0

    def file_system_through(self, service: LossyProxy, file_system: FileSystem) -> FileSystem:
        return type(file_system)({**file_system.properties, "socket.port": str(service.port)})


def suite_of(kind: type[FileSystem]) -> type[FileSystemSuite]:
    if issubclass(kind, OverASocket):
        return OnASocket
    if issubclass(kind, Uploads):
        return OfUploads
    if issubclass(kind, Remote):
        return BehindAnSdk
    if issubclass(kind, Bound):
        return OnServers
    return InMemory if issubclass(kind, MemoryFileSystem) else OnDisk


def given(kind: type[FileSystem], folder: Path) -> dict[str, Callable[[str], Any]]:
    numbers = count()
    roots = f"memory://kit/{uuid4().hex}" if issubclass(kind, MemoryFileSystem) else f"file://{folder}"
    return {
        "file_system": lambda _: kind({}),
        "root": lambda _: f"{roots}/{next(numbers)}",
        "service": lambda _: LossyProxy(service_port()).__enter__() if issubclass(kind, OverASocket) else None,
    }
