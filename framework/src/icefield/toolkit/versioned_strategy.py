"""Tables on a file system: ``metadata/v<V>.metadata.json``, one name a version, never freed while the table lives.

The common part of all strategies for file-system tables: finding the current version, the rules of a commit, and
``version-hint.text``, which is best effort only. A plugin that has an atomic step of its own subclasses
``VersionedStrategy``. See "File System Tables" of the table specification.

Dropping a table is a commit as well: the version after the current one is a tombstone, and every version stays. So an
active writer meets a conflict, however long it was paused, and a table that is created there again continues the
version numbers. Only purging frees names, after everything else of the table: see
``docs/decisions/0016-tombstones.md``.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Any, Final, NamedTuple
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
    Proposal,
    PutMode,
)
from icefield.base.structs import decodable
from icefield.errors import (
    CommitFailed,
    FileMissing,
    InvalidMetadata,
    NoSuchTable,
    StorageError,
    UnsupportedFeature,
)
from icefield.metadata import TableMetadata, encode_metadata
from icefield.metadata.file_names import (
    MAX_VERSION_HINT,
    METADATA_FOLDER,
    VERSION_HINT,
    compressed_metadata_names,
    file_system_metadata_name,
    parse_version_hint,
    version_of,
    writes_gzip,
)
from icefield.toolkit.publishing import delete_quietly, read_whole
from icefield.toolkit.table_folders import table_uuid_in

_LOOKS: Final = 4
_DROP_TRIES: Final = 100
_SETTLED_MS: Final = 60_000
_TOMBSTONE_MAX: Final = 512
_DROPPED: Final = "this table was dropped: purge it, or remove its folder, before another engine creates one here"


@decodable
class _Tombstone(msgspec.Struct, rename="kebab"):
    """The content of the version after the last version of a dropped table.

    ``format_version`` is a text instead of a number, because other engines show it in their errors. ``writer`` makes
    two tombstones differ: so a lost reply can be distinguished from a lost race.
    """

    format_version: str = _DROPPED
    dropped_by: str = "icefield"
    writer: str = ""
    table_uuid: str | None = None


def pointer_version(pointer: Pointer) -> int:
    """The version that a pointer names. Raises ``InvalidMetadata`` if this is no version of a file-system table."""
    version = pointer.version if pointer.version is not None else version_of(pointer.location)
    if version is None:
        raise InvalidMetadata(f"{pointer.location} is no version of a file-system table", location=pointer.location)
    return version


class Top(NamedTuple):
    """The highest version of a table, and whether it is a tombstone."""

    pointer: Pointer
    version: int
    is_tombstone: bool


class VersionedStrategy(CommitStrategy):
    """The protocol of file-system tables, with the methods that a catalog of type ``directory`` needs of a strategy.

    A subclass implements ``publish``, its atomic step, and ``forget`` if it keeps more of a name than the file. Only
    these two methods publish and forget versions of tables and markers of namespaces. Names with a leading underscore
    are free for the subclass; the other names are listed in ``docs/plugins/commit-strategy.md``.
    """

    @abstractmethod
    def publish(self, target: str, data: bytes) -> Pointer | None:
        """Claim a name: publish a small file, whole, if the name is free; return its pointer if it is ours, else None.

        One atomic step. Raises ``CommitStateUnknown`` if the reply was lost and reading back does not determine the
        outcome; any other error means that nothing was published.
        """

    def forget(self, targets: Iterable[str]) -> None:
        """Free names: delete the files, and all other records of the names, in the order given.

        Called for names that no commit can use any more: the versions of a purged table, the markers of a dropped
        namespace. A name that is free already is no error.
        """
        self.file_system.delete_many(list(targets))

    def pointer_to(self, target: str) -> Pointer:
        """The result of ``publish`` for a file under exactly the claimed name."""
        return Pointer(target, version_of(target))

    def withdraw(self, published: Pointer) -> None:
        """Take back a version that was published although its table was dropped meanwhile. Best effort."""
        delete_quietly(self.file_system, published.location)

    @property
    def folder(self) -> str:
        """Where the metadata files are."""
        return f"{self.location}/{METADATA_FOLDER}"

    def load(self) -> Pointer | None:
        top = self.top()
        return None if top is None or top.is_tombstone else top.pointer

    def is_probably_current(self, known: Pointer) -> bool:
        # Each commit ends with the hint, and purging begins with it. An old hint leads to a conflict, and then to load.
        return self.hint() == pointer_version(known)

    def top(self) -> Top | None:
        """The highest version, which may be a tombstone."""
        version = self.hint()
        found, later = (None, None) if version is None else self.__file_and_next(version)
        if version is None or found is None:
            version = self.latest_listed()
            found, later = (None, None) if version is None else self.__file_and_next(version)
        if version is None or found is None:
            return None
        # The hint may be behind: a later writer may not have updated it yet.
        while later is not None:
            version, found = version + 1, later
            later = self.__file_of(version + 1)
        pointer = Pointer(found.location, version, _stamp(found))
        return Top(pointer, version, is_tombstone(self.file_system, found))

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        metadata = proposal.metadata
        self.__refuse_unsafe(metadata)
        seen = None
        if base is None:
            top = self.top()
            if top is not None and not top.is_tombstone:
                return Conflict(top.pointer)
            version = 1 if top is None else top.version + 1
        else:
            version = pointer_version(base) + 1
            seen = self.confirmed(base, metadata)
            if seen is None:
                return Conflict(self.load())
        if self.__is_compressed(version, base):
            return Conflict(self.load())
        published = self.publish(self.__plain(version), encode_metadata(metadata))
        if not published:
            return Conflict()
        if seen is not None and not self.__still_there(seen, metadata):
            # The table was dropped meanwhile: a version alone, or next to another table's, must not stay.
            with suppress(Exception):
                self.withdraw(published)
            return Conflict()
        self.__write_hint(version)
        return Committed(published)

    def drop(self) -> None:
        for _ in range(_DROP_TRIES):
            current = self.load()
            if current is None:
                raise NoSuchTable(f"no table {'.'.join(self.table)} at {self.location}", table=self.table)
            version = pointer_version(current) + 1
            target = self.__plain(version)
            try:
                uuid = table_uuid_in(self.file_system, current.location)
            except FileMissing:  # removed by another engine
                continue
            except InvalidMetadata:  # a table that cannot be read can be dropped
                uuid = None
            tombstone = msgspec.json.encode(_Tombstone(writer=uuid4().hex, table_uuid=uuid))
            if not self.__is_compressed(version, current) and self.publish(target, tombstone):
                self.__write_hint(version)
                return
        raise CommitFailed(
            f"table {'.'.join(self.table)} was not dropped: others commit to it all the time; try again",
            table=self.table,
            location=self.location,
        )

    def tables_in(self, folder: str) -> Iterable[tuple[str, str]]:
        location, _, name = folder.rpartition("/")
        if name != METADATA_FOLDER or location == self.location:
            return ()
        other = copy(self)
        other.location = location
        found = other.load()
        return () if found is None else ((location, found.location),)

    def purge(self) -> None:
        top = self.top()
        if top is None or not top.is_tombstone:
            return  # another table was created here meanwhile
        self.file_system.delete_many([f"{self.folder}/{VERSION_HINT}"])
        # Lowest first: the tombstone stands until the last step. A table created meanwhile has later versions.
        self.delete_versions(top.version)

    def delete_versions(self, last: int) -> None:
        """Forget every version up to one, the lowest first."""
        doomed = sorted((version, location) for version, location in self.listed() if version <= last)
        self.forget([location for _, location in doomed])

    def __is_compressed(self, version: int, base: Pointer | None) -> bool:
        """Whether another engine has published that version as a compressed file."""
        names = self.__compressed(version)
        if base is not None and base.location not in self.__compressed(version - 1)[1:]:
            del names[1:]  # an engine that writes the old form of the name wrote the base under it, too
        return _first(self.file_system.stat_many(names)) is not None

    def __refuse_unsafe(self, metadata: TableMetadata) -> None:
        properties = metadata.properties
        if properties.get("write.metadata.delete-after-commit.enabled", "false").lower() == "true":
            raise self.__refused(
                "write.metadata.delete-after-commit.enabled", "a freed version name could be won twice"
            )
        if properties.get("write.metadata.path"):
            raise self.__refused("write.metadata.path", "the current version is found by its name in one folder")
        if writes_gzip(properties):
            raise self.__refused(
                "write.metadata.compression-codec",
                "a version would have another name under gzip, and could be won twice",
            )

    def __refused(self, name: str, why: str) -> UnsupportedFeature:
        return UnsupportedFeature(
            f"the property {name} is refused for tables on a file system: {why}; remove it, or use a metastore catalog",
            table=self.table,
        )

    def confirmed(self, base: Pointer, metadata: TableMetadata) -> Pointer | None:
        """The base with its present stamp, if its file exists and belongs to the table of ``metadata``; else None.

        A file with the stamp of ``base`` is unchanged and is not read again. The stamp of the result serves for the
        next call.
        """
        try:
            stamp = _stamp(self.file_system.stat(base.location))
            if stamp is None or stamp != base.stamp:
                uuid = table_uuid_in(self.file_system, base.location)
                if uuid is not None and uuid != metadata.table_uuid:
                    return None
        except FileMissing:
            return None
        return replace(base, stamp=stamp)

    def __still_there(self, base: Pointer, metadata: TableMetadata) -> bool:
        """Check as ``confirmed`` does, but after publishing: a failed check must not undo a finished commit."""
        for _ in range(_LOOKS):
            try:
                return self.confirmed(base, metadata) is not None
            except StorageError as error:
                if not error.retryable:
                    break
            except Exception:
                break
        return True

    def find(self, version: int) -> str | None:
        """The location of a version's file, however it is spelt, or None."""
        found = self.__file_of(version)
        return None if found is None else found.location

    def __file_and_next(self, version: int) -> tuple[FileInfo | None, FileInfo | None]:
        """A version's file and the file of the next version, requested together.

        If the hint is right, these four requests are enough, and fewer would not do. The request for the version itself
        is needed since a purged table may leave a hint. Its time and size also distinguish the file from another one in
        its place and from a tombstone. The next version is requested under every name, since only its absence shows
        that the hint is right: a hint is written after the commit, or not at all, and another engine may compress from
        one version to the next. A listing would be a single request, but longer with every file of the table.

        The responses are of different times. A version is never freed, so a version that is there was the last one at
        the time when the next was missing.
        """
        names = [self.__plain(version), self.__plain(version + 1), *self.__compressed(version + 1)]
        plain, *nexts = self.file_system.stat_many(names)
        found = plain or _first(self.file_system.stat_many(self.__compressed(version)))
        return found, _first(nexts)

    def __file_of(self, version: int) -> FileInfo | None:
        """The file of one version; the plain name is tried first, since it usually exists."""
        with suppress(FileMissing):
            return self.file_system.stat(self.__plain(version))
        return _first(self.file_system.stat_many(self.__compressed(version)))

    def __plain(self, version: int) -> str:
        return f"{self.folder}/{file_system_metadata_name(version)}"

    def __compressed(self, version: int) -> list[str]:
        return [f"{self.folder}/{name}" for name in compressed_metadata_names(version)]

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
            source = self.file_system.open_input(f"{self.folder}/{VERSION_HINT}")
        except FileMissing:
            return None
        try:
            return parse_version_hint(source.read(MAX_VERSION_HINT))
        finally:
            source.close()

    def __write_hint(self, version: int) -> None:
        with suppress(Exception):  # the commit is done; readers walk on from an old hint
            self.file_system.put(f"{self.folder}/{VERSION_HINT}", str(version).encode(), PutMode.OVERWRITE)

    def latest_listed(self) -> int | None:
        """The highest version with a file, or None."""
        return max((version for version, _ in self.listed()), default=None)

    def listed(self) -> list[tuple[int, str]]:
        """Every version with a file, and the location of the file."""
        if FileSystemAbility.LIST not in self.file_system.abilities:
            return self.__probed()
        found = []
        for info in self.file_system.list_files(self.folder, shallow=True):
            version = version_of(info.location)
            if version is not None:
                found.append((version, info.location))
        return found

    def __probed(self) -> list[tuple[int, str]]:
        """Versions from 1 upward, where the store cannot list."""
        found = []
        version = 1
        while (location := self.find(version)) is not None:
            found.append((version, location))
            version += 1
        return found


def _first(found: Iterable[FileInfo | None]) -> FileInfo | None:
    return next((file for file in found if file is not None), None)


def _stamp(file: FileInfo) -> tuple[Any, ...] | None:
    """The stamp that distinguishes a file from another one under its name; None if nothing does.

    If the store sends an entity tag, the stamp has this tag, however young the file is. Otherwise the stamp has the
    time. Stores state times in ticks of up to two seconds, so a very young file could have been replaced within the
    same tick: it gets no stamp.
    """
    if file.etag is not None:
        return file.size, file.etag
    if file.modified_ms is None or time.time() * 1000 - file.modified_ms < _SETTLED_MS:
        return None
    return file.size, file.modified_ms


def is_tombstone(system: FileSystem, file: FileInfo) -> bool:
    """Whether a version is a tombstone; only files too small for metadata are read."""
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
