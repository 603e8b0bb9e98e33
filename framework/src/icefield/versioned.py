"""Tables on a file system: ``metadata/v<V>.metadata.json``, one name a version, never freed while the table lives.

What every strategy of file-system tables shares: finding the current version, the rules of a commit, and
``version-hint.text``, which is best effort only. A plugin that has an atomic step of its own subclasses
``VersionedStrategy``. See "File System Tables" of the table specification.

A table is to be dropped when nobody writes to it: a writer that was at work may publish once more, and takes that back,
but what others built on it in between is lost with it.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from contextlib import suppress
from typing import Final

import msgspec

from icefield.abc import CommitStrategy, Committed, Conflict, FileSystemAbility, Pointer, PutMode
from icefield.errors import FileMissing, IcefieldError, InvalidMetadata, NoSuchTable, StorageError, UnsupportedFeature
from icefield.metadata import TableMetadata, decode_metadata, encode_metadata
from icefield.publishing import delete_quietly, read_whole

HINT: Final = "version-hint.text"
_NAME = re.compile(r"v(\d{1,18})(?:\.gz)?\.metadata\.json(?:\.gz)?")
_GZIP_NAMES: Final = ("v{}.gz.metadata.json", "v{}.metadata.json.gz")
_MAX_HINT = 32
_LOOKS: Final = 4


class _Identity(msgspec.Struct):
    table_uuid: str | None = msgspec.field(name="table-uuid", default=None)


def version_of(name: str) -> int | None:
    """The version in the name of a metadata file of a file-system table, else None."""
    match = _NAME.fullmatch(name)
    return int(match.group(1)) if match else None


class VersionedStrategy(CommitStrategy):
    """The protocol of file-system tables; a subclass publishes a version in its own atomic step."""

    @abstractmethod
    def publish(self, target: str, data: bytes) -> bool:
        """Publish a metadata file if no other has its name; True when the one there is ours."""

    def withdraw(self, target: str) -> None:
        """Take back a version that was published beside nothing. Best effort."""
        delete_quietly(self.file_system, target)

    @property
    def folder(self) -> str:
        """Where the metadata files lie."""
        return f"{self.location}/metadata"

    def load(self) -> Pointer | None:
        version = self.hint()
        location = None if version is None else self.find(version)
        if version is None or location is None:
            version = self.latest_listed()
            location = None if version is None else self.find(version)
        if version is None or location is None:
            return None
        # The hint may be behind: whoever came later may not have written it yet.
        while (later := self.find(version + 1)) is not None:
            version, location = version + 1, later
        return Pointer(location, version)

    def commit(self, base: Pointer | None, metadata: TableMetadata) -> Committed | Conflict:
        self._refuse_unsafe(metadata)
        if base is None:
            current = self.load()
            if current is not None:
                return Conflict(current)
            version = 1
        else:
            version = self._version(base) + 1
            if not self.is_current_table(base, metadata):
                return Conflict(self.load())
        if any(self.exists(f"{self.folder}/{name.format(version)}") for name in _GZIP_NAMES):
            return Conflict(self.load())
        target = f"{self.folder}/v{version}.metadata.json"
        if not self.publish(target, encode_metadata(metadata)):
            return Conflict()
        if base is not None and not self._still_there(base, metadata):
            # The table was dropped meanwhile: a version beside nothing, or beside another table's, must not stay.
            self.withdraw(target)
            return Conflict(self.load())
        self._write_hint(version)
        return Committed(Pointer(target, version))

    def drop(self) -> None:
        if self.load() is None:
            raise NoSuchTable(f"no table {'.'.join(self.table)} at {self.location}", table=self.table)
        self.file_system.delete_many([f"{self.folder}/{HINT}"])
        # Lowest first, so that until the last step readers see the table at its current version; again until nothing
        # is left, so that a commit that slipped in between does not survive as a table of its own.
        while versions := self.listed():
            self.file_system.delete_many([location for _, location in sorted(versions)])

    def _refuse_unsafe(self, metadata: TableMetadata) -> None:
        properties = metadata.properties
        if properties.get("write.metadata.delete-after-commit.enabled", "false").lower() == "true":
            raise self._refused("write.metadata.delete-after-commit.enabled", "a freed version name could be won twice")
        if properties.get("write.metadata.path"):
            raise self._refused("write.metadata.path", "the current version is found by its name in one folder")

    def _refused(self, name: str, why: str) -> UnsupportedFeature:
        return UnsupportedFeature(
            f"the property {name} is refused for tables on a file system: {why}; remove it, or use a metastore catalog",
            table=self.table,
        )

    def _version(self, base: Pointer) -> int:
        version = base.version if base.version is not None else version_of(base.location.rpartition("/")[2])
        if version is None:
            raise InvalidMetadata(f"{base.location} is no version of a file-system table", location=base.location)
        return version

    def is_current_table(self, base: Pointer, metadata: TableMetadata) -> bool:
        """Whether the base is there and of the same table."""
        try:
            data = read_whole(self.file_system, base.location)
        except FileMissing:
            return False
        return self._uuid(data, base.location) == metadata.table_uuid or self._uuid(data, base.location) is None

    def _still_there(self, base: Pointer, metadata: TableMetadata) -> bool:
        """The same after publishing, when a failure to look must not undo what is done."""
        for _ in range(_LOOKS):
            try:
                return self.is_current_table(base, metadata)
            except StorageError as error:
                if not error.retryable:
                    break
            except IcefieldError:
                break
        return True

    def _uuid(self, data: bytes, location: str) -> str | None:
        if data[:2] == b"\x1f\x8b":
            return decode_metadata(data, location).table_uuid
        try:
            return msgspec.json.decode(data, type=_Identity).table_uuid
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidMetadata(f"{location} is damaged: {error}", location=location) from error

    def find(self, version: int) -> str | None:
        """The location of a version's file, however it is spelt, or None."""
        for name in (f"v{version}.metadata.json", *(spelling.format(version) for spelling in _GZIP_NAMES)):
            if self.exists(f"{self.folder}/{name}"):
                return f"{self.folder}/{name}"
        return None

    def exists(self, location: str) -> bool:
        """Whether a file is there."""
        try:
            self.file_system.stat(location)
        except FileMissing:
            return False
        return True

    def hint(self) -> int | None:
        """The version that ``version-hint.text`` names; it may be behind, or missing."""
        try:
            source = self.file_system.open_input(f"{self.folder}/{HINT}")
        except FileMissing:
            return None
        try:
            text = source.read(_MAX_HINT)
        finally:
            source.close()
        return int(text) if text.strip().isdigit() and len(text) < _MAX_HINT else None

    def _write_hint(self, version: int) -> None:
        with suppress(IcefieldError):  # the commit is done; readers walk on from an old hint
            self.file_system.put(f"{self.folder}/{HINT}", str(version).encode(), PutMode.OVERWRITE)

    def latest_listed(self) -> int | None:
        """The highest version of which there is a file."""
        return max((version for version, _ in self.listed()), default=None)

    def listed(self) -> list[tuple[int, str]]:
        """Every version of which there is a file, with its location."""
        if FileSystemAbility.LIST not in self.file_system.abilities:
            return self._probed()
        found = []
        for info in self.file_system.list(self.folder, shallow=True):
            version = version_of(info.location.rpartition("/")[2])
            if version is not None:
                found.append((version, info.location))
        return found

    def _probed(self) -> list[tuple[int, str]]:
        """Versions from 1 upward, where the store cannot list."""
        found = []
        version = 1
        while (location := self.find(version)) is not None:
            found.append((version, location))
            version += 1
        return found
