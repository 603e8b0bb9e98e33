"""Scans of the row changes between two snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from icefield.abc import OperationProgress
from icefield.base.concurrency import lazy
from icefield.errors import InvalidArgument
from icefield.metadata.snapshots import Snapshot
from icefield.partitioning.spec import normalised_key
from icefield.scan.base_scan import BaseScan
from icefield.scan.changes.planning import ChangelogPlanner
from icefield.scan.changes.reading import read_changes
from icefield.scan.changes.tasks import ChangedFile, ChangelogContext, ChangelogScanTask
from icefield.scan.reading import limited
from icefield.scan.snapshot_range import SnapshotRange
from icefield.schema import Schema, schema_to_arrow
from icefield.types.reserved import CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT_ID, ROW_ID

_CHANGES = (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID)


@dataclass(frozen=True, repr=False)
class IncrementalChangelogScan(BaseScan):
    """The rows that the snapshots of a range inserted, deleted and updated, under the table's current schema.

    Each row has the columns ``_change_type`` (INSERT, DELETE, UPDATE_BEFORE or UPDATE_AFTER), ``_change_ordinal`` (the
    number of its snapshot among the snapshots that changed rows, from 0) and ``_commit_snapshot_id``. If
    ``selected_fields`` names some of them, only these are returned. Changes are in the order of their snapshots; within
    a snapshot deletes precede inserts, and the two rows of an update are adjacent. Snapshots of the operation
    ``replace`` change no row. Only matching rows are compared: a row that matches only after an update counts as
    inserted.

    ``remove_carryovers`` drops unchanged rows of rewritten files, which a snapshot deletes and inserts with the same
    values. ``net_changes`` drops changes that later changes undid. ``compute_updates`` turns a deleted and an inserted
    row with equal ``identifier_columns`` into an update, within a snapshot, or within the range with ``net_changes``.
    It is on by default if ``identifier_columns`` are given. Without them the identifier fields of the schema are used,
    or else the row ids in version 3.
    """

    range: SnapshotRange = field(default_factory=SnapshotRange)
    net_changes: bool = False
    compute_updates: bool | None = None
    identifier_columns: Sequence[str] = ()
    remove_carryovers: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        names = self.identifier_columns
        object.__setattr__(self, "identifier_columns", (names,) if isinstance(names, str) else tuple(names))
        if not self.remove_carryovers and (self.net_changes or self._computes_updates):
            raise InvalidArgument(
                "net changes and updates are found among rows that are not carried over; leave remove_carryovers as it "
                "is, or net_changes and compute_updates out"
            )
        if self.compute_updates is False and self.identifier_columns:
            raise InvalidArgument("identifier_columns are there to compute updates; leave compute_updates=False out")

    @lazy
    def snapshots(self) -> Sequence[Snapshot]:
        """The snapshots of the range, oldest first. Raises as ``SnapshotRange.snapshots`` does."""
        return self.range.snapshots(self.metadata, self._called)

    @lazy
    def projection(self) -> Schema:
        """The result columns: table columns, selected metadata columns, and the columns that state the change."""
        return Schema(*self._rows_projection.fields, *self._changes.fields)

    @lazy
    def changelog_context(self) -> ChangelogContext:
        """The context for reading the tasks of this scan, here or on another machine. Raises ``InvalidArgument``."""
        given, keys = self._rows_projection, self._keys
        others = [one for one in given.fields if one.field_id not in self.schema.field_ids]
        by_id = ROW_ID.field_id in keys
        if by_id and ROW_ID not in others:
            others.append(ROW_ID)
        matched = Schema(*self.schema.fields, *others)
        count = len(self.schema.fields)
        first = [matched.fields.index(ROW_ID)] if by_id else []
        identifiers = {*keys, *self.schema.identifier_field_ids}
        table = sorted(range(count), key=lambda place: matched.fields[place].field_id not in identifiers)
        return ChangelogContext(self.context, self._changes, matched, (*first, *table), keys, self.net_changes)

    def plan_files(self) -> Iterator[ChangelogScanTask]:
        """Tasks in the order of the snapshots: single files, or groups of files with rows that must be compared.

        Raises ``InvalidMetadata`` for a damaged manifest or manifest list.
        """
        planned = self.planner().changes()
        if self.net_changes:
            planned = iter((iter([changed for changes in planned for changed in changes]),))
        for changes in planned:
            yield from self._tasks(changes)

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The changes as a stream of batches, read ahead of the consumer in bounded memory."""
        batches = read_changes(self.plan_files(), self.changelog_context)
        if self.limit is not None:
            batches = limited(batches, self.limit)
        batches = self.io.listeners.counting(batches, OperationProgress(self.identifier, "scan", "rows", 0, None))
        return pa.RecordBatchReader.from_batches(schema_to_arrow(self.projection), batches)

    def count(self) -> int:
        """The number of changes, at most ``limit``."""
        return sum(batch.num_rows for batch in self.select(CHANGE_TYPE.name).to_arrow_batch_reader())

    def planner(self) -> ChangelogPlanner:
        """The planner of this scan."""
        return ChangelogPlanner(
            self.metadata, self.io, self.snapshots, self.schema, self._bound_filter, identifier=self.identifier
        )

    def _tasks(self, changes: Iterator[ChangedFile]) -> Iterator[ChangelogScanTask]:
        first = next(changes, None)
        if first is None:
            return
        if not self.remove_carryovers or (first.before is None and not self.net_changes):
            # Added files come last: if the first file is one, no deleted rows follow to compare with.
            yield ChangelogScanTask((first,))
            yield from (ChangelogScanTask((changed,)) for changed in changes)
            return
        for files in self._groups([first, *changes]):
            if any(one.before for one in files) and any(one.after for one in files):
                yield ChangelogScanTask(tuple(files), is_matched=True)
            else:
                yield from (ChangelogScanTask((changed,)) for changed in files)

    def _groups(self, files: list[ChangedFile]) -> Iterable[list[ChangedFile]]:
        """Groups of files by partition, if rows of different partitions can neither be equal nor share a key."""
        specs = {changed.task.spec_id for changed in files}
        spec = self.metadata.spec_by_id(next(iter(specs)))
        sources = {each.source_id for each in spec.fields}
        known = self.schema.field_ids if not self._keys else self.schema.field_ids & set(self._keys)
        if len(specs) > 1 or not sources or not sources <= known:
            return (files,)
        groups: dict[tuple[object, ...], list[ChangedFile]] = {}
        for changed in files:
            groups.setdefault(tuple(normalised_key(changed.task.file.partition)), []).append(changed)
        return groups.values()

    @property
    def _computes_updates(self) -> bool:
        return bool(self.identifier_columns) if self.compute_updates is None else self.compute_updates

    @lazy
    def _keys(self) -> tuple[int, ...]:
        """The ids of the columns that identify a row; empty where updates are not computed."""
        if not self._computes_updates:
            return ()
        if self.identifier_columns:
            found = [self.schema.find_field(name, self.case_sensitive) for name in self.identifier_columns]
            for name, column in zip(self.identifier_columns, found, strict=True):
                if column.field_type.is_nested:
                    raise InvalidArgument(f"column '{name}' of type {column.field_type} cannot identify a row")
            return tuple(column.field_id for column in found)
        if self.schema.identifier_field_ids:
            return tuple(self.schema.identifier_field_ids)
        if self.metadata.format_version >= 3:
            return (ROW_ID.field_id,)
        raise InvalidArgument(
            "nothing identifies the rows of the table, so that updates cannot be computed: give identifier_columns, or "
            "set the identifier fields of the schema; tables of version 3 have row ids"
        )

    @lazy
    def _changes(self) -> Schema:
        """The columns that state the change: all of them, or the selected ones."""
        chosen = [column for column in _CHANGES if column.name in self.selected_fields]
        return Schema(*(chosen or _CHANGES))

    @lazy
    def _rows_projection(self) -> Schema:
        own = {column.name for column in _CHANGES}
        for name in own:
            if self.schema.has_field(name):
                raise InvalidArgument(
                    f"the table has a column '{name}', which here states the change; rename it to scan changes",
                    column=name,
                )
        return self._projected(tuple(name for name in dict.fromkeys(self.selected_fields) if name not in own))
