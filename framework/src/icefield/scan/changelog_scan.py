"""Scans of what changed between two snapshots, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import pyarrow as pa

from icefield.base.concurrency import lazy
from icefield.errors import InvalidArgument
from icefield.expressions import bind
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


@dataclass(frozen=True)
class IncrementalChangelogScan(BaseScan):
    """The rows that the snapshots of a range inserted, deleted and updated, under the table's current schema.

    Each row comes with ``_change_type`` (INSERT, DELETE, UPDATE_BEFORE or UPDATE_AFTER), ``_change_ordinal`` (the place
    of its snapshot among those that changed rows, from 0) and ``_commit_snapshot_id``; with some of these alone where
    ``selected_fields`` names them. Changes come in the order of their snapshots, within one deletes before inserts and
    an update's two rows together. Snapshots of the operation ``replace`` changed no row. Only rows that match the
    filter count: a row that an update made match was inserted.

    ``remove_carryovers``: whether rows that a snapshot deleted and inserted with the same values are left out, as
    those of a rewritten file that it did not change. ``net_changes``: whether changes that later ones undid are left
    out. ``compute_updates``: whether a deleted and an inserted row of one snapshot (with ``net_changes`` of the range)
    that agree in ``identifier_columns`` are an update; by default where such columns are given. Without them the
    schema's identifier fields count, and where it has none, in version 3, the rows' ids.
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
        return self.range.snapshots(self.metadata)

    @lazy
    def projection(self) -> Schema:
        """The columns that the scan gives: of the table, metadata columns as selected, those that state the change."""
        return Schema(*self._rows_projection.fields, *self._changes.fields)

    @lazy
    def changelog_context(self) -> ChangelogContext:
        """What the tasks of this scan are read with, here or on another machine. Raises ``InvalidArgument``."""
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
        """Tasks in the order of the snapshots: changed files alone, or together where their rows must be compared.

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
        return pa.RecordBatchReader.from_batches(schema_to_arrow(self.projection), batches)

    def count(self) -> int:
        """How many changes there are, at most ``limit``."""
        return sum(batch.num_rows for batch in self.select(CHANGE_TYPE.name).to_arrow_batch_reader())

    def planner(self) -> ChangelogPlanner:
        """The planner of this scan."""
        row_filter = bind(self.schema, self._expression, self.case_sensitive)
        return ChangelogPlanner(
            self.metadata, self.io, self.snapshots, self.schema, row_filter, identifier=self.identifier
        )

    def with_net_changes(self, net_changes: bool = True) -> Self:
        """With or without changes that later ones of the range undid."""
        return replace(self, net_changes=net_changes)

    def _tasks(self, changes: Iterator[ChangedFile]) -> Iterator[ChangelogScanTask]:
        first = next(changes, None)
        if first is None:
            return
        if not self.remove_carryovers or not (first.may_delete or self.net_changes):
            # Added files come last: after one of them there is nothing to compare it with.
            yield ChangelogScanTask((first,))
            yield from (ChangelogScanTask((changed,)) for changed in changes)
            return
        for files in self._groups([first, *changes]):
            if any(one.may_delete for one in files) and any(one.may_insert for one in files):
                yield ChangelogScanTask(tuple(files), is_matched=True)
            else:
                yield from (ChangelogScanTask((changed,)) for changed in files)

    def _groups(self, files: list[ChangedFile]) -> Iterable[list[ChangedFile]]:
        """Files apart whose rows cannot be equal, nor of one key: those of different partitions."""
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
        """The columns that state the change: all, or those that are selected by name."""
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
