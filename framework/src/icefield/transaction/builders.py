"""Changes of a table that callers build step by step, in a transaction or in a commit each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from icefield import transaction as changes
from icefield.metadata import MAIN_BRANCH, TableMetadata

if TYPE_CHECKING:
    from icefield.transaction.action import Action
    from icefield.transaction.branches.manage_snapshots import ManageSnapshots
    from icefield.transaction.conflicts import IsolationLevel
    from icefield.transaction.metadata_changes.update_layout import UpdateSortOrder, UpdateSpec
    from icefield.transaction.metadata_changes.update_schema import UpdateSchema
    from icefield.transaction.metadata_changes.update_statistics import UpdateStatistics
    from icefield.transaction.row_level.merge_rows import Merge
    from icefield.transaction.rows import Rows
    from icefield.transaction.update_snapshot import UpdateSnapshot

_NO_STRINGS: Mapping[str, str] = {}


class ChangeBuilders(ABC):
    """Begins changes. The ``commit`` of a change commits it to a table, or adds it to a transaction."""

    @property
    @abstractmethod
    def shape(self) -> TableMetadata:
        """The schema, spec, properties and location that new files follow."""

    @abstractmethod
    def stage(self, action: Action) -> None:
        """Add a change to the transaction. A table commits it at once."""

    def merge(
        self,
        source: Rows,
        on: Sequence[str] | Mapping[str, str] | str | None = None,
        *,
        source_name: str = "source",
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = _NO_STRINGS,
        isolation_level: IsolationLevel | str | None = None,
    ) -> Merge:
        """Begin a merge: ``table.merge(df, "id").when_matched_update_all().when_not_matched_insert_all().commit()``.

        ``on`` names the columns of the key, or maps key columns to columns of the source; the schema's identifier
        fields by default. Conditions and values refer to the source as a struct named ``source_name``.
        """
        return changes.Merge(
            self.stage,
            self.shape,
            source,
            on,
            source_name=source_name,
            case_sensitive=case_sensitive,
            branch=branch,
            snapshot_properties=snapshot_properties,
            isolation_level=isolation_level,
        )

    def update_snapshot(
        self, snapshot_properties: Mapping[str, str] = _NO_STRINGS, branch: str | None = MAIN_BRANCH
    ) -> UpdateSnapshot:
        """Add and remove files that the caller has written."""
        return changes.UpdateSnapshot(self.stage, branch=branch, snapshot_properties=snapshot_properties)

    def update_schema(self, allow_incompatible_changes: bool = False, case_sensitive: bool = True) -> UpdateSchema:
        """Change the columns: ``with table.update_schema() as update: update.add_column("x", "long")``."""
        return changes.UpdateSchema(self.stage, self.shape, allow_incompatible_changes, case_sensitive)

    def update_spec(self, case_sensitive: bool = True) -> UpdateSpec:
        """Change how new files are partitioned."""
        return changes.UpdateSpec(self.stage, self.shape, case_sensitive)

    def update_sort_order(self, case_sensitive: bool = True) -> UpdateSortOrder:
        """Change the order in which writers should sort rows."""
        return changes.UpdateSortOrder(self.stage, self.shape, case_sensitive)

    def manage_snapshots(self) -> ManageSnapshots:
        """Create, move and remove branches and tags; roll back; publish staged snapshots."""
        return changes.ManageSnapshots(self.stage)

    def update_statistics(self) -> UpdateStatistics:
        """Set and remove the files with statistics of snapshots, and with statistics of their partitions."""
        return changes.UpdateStatistics(self.stage)
