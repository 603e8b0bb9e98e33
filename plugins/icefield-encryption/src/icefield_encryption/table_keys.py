"""The service ``table.encryption``: what is encrypted of a table, new keys, and encrypting a plain table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.metadata import (
    GC_ENABLED,
    AddEncryptionKey,
    EncryptedKey,
    Operation,
    RemoveEncryptionKey,
    TableMetadata,
    TableUpdate,
    get_bool,
)
from icefield.transaction import Action, ActionContext, Changes

from icefield_encryption.key_metadata import VERSION
from icefield_encryption.standard import StandardEncryption, is_key_encryption_key, usable_key

if TYPE_CHECKING:
    from icefield import Table


@dataclass(frozen=True, slots=True)
class EncryptionStatus:
    """The master key of a table, and its files over all snapshots, with a count of the plain ones."""

    key_id: str | None
    """The id of the master key, as the table states it; None for a plain table."""
    key_version: str | None
    """The version of the master key that wraps new keys, if its service has versions."""
    key_encryption_keys: int
    manifest_lists: int
    plain_manifest_lists: int
    manifests: int
    plain_manifests: int
    files: int
    """Data files and delete files."""
    plain_files: int
    statistics: int
    """Files of statistics: of columns, and of partitions."""
    plain_statistics: int

    @property
    def is_complete(self) -> bool:
        """Whether no snapshot refers to a plain file."""
        plain = self.plain_manifest_lists, self.plain_manifests, self.plain_files, self.plain_statistics
        return self.key_id is not None and not any(plain)


class TableKeys:
    """The encryption of one table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __repr__(self) -> str:
        return f"TableKeys({self._table.name()!r})"

    def status(self) -> EncryptionStatus:
        """Count the files of all snapshots. Raises ``KeyUnavailable`` without the master key."""
        metadata = self._table.metadata
        key_id = metadata.properties.get("encryption.key-id")
        version = None
        if key_id is not None:
            version = self._table.io.encryption.key_service().master_key(key_id).version
        files, plain_files = _counted(self._table.inspect.all_files(), "file_path")
        manifests, plain_manifests = _counted(self._table.inspect.all_manifests(), "path")
        return EncryptionStatus(
            key_id,
            version,
            sum(map(is_key_encryption_key, metadata.encryption_keys)),
            len(metadata.snapshots),
            sum(each.key_id is None for each in metadata.snapshots),
            manifests,
            plain_manifests,
            files,
            plain_files,
            len(metadata.statistics_files),
            len(plain_statistics(metadata)),
        )

    def rotate(self) -> None:
        """Make a new key-encryption key, and wrap the older ones anew with the present version of the master key.

        New manifest lists use the new key. No file is rewritten. Afterwards no earlier version of the master key is
        needed. Raises ``InvalidArgument`` for a plain table.
        """
        with self._table.transaction() as tx:
            RotateKeys(tx.stage).commit()

    def encrypt(self, key_id: str) -> EncryptionStatus:
        """Encrypt a plain table with a master key: rewrites it as ``rewrite`` does.

        Sets the format version to 3. No plain file can be reached afterwards, and the plain files are deleted. Raises
        ``UnsupportedFeature``, and changes nothing, for a table whose ``gc.enabled`` is false.
        """
        table, name = self._table, ".".join(self._table.name())
        if not get_bool(table.metadata.properties, GC_ENABLED):
            raise UnsupportedFeature(
                f"the property {GC_ENABLED.name} of table {name} is false, so that its plain files would stay; "
                "set it to true if no other table shares them"
            )
        table.io.encryption.key_service().master_key(key_id)
        if table.metadata.properties.get("encryption.key-id") is None:
            table.set_properties({"format-version": str(max(3, table.format_version)), "encryption.key-id": key_id})
        table.set_properties({"encryption.key-id": key_id})
        return self.rewrite()

    def rewrite(self) -> EncryptionStatus:
        """Write the rows of every branch and tag anew, with new keys, and expire all other snapshots with their files.

        Tags move to new snapshots with the same rows. Snapshots outside of branches and tags expire, such as staged
        ones. A call after an error or an interrupt completes the rewrite.
        """
        table = self._table
        table.refresh()
        moved: dict[int, int] = {}
        for name, ref in table.refs().items():
            if ref.is_branch:
                self._rewrite_branch(name)
                head = table.refs()[name].snapshot_id
                if self._has_rows_of(head, ref.snapshot_id):
                    moved[ref.snapshot_id] = head
        for name, ref in table.refs().items():
            if not ref.is_branch:
                self._move_tag(name, ref.snapshot_id, moved)
        heads = {ref.snapshot_id for ref in table.refs().values()}
        old = [each.snapshot_id for each in table.snapshots() if each.snapshot_id not in heads]
        if old:
            table.maintenance.expire_snapshots(snapshot_ids=old)
            table.refresh()
        return self.status()

    def _rewrite_branch(self, branch: str) -> None:
        table = self._table
        maintenance = table.maintenance
        maintenance.rewrite_data_files(rewrite_all=True, branch=branch)
        maintenance.remove_dangling_deletes(branch=branch)
        maintenance.rewrite_manifests(branch=branch)
        table.refresh()

    def _has_rows_of(self, head: int, before: int) -> bool:
        """Whether a snapshot has the rows of an earlier one: nothing but rewrites lies between them."""
        for snapshot_id in self._table.metadata.ancestor_ids(head):
            if snapshot_id == before:
                return True
            snapshot = self._table.metadata.snapshot_by_id(snapshot_id)
            if snapshot is None or snapshot.operation is not Operation.REPLACE:
                return False
        return False

    def _move_tag(self, tag: str, snapshot_id: int, moved: dict[int, int]) -> None:
        """Point a tag to a rewrite of its snapshot, which a branch of its own makes if no other branch has made one."""
        table, branch = self._table, f"rewrite-of-{snapshot_id}"
        if snapshot_id not in moved:
            if branch not in table.refs():  # an interrupted call may have left it
                table.manage_snapshots().create_branch(snapshot_id, branch).commit()
            self._rewrite_branch(branch)
            moved[snapshot_id] = table.refs()[branch].snapshot_id
        change = table.manage_snapshots().replace_tag(tag, moved[snapshot_id])
        if branch in table.refs():
            change.remove_branch(branch)
        change.commit()
        table.refresh()


