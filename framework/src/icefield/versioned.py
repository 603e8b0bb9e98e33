"""Tables on a file system: ``metadata/v<V>.metadata.json``, one name a version, never freed while the table lives.

What every strategy of file-system tables shares: finding the current version, the rules of a commit, and
``version-hint.text``, which is best effort only. A plugin that has an atomic step of its own subclasses
``VersionedStrategy``. See "File System Tables" of the table specification.

Dropping a table is a commit as well: the version after the current one is a tombstone, and every version stays. So a
writer at work meets a conflict, however long it was paused, and a table that is created there again goes on counting.
Only purging frees names, after everything else of the table: see ``docs/decisions/0016-tombstones.md``.
"""

from __future__ import annotations

import re
import time
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import uuid4

import msgspec

from icefield.abc import (
    CommitStrategy,
    Committed,
    Conflict,
    FileInfo,
    FileSystem,
    FileSystemAbility,
    Pointer,
    PutMode,
)
from icefield.errors import (
    CommitFailed,
    FileMissing,
    IcefieldError,
    InvalidMetadata,
    NoSuchTable,
    StorageError,
    UnsupportedFeature,
)
from icefield.metadata import TableMetadata, decode_metadata, encode_metadata
from icefield.publishing import delete_quietly, read_whole

HINT: Final = "version-hint.text"
_NAME = re.compile(r"v(\d{1,18})(?:\.gz)?\.metadata\.json(?:\.gz)?")
_GZIP_NAMES: Final = ("v{}.gz.metadata.json", "v{}.metadata.json.gz")
_MAX_HINT = 32
_LOOKS: Final = 4
_DROP_TRIES: Final = 100
_SETTLED_MS: Final = 60_000
_TOMBSTONE_MAX: Final = 512
_DROPPED: Final = "this table was dropped: purge it, or remove its folder, before another engine creates one here"


class _Identity(msgspec.Struct):
    table_uuid: str | None = msgspec.field(name="table-uuid", default=None)


class _Tombstone(msgspec.Struct, rename="kebab"):
    """What stands in the place of the version after the last.

    Other engines show what they find where a number should be. ``writer`` makes two tombstones differ: a lost reply can
    be told from a lost race.
    """

    format_version: str = _DROPPED
    dropped_by: str = "icefield"
    writer: str = ""
    table_uuid: str | None = None


def version_of(name: str) -> int | None:
    """The version in the name of a metadata file of a file-system table, else None."""
    match = _NAME.fullmatch(name)
    return int(match.group(1)) if match else None


