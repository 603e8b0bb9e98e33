"""Namespaces of a directory catalog: folders with a versioned marker that holds the properties.

The marker is ``<folder>/.icefield/namespace-v<N>.json``; the highest version counts. Versions are published like a
table's, so that concurrent changes of properties exclude each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import itemgetter
from uuid import uuid4

import msgspec

from icefield.abc import FileSystem
from icefield.base.structs import decodable
from icefield.errors import InvalidMetadata, NamespaceExists, NoSuchNamespace
from icefield.metadata.file_names import METADATA_FOLDER, version_of
from icefield.toolkit import VersionedStrategy, is_tombstone, read_whole

_MARKER = re.compile(r"namespace-v(\d{1,9})\.json")
_MAX_DEPTH = 16


@decodable
class _Marker(msgspec.Struct):
    """The content of a marker. ``writer`` is unique, so that a writer recognises its own marker after a lost reply."""

    properties: dict[str, str]
    writer: str = ""


class NamespaceFolder:
    """One namespace in a folder of the warehouse. A commit strategy publishes and deletes its markers."""

    def __init__(self, name: tuple[str, ...], folder: str, strategy: VersionedStrategy) -> None:
        self.name, self.folder, self._strategy, self._system = name, folder, strategy, strategy.file_system

    def exists(self, *, depth: int = 0) -> bool:
        """Whether the namespace has a marker, or a table of another engine somewhere below it."""
        if self.versions():
            return True
        names = [name for name in folders_in(self._system, self.folder) if name != ".icefield"]
        if METADATA_FOLDER in names or depth >= _MAX_DEPTH:
            return False  # the folder of a table, or of a dropped one
        return any(
            is_table(self._system, f"{self.folder}/{name}") or self._child(name).exists(depth=depth + 1)
            for name in names
        )

    def create(self, properties: Mapping[str, str]) -> None:
        """Publish the first marker. Raises ``NamespaceExists``."""
        if self.exists() or not self._write(1, dict(properties)):
            raise NamespaceExists(f"namespace {'.'.join(self.name)} exists already", namespace=self.name)

    def properties(self) -> dict[str, str]:
        """The properties of the highest version. Raises ``NoSuchNamespace``."""
        return self._current()[1]

    def update(self, updates: Mapping[str, str], removals: frozenset[str]) -> None:
        """Publish the next version, based on the current one. Raises ``NoSuchNamespace``."""
        while True:
            version, properties = self._current()
            kept = {key: value for key, value in properties.items() if key not in removals}
            if self._write(version + 1, {**kept, **updates}):
                return

    def drop(self) -> None:
        """Delete every marker, the highest last: until then the namespace exists with its last properties."""
        while versions := self.versions():
            self._strategy.forget([location for _, location in sorted(versions)])

    def versions(self) -> list[tuple[int, str]]:
        """The existing markers: version and location."""
        found = []
        for info in self._system.list_files(f"{self.folder}/.icefield", shallow=True):
            match = _MARKER.fullmatch(info.location.rpartition("/")[2])
            if match:
                found.append((int(match.group(1)), info.location))
        return found

    def _child(self, name: str) -> NamespaceFolder:
        return NamespaceFolder((*self.name, name), f"{self.folder}/{name}", self._strategy)

    def _current(self) -> tuple[int, dict[str, str]]:
        versions = self.versions()
        if not versions:
            if self.exists():
                return 0, {}
            raise NoSuchNamespace(f"no namespace {'.'.join(self.name)}", namespace=self.name)
        version, location = max(versions)
        try:
            return version, msgspec.json.decode(read_whole(self._system, location), type=_Marker).properties
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidMetadata(f"{location} is damaged: {error}", location=location) from error

    def _write(self, version: int, properties: dict[str, str]) -> bool:
        marker = _Marker(properties, uuid4().hex)
        target = f"{self.folder}/.icefield/namespace-v{version}.json"
        return bool(self._strategy.publish(target, msgspec.json.encode(marker)))


def folders_in(system: FileSystem, folder: str) -> Iterator[str]:
    """The names of the folders directly in a folder."""
    for info in system.list_files(folder, shallow=True):
        if info.location.endswith("/"):
            yield info.location.split("/")[-2]


def is_table(system: FileSystem, folder: str) -> bool:
    """Whether a folder holds versions of a table's metadata, and the last version is no tombstone."""
    versions = [
        (version, info)
        for info in system.list_files(f"{folder}/{METADATA_FOLDER}", shallow=True)
        if (version := version_of(info.location)) is not None
    ]
    return bool(versions) and not is_tombstone(system, max(versions, key=itemgetter(0))[1])