class RotateKeys(Action):
    """Adds a new key-encryption key, and wraps the others anew."""

    def __init__(self, stage: Callable[[Action], None]) -> None:
        super().__init__(stage)
        self._made: EncryptedKey | None = None

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The keys to replace and to add. Raises ``InvalidArgument`` for a plain table."""
        if "encryption.key-id" not in base.properties:
            raise InvalidArgument(f"table {'.'.join(context.name)} is not encrypted, and has no keys to rotate")
        encryption = context.io.encryption
        assert isinstance(encryption, StandardEncryption)
        if self._made is not None and base.encryption_keys.has(self._made.key_id):
            return Changes()
        updates: list[TableUpdate] = []
        for key in base.encryption_keys:
            if is_key_encryption_key(key):
                updates += [RemoveEncryptionKey(key.key_id), AddEncryptionKey(encryption.wrapped_anew(base, key))]
        self._made = self._made or encryption.new_key_encryption_key(base)
        return Changes((*updates, AddEncryptionKey(self._made)))


def needs_rotation(metadata: TableMetadata) -> bool:
    """Whether no key-encryption key of an encrypted table may encrypt new keys any more."""
    return any(map(is_key_encryption_key, metadata.encryption_keys)) and usable_key(metadata) is None


def plain_statistics(metadata: TableMetadata) -> list[str]:
    """The locations of plain files of statistics, which have no key in the table. Java's library writes them."""
    files = [each.statistics_path for each in metadata.statistics_files]
    return [location for location in files if not metadata.encryption_keys.has(location)]


def _counted(shown: pa.Table, name: str) -> tuple[int, int]:
    """How many files there are, each once, and how many of them are plain."""
    # Impala sets other key metadata, on plain files.
    has_key = pc.starts_with(shown.column("key_metadata"), bytes([VERSION]))
    plain = shown.filter(pc.invert(pc.fill_null(has_key, False)))
    return tuple(len(pc.unique(part.column(name))) for part in (shown, plain))  # type: ignore[return-value]
