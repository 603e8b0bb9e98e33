"""The stores of the simulated world: files, a metastore's pointers, a table of items."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from icefield.abc import FileInfo, FileSystem, FileSystemAbility, InputFile, OutputStream, Proposal, PutMode
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import FileExists, FileMissing, StorageError
from icefield.toolkit import MetastoreStrategy, OutcomeUnknown

from simulation.world import World


def broken(what: str) -> StorageError:
    return StorageError(f"the connection broke at {what}", retryable=True)


class SimulatedFileSystem(FileSystem):
    """Files in a dictionary; the world decides the fate of each request."""

    def __init__(
        self,
        world: World,
        files: dict[str, bytes],
        abilities: frozenset[FileSystemAbility] = MemoryFileSystem.abilities,
    ) -> None:
        super().__init__({})
        self.world, self.files = world, files
        self._abilities = abilities

    @property
    def abilities(self) -> frozenset[FileSystemAbility]:
        return self._abilities

    def open_input(self, location: str) -> InputFile:
        return io.BytesIO(self._look("read", location, lambda: self._there(location)))

    def stat(self, location: str) -> FileInfo:
        return self._look("stat", location, lambda: self._info(location, self._there(location)))

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        folder = prefix.rstrip("/") + "/"
        found = self._look(
            "list",
            prefix,
            lambda: [self._info(name, data) for name, data in self.files.items() if name.startswith(folder)],
        )
        return iter(found)

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        def effect() -> None:
            if mode is PutMode.CREATE and location in self.files:
                raise FileExists(f"{location} exists", location=location)
            self.files[location] = data

        self.world.request(f"put {mode.name} {location}", effect, broken)

    def open_output(self, location: str) -> OutputStream:
        return _Output(self, location)

    def rename(self, source: str, target: str) -> None:
        def effect() -> None:
            if target in self.files:
                raise FileExists(f"{target} exists", location=target)
            self.files[target] = self._there(source)
            del self.files[source]

        self.world.request(f"rename {source} {target}", effect, broken)

    def delete_many(self, locations: Iterable[str]) -> None:
        doomed = list(locations)

        def effect() -> None:
            for location in doomed:
                self.files.pop(location, None)

        # A deletion that arrives late would delete a newer file of that name: no protocol helps against that.
        self.world.request(f"delete {' '.join(doomed)}", effect, broken, may_be_late=False)

    def _look(self, verb: str, location: str, effect: Callable[[], Any]) -> Any:
        return self.world.request(f"{verb} {location}", effect, broken, changes=False)

    def _info(self, location: str, data: bytes) -> FileInfo:
        return FileInfo(location, len(data))

    def _there(self, location: str) -> bytes:
        if location not in self.files:
            raise FileMissing(f"no file {location}", location=location)
        return self.files[location]


class _Output(OutputStream):
    def __init__(self, system: SimulatedFileSystem, location: str) -> None:
        self._system, self._location = system, location
        self._buffer = io.BytesIO()

    def write(self, data: Any, /) -> int:
        return self._buffer.write(data)

    def tell(self) -> int:
        return self._buffer.tell()

    def close(self) -> None:
        if not self._buffer.closed:
            data = self._buffer.getvalue()
            self._buffer.close()
            self._system.put(self._location, data, PutMode.OVERWRITE)

    def abort(self) -> None:
        self._buffer.close()

    @property
    def closed(self) -> bool:
        return self._buffer.closed


class SimulatedMetastore(MetastoreStrategy):
    """Pointers in a dictionary, with check-and-put and lost replies."""

    def __init__(self, system: SimulatedFileSystem, location: str) -> None:
        super().__init__(("db", "t"), location, system)
        self.world = system.world
        self.pointers = system.world.pointers

    def read_pointer(self) -> str | None:
        return self.world.request("read pointer", lambda: self.pointers.get(self.location), broken, changes=False)

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        def effect() -> bool:
            if self.pointers.get(self.location) != old:
                return False
            self.pointers[self.location] = new
            return True

        return self.world.request(f"swap {old} {new}", effect, lambda what: OutcomeUnknown(what))

    def drop(self) -> None:
        self.world.request("drop pointer", lambda: self.pointers.pop(self.location, None), broken, may_be_late=False)


class SimulatedItems:
    """A table of items with the interface of ``icefield_dynamodb.items.ItemTable``."""

    def __init__(self, world: World, lost: type[Exception]) -> None:
        self.world, self.items, self.lost = world, world.items, lost

    def read(self, key: str) -> dict[str, str] | None:
        return self.world.request(f"get item {key}", lambda: self.items.get(key), broken, changes=False)

    def put(
        self, item: dict[str, str], *, numbers: tuple[str, ...] = (), expected: Mapping[str, str] | None = None
    ) -> bool:
        def effect() -> bool:
            held = self.items.get(item["entityId"])
            fits = held is None if expected is None else held is not None and expected.items() <= held.items()
            if fits:
                self.items[item["entityId"]] = dict(item)
            return fits

        return self.world.request(f"put item {item} if {expected}", effect, self.lost)

    def delete(self, key: str, expected: Mapping[str, str]) -> bool:
        def effect() -> bool:
            held = self.items.get(key)
            fits = held is not None and expected.items() <= held.items()
            if fits:
                del self.items[key]
            return fits

        return self.world.request(f"delete item {key} if {expected}", effect, self.lost)
