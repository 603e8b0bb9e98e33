"""Tables on storage that can neither create nor rename atomically: an item for each version decides.

A version is a durable metadata file under a name of its own, and an item that names the file. The item is put only if
none exists. ``v<V>.metadata.json`` is a copy for other readers. A paused writer may write the copy late, or twice. Its
content is always the file that the item names, and this module does not read the copy while the item exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec
from icefield.abc import FileSystem, Pointer, PutMode
from icefield.errors import (
    CommitStateUnknown,
    FileMissing,
    IcefieldError,
    StorageError,
    UnsafeCommit,
)
from icefield.metadata import TableMetadata
from icefield.toolkit import (
    Top,
    VersionedStrategy,
    decodable,
    delete_quietly,
    file_system_metadata_name,
    is_tombstone,
    pointer_version,
    read_whole,
    temporary_metadata_name,
    version_of,
)

from icefield_dynamodb.items import KEY, Item, ItemTable, ReplyLost
from icefield_dynamodb.lease import Lease, entity_of
from icefield_dynamodb.options import ClientOptions, LockOptions

PREFIX = "icefield-version:"
FILE = "metadataFile"
TABLE_UUID = "tableUuid"
DROPPED = "droppedBy"
_TRIES = 4


@decodable
class _ItemIdentity(msgspec.Struct, rename="kebab"):
    """The fields of a metadata file that its item repeats: the table's uuid, and the mark of a tombstone."""

    table_uuid: str | None = None
    dropped_by: str | None = None