class Top(NamedTuple):
    """The highest version of a table, and whether it says that the table was dropped."""

    pointer: Pointer
    version: int
    is_tombstone: bool


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
        top = self.top()
        return None if top is None or top.is_tombstone else top.pointer

    def top(self) -> Top | None:
        """The highest version, which may be a tombstone."""
        version = self.hint()
        found, later = (None, None) if version is None else self._file_and_next(version)
        if version is None or found is None:
            version = self.latest_listed()
            found, later = (None, None) if version is None else self._file_and_next(version)
        if version is None or found is None:
            return None
        # The hint may be behind: whoever came later may not have written it yet.
        while later is not None:
            version, found = version + 1, later
            later = self._file_of(version + 1)
        pointer = Pointer(found.location, version, _stamp(found))
        return Top(pointer, version, is_tombstone(self.file_system, found))

    def commit(self, base: Pointer | None, metadata: TableMetadata) -> Committed | Conflict:
        self._refuse_unsafe(metadata)
        if base is None:
            top = self.top()
            if top is not None and not top.is_tombstone:
                return Conflict(top.pointer)
            version = 1 if top is None else top.version + 1
        else:
            version = self._version(base) + 1
            if not self.is_current_table(base, metadata):
                return Conflict(self.load())
        if self._is_compressed(version):
            return Conflict(self.load())
        target = self._plain(version)
        if not self.publish(target, encode_metadata(metadata)):
            return Conflict()
        if base is not None and not self._still_there(base, metadata):
            # The table was dropped meanwhile: a version beside nothing, or beside another table's, must not stay.
            self.withdraw(target)
            return Conflict(self.load())
        self._write_hint(version)
        return Committed(Pointer(target, version))

    def drop(self) -> None:
        for _ in range(_DROP_TRIES):
            current = self.load()
            if current is None:
                raise NoSuchTable(f"no table {'.'.join(self.table)} at {self.location}", table=self.table)
            version = self._version(current) + 1
            target = self._plain(version)
            try:
                uuid = self._uuid(read_whole(self.file_system, current.location), current.location)
            except FileMissing:  # removed by another engine
                continue
            except InvalidMetadata:  # a table that cannot be read can be dropped
                uuid = None
            tombstone = msgspec.json.encode(_Tombstone(writer=uuid4().hex, table_uuid=uuid))
            if not self._is_compressed(version) and self.publish(target, tombstone):
                self._write_hint(version)
                return
        raise CommitFailed(
            f"table {'.'.join(self.table)} was not dropped: others commit to it all the time; try again",
            table=self.table,
            location=self.location,
        )

    def purge(self) -> None:
        top = self.top()
        if top is None or not top.is_tombstone:
            return  # somebody has created another table in the place
        self.file_system.delete_many([f"{self.folder}/{HINT}"])
        # Lowest first: the tombstone stands until the last step. Whoever creates a table meanwhile is beyond it.
        self.delete_versions(top.version)

    def delete_versions(self, last: int) -> None:
        """Delete every version up to one, the lowest first."""
        doomed = sorted((version, location) for version, location in self.listed() if version <= last)
        self.file_system.delete_many([location for _, location in doomed])

    def _is_compressed(self, version: int) -> bool:
        """Whether another engine has published that version as a compressed file."""
        return _first(self.file_system.stat_many(self._compressed(version))) is not None

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
        found = self._file_of(version)
        return None if found is None else found.location

    def _file_and_next(self, version: int) -> tuple[FileInfo | None, FileInfo | None]:
        """A version's file and the file of the next, looked for at once.

        Where the hint is right, that is all there is to do: four questions, and fewer would not do. That the version
        is there is asked since a purged table may leave a hint, and for its time and size, which tell it from another
        in its place and from a tombstone. The next is asked for under each name, since it alone tells that the hint is
        right: a hint is written after the commit, or not at all, and another engine may compress from one version to
        the next. A listing would be one request for all of that, and longer with every file of the table.

        The answers are of different moments. A version is never freed, so the one that is there was the last at the
        moment at which the next was not.
        """
        plain, *nexts = self.file_system.stat_many([self._plain(version), *self._names(version + 1)])
        found = plain or _first(self.file_system.stat_many(self._compressed(version)))
        return found, _first(nexts)

    def _file_of(self, version: int) -> FileInfo | None:
        """The file of one version: as a rule it is there, and plain."""
        with suppress(FileMissing):
            return self.file_system.stat(self._plain(version))
        return _first(self.file_system.stat_many(self._compressed(version)))

    def _names(self, version: int) -> list[str]:
        return [self._plain(version), *self._compressed(version)]

    def _plain(self, version: int) -> str:
        return f"{self.folder}/v{version}.metadata.json"

    def _compressed(self, version: int) -> list[str]:
        return [f"{self.folder}/{name.format(version)}" for name in _GZIP_NAMES]

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


def _first(found: Iterable[FileInfo | None]) -> FileInfo | None:
    return next((file for file in found if file is not None), None)


def _stamp(file: FileInfo) -> tuple[int, int] | None:
    """What tells a file from another under its name; None where nothing does.

    Stores tell times in ticks of up to a second or two: a file that is younger than some of them could be another by
    now that was put in its place within the same tick.
    """
    if file.modified_ms is None or time.time() * 1000 - file.modified_ms < _SETTLED_MS:
        return None
    return file.size, file.modified_ms


def is_tombstone(system: FileSystem, file: FileInfo) -> bool:
    """Whether a version is the mark of a table that was dropped; only files too small for metadata are read."""
    if file.size > _TOMBSTONE_MAX:
        return False
    try:
        return says_dropped(read_whole(system, file.location))
    except FileMissing:
        return False


def says_dropped(data: bytes) -> bool:
    """Whether a metadata file is a tombstone."""
    try:
        return len(data) <= _TOMBSTONE_MAX and msgspec.json.decode(data, type=_Tombstone).format_version == _DROPPED
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
