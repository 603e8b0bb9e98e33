"""The commit of rewritten groups. It leaves out groups that conflict with concurrent commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from icefield.engine import FileChanges, Head, SnapshotProducer
from icefield.errors import ValidationFailed
from icefield.metadata import Operation, Snapshot
from icefield.storage import Mask
from icefield.transaction import Action, ActionContext, RewriteFiles

from icefield_maintenance.compaction.running import WrittenGroup


class RewriteGroups(SnapshotProducer):
    """Exchanges the files of groups that were read at ``since``.

    A group is left out, and is in ``lost``, if a concurrent commit removed one of its files, or added deletes that the
    new files would not honour. New files keep the sequence number of ``since``, so that concurrent equality deletes
    apply to them. New files of another partition spec get a new number: deletes of a partition apply in one spec.
    """

    def __init__(
        self,
        stage: Callable[[Action], None],
        groups: Sequence[WrittenGroup],
        since: Snapshot,
        *,
        keep_sequence_number: bool,
        branch: str,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(stage, branch=branch, snapshot_properties=snapshot_properties)
        self._groups = groups
        self._since = since
        self._keeps = keep_sequence_number
        self.won: list[WrittenGroup] = []
        self.lost: list[WrittenGroup] = []

    def operation(self, changes: FileChanges) -> Operation:
        """The rows stay the same."""
        return Operation.REPLACE

    @property
    def committed_id(self) -> int | None:
        """The id of the snapshot, where the last attempt changed anything."""
        return self._snapshot_id if self.won else None

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The changes for the groups that have not changed since they were read."""
        self.won, changes = self._standing(head, context, list(self._groups))
        kept = {id(group) for group in self.won}
        self.lost = [group for group in self._groups if id(group) not in kept]
        for note, groups in ((context.written.add, self.won), (context.written.retire, self.lost)):
            note(*(file.file_path for group in groups for file in group.files))
        return changes

    def _standing(
        self, head: Head, context: ActionContext, groups: list[WrittenGroup]
    ) -> tuple[list[WrittenGroup], FileChanges]:
        """The groups that may be exchanged, found by bisection, since mostly few are lost."""
        try:
            return groups, self._exchange(head, context, groups)
        except ValidationFailed:
            if len(groups) < 2:
                return [], FileChanges()
        half = len(groups) // 2
        standing = [
            *self._standing(head, context, groups[:half])[0],
            *self._standing(head, context, groups[half:])[0],
        ]
        return standing, self._exchange(head, context, standing) if standing else FileChanges()

    def _exchange(self, head: Head, context: ActionContext, groups: Sequence[WrittenGroup]) -> FileChanges:
        self._check_row_ids(head, groups)
        number = self._since.sequence_number if self._keeps and head.metadata.format_version > 1 else None
        removed: dict[int, Mask] = {}
        numbers: dict[tuple[str, int | None], int] = {}
        for respecified in (False, True):
            members = [each for each in groups if each.group.respecified is respecified]
            if not members:
                continue
            exchange = RewriteFiles(_not_staged, branch=self._branch).validate_from_snapshot(self._since.snapshot_id)
            for member in members:
                exchange.delete_file(*(task.file for task in member.group.tasks)).add_file(*member.files)
            if number is not None and not respecified:
                exchange.data_sequence_number(number)
                numbers.update(((file.file_path, None), number) for each in members for file in each.files)
            exchange.commit()
            for position, mask in exchange.find(head, context).removed.items():
                removed[position] = removed[position] | mask if position in removed else mask
        return FileChanges([file for group in groups for file in group.files], removed, numbers)

    def _check_row_ids(self, head: Head, groups: Sequence[WrittenGroup]) -> None:
        """Raise if rows without ids may have got some since they were read: the new files do not have these ids."""
        if head.metadata.format_version < 3 or head.snapshot == self._since:
            return
        for each in groups:
            if each.group.has_unnumbered_rows:
                path = each.group.paths[0]
                raise ValidationFailed(f"the rows of {path} may have got row ids meanwhile", files=(path,))


def _not_staged(action: Action) -> None:
    """Stage nothing: the exchanges of the groups are committed together."""