class ItemStrategy(VersionedStrategy):
    """Publishes a version under the lock, by putting its item if none exists."""

    def __init__(
        self,
        table: tuple[str, ...],
        location: str,
        file_system: FileSystem,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(table, location, file_system, properties)
        self._options = LockOptions.of(self.properties)
        self._client = ClientOptions.of(self.properties)
        ItemTable.of(self._client, self._options.table)  # creates the table, or raises

    @property
    def _items(self) -> ItemTable:
        return ItemTable.of(self._client, self._options.table)  # a forked process has connections of its own

    def top(self) -> Top | None:
        version = self.hint()
        current = None if version is None else self._pointer(version)
        if current is None:
            version = self.latest_listed()
            current = None if version is None else self._pointer(version)
        version = 0 if current is None else version or 0
        # The hint and the copies may be behind the items.
        while (later := self._successor(version)) is not None:
            version, current = version + 1, later
        if current is None:
            return None
        item = self._item(version)
        if item is not None:
            return Top(current, version, DROPPED in item)
        return Top(current, version, is_tombstone(self.file_system, self.file_system.stat(current.location)))

    def publish(self, target: str, data: bytes) -> Pointer | None:
        durable = f"{target.rpartition('/')[0]}/{temporary_metadata_name()}"
        identity = msgspec.json.decode(data, type=_ItemIdentity)
        record = {KEY: _key(target), FILE: durable}
        if uuid := identity.table_uuid:
            record[TABLE_UUID] = uuid
        if identity.dropped_by:
            record[DROPPED] = identity.dropped_by
        with self.file_system.open_output(durable) as sink:
            sink.write(data)
        try:
            won = self._wins(target, record)
        except CommitStateUnknown:
            raise
        except Exception:  # not an interrupt: it may strike after the item was put, which then names this file
            delete_quietly(self.file_system, durable)
            raise
        if not won:
            delete_quietly(self.file_system, durable)
            return None
        # The outcome is decided, so the copy may fail. If the file has no uuid, the next writer completes the copy.
        with suppress(Exception):
            self.file_system.put(target, data, PutMode.OVERWRITE)
            if not uuid:
                delete_quietly(self.file_system, durable)
                return self.pointer_to(target)
        return Pointer(durable, version_of(target))

    def withdraw(self, published: Pointer) -> None:
        for _ in range(_TRIES):
            with suppress(IcefieldError, ReplyLost):
                self._take_back(self._target(pointer_version(published)), published.location)
                return

    def _take_back(self, target: str, durable: str) -> None:
        self._items.delete(_key(target), {FILE: durable})
        other = self._item_of(target)
        if other is None:
            self.file_system.delete_many([target])
        else:  # our copy may have replaced the copy of the other item
            self.file_system.put(target, read_whole(self.file_system, other[FILE]), PutMode.OVERWRITE)
        self.file_system.delete_many([durable])

    def confirmed(self, base: Pointer, metadata: TableMetadata) -> Pointer | None:
        item = self._item(pointer_version(base))
        if item is not None:
            is_base = item.get(FILE) == base.location and item.get(TABLE_UUID) == metadata.table_uuid
            return base if is_base else None
        found = super().confirmed(base, metadata)
        if found is not None:
            self._allow_foreign(base.location)
        return found

    def delete_versions(self, last: int) -> None:
        # Copies of versions may be missing: only items decide which versions exist.
        self.forget(self._target(version) for version in range(1, last + 1))

    def forget(self, targets: Iterable[str]) -> None:
        for target in targets:
            self._forget(target)

    def _forget(self, target: str) -> None:
        item = self._item_of(target)
        if item is None:
            version = version_of(target)
            located = target if version is None else self.find(version)
            self.file_system.delete_many([] if located is None else [located])
            return
        self.file_system.delete_many([target])
        try:
            self._items.delete(_key(target), {FILE: item[FILE]})
        except ReplyLost as lost:
            raise StorageError(
                f"DynamoDB did not answer while {target} was deleted: it, and what was to be deleted after it, may be "
                "left",
                retryable=True,
                location=target,
            ) from lost
        self.file_system.delete_many([item[FILE]])

    def _wins(self, target: str, record: Item) -> bool:
        lease = Lease(self._items, self._options, entity_of(target), entity_of(record[FILE]))
        if not lease.acquire(lambda: self._is_published(target, record)):
            return False
        with lease:
            if self._item_of(target) is None and version_of(target) and self.exists(target):
                self._allow_foreign(target)
                return False
            return self._decide(target, record)

    def _decide(self, target: str, record: Item) -> bool:
        expected = None
        while True:
            try:
                if self._items.put(record, expected=expected):
                    return True
            except ReplyLost as lost:
                return self._settled(target, record, lost)
            # An earlier attempt of the client may have succeeded, so that an unreadable item may be our own.
            try:
                other = self._item_of(target)
            except StorageError as error:
                raise self._unknown(target, record, error) from error
            if other is not None and other.get(FILE) == record[FILE]:
                return True
            if other is None:
                expected = None
            elif self._is_leftover(target, record, other):
                expected = {FILE: other[FILE]}
            else:
                return False

    def _settled(self, target: str, record: Item, lost: ReplyLost) -> bool:
        try:
            item = self._item_of(target)
        except StorageError:
            item = None
        if item is None:  # the request may still be on its way
            raise self._unknown(target, record, lost) from lost
        return item.get(FILE) == record[FILE]

    def _unknown(self, target: str, record: Item, error: Exception) -> CommitStateUnknown:
        return CommitStateUnknown(
            f"DynamoDB did not answer ({error}) when {target} was decided, and does not say yet whether it happened; "
            f"nothing was deleted, {record[FILE]} among them: load the table again and look for the change before "
            "repeating it",
            table=self.table,
            location=target,
        )

    def _is_published(self, target: str, record: Item) -> bool:
        other = self._item_of(target)
        return other is not None and not self._is_leftover(target, record, other)

    def _is_leftover(self, target: str, record: Item, other: Item) -> bool:
        """Whether an item is left over from a dropped table or file, so that the next writer may replace it.

        The caller has read the item before, so the storage and the other items are read later than the item.
        """
        if TABLE_UUID not in record:
            return not self._completed(target, other)
        version = version_of(target) or 0
        if other.get(TABLE_UUID) == record[TABLE_UUID] or version < 2:
            return False
        # While our own base is alive, another table's version after it can only be left over from a stalled writer.
        base = self._item(version - 1)
        return base is not None and base.get(TABLE_UUID) == record[TABLE_UUID]

    def _completed(self, target: str, item: Item) -> bool:
        """Publish the copy for a writer that died after its item; False when neither its file nor the copy exists."""
        try:
            data = read_whole(self.file_system, item[FILE])
        except FileMissing:
            return self.exists(target)
        if not self.exists(target):
            self.file_system.put(target, data, PutMode.OVERWRITE)
        return True

    def _successor(self, version: int) -> Pointer | None:
        """The version after another, of the same table."""
        later = self._item(version + 1)
        if later is None:
            located = self.find(version + 1) if self._options.foreign_writers else None
            return None if located is None else Pointer(located, version + 1)
        current = self._item(version) if version else None
        if current is not None and DROPPED not in current and current.get(TABLE_UUID) != later.get(TABLE_UUID):
            return None
        return Pointer(later[FILE], version + 1)

    def _pointer(self, version: int) -> Pointer | None:
        item = self._item(version)
        located = self.find(version) if item is None else item.get(FILE)
        return None if located is None else Pointer(located, version)

    def _item(self, version: int) -> Item | None:
        return self._item_of(self._target(version))

    def _target(self, version: int) -> str:
        return f"{self.folder}/{file_system_metadata_name(version)}"

    def _item_of(self, target: str) -> Item | None:
        item = self._items.read(_key(target))
        if item is not None and not item.get(FILE):
            raise StorageError(
                f"the item of {target} in the DynamoDB table '{self._items.name}' names no metadata file: it is "
                "damaged, or of something else",
                location=target,
            )
        return item

    def _allow_foreign(self, location: str) -> None:
        if not self._options.foreign_writers:
            raise UnsafeCommit(
                f"{location} was written by another engine, and this storage can neither create nor rename "
                "atomically: nothing but the lease would keep the two apart. Stop the other writers and set "
                "'lock.foreign-writers' to 'true' to adopt the table, or use storage with conditional writes",
                location=location,
            )


def _key(target: str) -> str:
    return PREFIX + entity_of(target)
