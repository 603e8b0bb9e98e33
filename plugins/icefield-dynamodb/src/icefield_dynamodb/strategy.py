"""The strategy ``dynamodb-lock``: writers of a table on a file system take turns.

The lock only lets writers take turns; a fence makes updates safe. On storage with an atomic create or rename, that step
is the fence: a holder that was paused past its lease cannot overwrite. On other storage, an item for each version
decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from icefield.abc import Committed, Conflict, FileSystem, FileSystemAbility, Pointer, Proposal
from icefield.toolkit import VersionedStrategy, publish_by_create, publish_by_rename, temporary_metadata_name

from icefield_dynamodb.item_strategy import ItemStrategy
from icefield_dynamodb.items import ItemTable
from icefield_dynamodb.lease import Lease, entity_of
from icefield_dynamodb.options import ClientOptions, LockOptions


class FencedByStore(VersionedStrategy):
    """Publishes under the lock, with the atomic step of the storage."""

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
    def _locks(self) -> ItemTable:
        return ItemTable.of(self._client, self._options.table)  # a forked process has connections of its own

    def publish(self, target: str, data: bytes) -> Pointer | None:
        temporary = f"{target.rpartition('/')[0]}/{temporary_metadata_name()}"
        lease = Lease(self._locks, self._options, entity_of(target), entity_of(temporary))
        if not lease.acquire(lambda: self.exists(target)):
            return None
        with lease:
            if FileSystemAbility.ATOMIC_CREATE in self.file_system.abilities:
                return publish_by_create(self.file_system, target, data)
            return publish_by_rename(self.file_system, target, data, temporary)


class DynamoDbLockStrategy(VersionedStrategy):
    """Takes a lock for each version, and uses the fence that the storage allows.

    Properties: ``lock.table`` and the other ``lock.*`` of Iceberg's Java lock manager; ``dynamodb.*`` and
    ``client.*`` state how DynamoDB is reached.
    """

    def __init__(
        self,
        table: tuple[str, ...],
        location: str,
        file_system: FileSystem,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(table, location, file_system, properties)
        fences = {FileSystemAbility.ATOMIC_CREATE, FileSystemAbility.ATOMIC_RENAME}
        kind = FencedByStore if file_system.abilities & fences else ItemStrategy
        self._delegate: VersionedStrategy = kind(table, location, file_system, properties)

    def __reduce__(self) -> tuple[Any, ...]:
        # The client is not pickled: another process makes its own.
        return type(self), (self.table, self.location, self.file_system, self.properties)

    def credentials(self) -> str | None:
        options = LockOptions.of(self.properties)
        return ItemTable.of(ClientOptions.of(self.properties), options.table).credentials

    def load(self) -> Pointer | None:
        return self._delegate.load()

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        return self._delegate.commit(base, proposal)

    def drop(self) -> None:
        self._delegate.drop()

    def purge(self) -> None:
        self._delegate.purge()

    def publish(self, target: str, data: bytes) -> Pointer | None:
        return self._delegate.publish(target, data)

    def forget(self, targets: Iterable[str]) -> None:
        self._delegate.forget(targets)
