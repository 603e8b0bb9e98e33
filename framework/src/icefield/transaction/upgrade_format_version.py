"""Raising a table's format version: a change of metadata only, no file is rewritten."""

from __future__ import annotations

from collections.abc import Callable

from icefield.errors import InvalidArgument
from icefield.metadata import TableMetadata
from icefield.metadata.updates import TableUpdate, UpgradeFormatVersion
from icefield.transaction.action import Action, ActionContext, Changes
from icefield.transaction.old_snapshots import OldSnapshots


class UpgradeTableVersion(Action):
    """Raise the format version.

    Old snapshots keep the sequence number 0, and get a manifest list if they have none; a v1 table without a uuid gets
    one.
    """

    def __init__(self, stage: Callable[[Action], None], format_version: int) -> None:
        super().__init__(stage)
        self._format_version = int(format_version)
        self._old = OldSnapshots()

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The upgrade. Raises ``InvalidArgument`` for a downgrade, ``UnsupportedFeature`` for an unknown version."""
        return Changes(tuple(upgrade(base, self._format_version, context, self._old)))


def upgrade(base: TableMetadata, format_version: int, context: ActionContext, old: OldSnapshots) -> list[TableUpdate]:
    """The update that raises the version; none when the table has it already.

    Manifest lists are written for snapshots without one, since only version 1 allows such snapshots.
    """
    if base.format_version > format_version:
        raise InvalidArgument(
            f"table '{'.'.join(context.name)}' has format version {base.format_version}, which cannot be lowered to "
            f"{format_version}; write its data to a new table instead",
            table=context.name,
        )
    lists = old.lists(base, context) if format_version > 1 else {}
    return [] if base.format_version == format_version else [UpgradeFormatVersion(format_version, lists)]
