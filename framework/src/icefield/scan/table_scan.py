"""A scan: which rows and columns of which version of a table, and what to make of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa

from icefield.abc import FormatAbility
from icefield.errors import InvalidArgument, MissingPlugin, NoSuchSnapshot
from icefield.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, as_expression, bind
from icefield.manifest import schemas as f
from icefield.metadata import TableMetadata
from icefield.metadata.properties import (
    NAME_MAPPING_DEFAULT,
    SPLIT_OPEN_FILE_COST,
    SPLIT_PLANNING_LOOKBACK,
    SPLIT_TARGET_SIZE,
    find_value,
    get_int,
)
from icefield.metadata.refs import MAIN_BRANCH
from icefield.metadata.snapshots import Snapshot
from icefield.scan.deletes.key_columns import dropped_fields
from icefield.scan.plan_table import PlanTable
from icefield.scan.planned_files import PlannedFiles
from icefield.scan.planning import ScanPlanner
from icefield.scan.reading import read_tasks
from icefield.scan.splits import combine_tasks, split_task
from icefield.scan.tasks import FileScanTask, ScanContext
from icefield.scan.united_partition import UnitedPartition
from icefield.schema import Schema, parse_name_mapping, schema_to_arrow
from icefield.storage import FileIO
from icefield.types import BinaryType, NestedField, StringType
from icefield.types.arrow.types import with_dictionaries
from icefield.types.reserved import CHANGELOG_IDS, METADATA_COLUMNS, PARTITION, partition_field


@dataclass(frozen=True)
class TableScan:
    """Rows and columns of one version of a table. Immutable: the methods that narrow it give another scan.

    ``row_filter`` is an expression or its string. ``selected_fields`` are names of columns (``"a.b"`` for nested ones;
    ``"*"`` is all) and of metadata columns (``_file``, ``_pos``, ...). ``snapshot_id`` or ``ref`` (a branch or tag)
    state the version; neither is the head of ``main``. A snapshot and a tag are read with the snapshot's schema, a
    branch with the current one. ``limit`` is the most rows that are read. ``options``: ``split-size``,
    ``split-lookback`` and ``split-file-open-cost`` for ``plan_tasks``. ``dictionary_columns``: see
    ``with_dictionaries``. The scan keeps to the metadata that it was
    made with, whatever is committed meanwhile.
    """

    metadata: TableMetadata
    io: FileIO = field(repr=False)
    _: KW_ONLY
    row_filter: BooleanExpression | str = field(default_factory=AlwaysTrue)
    selected_fields: tuple[str, ...] = ("*",)
    case_sensitive: bool = True
    snapshot_id: int | None = None
    ref: str | None = None
    limit: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    dictionary_columns: tuple[str, ...] = ()
    identifier: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.snapshot_id is not None and self.ref is not None:
            raise InvalidArgument("a scan reads a snapshot or a branch or tag, not both")
        if self.limit is not None and not isinstance(self.limit, Integral):
            raise InvalidArgument(f"limit is a whole number of rows, not {self.limit!r}")
        if self.limit is not None and self.limit < 0:
            raise InvalidArgument(f"limit must not be negative: {self.limit}")
        for names in ("selected_fields", "dictionary_columns"):
            given = getattr(self, names)
            object.__setattr__(self, names, (given,) if isinstance(given, str) else tuple(given))
        object.__setattr__(self, "row_filter", as_expression(self.row_filter))

    def filter(self, row_filter: BooleanExpression | str) -> TableScan:
        """The rows that also match another filter."""
        return replace(self, row_filter=self._expression & as_expression(row_filter))

    def select(self, *names: str) -> TableScan:
        """Only these columns, in place of those selected before."""
        return replace(self, selected_fields=names)

    def with_case_sensitive(self, case_sensitive: bool = True) -> TableScan:
        """Names of columns matched with or without regard to case."""
        return replace(self, case_sensitive=case_sensitive)

    def with_dictionaries(self, *names: str) -> TableScan:
        """These columns as Arrow dictionaries, each distinct value of a batch once, in place of those named before.

        They must be of type string or binary and not inside others. Where values repeat this takes less memory, and
        reading Parquet files that hold such dictionaries less time. pandas gets categories.
        """
        return replace(self, dictionary_columns=names)

    def use_snapshot(self, snapshot_id: int) -> TableScan:
        """The version of that snapshot. Raises ``NoSuchSnapshot``."""
        return self._at(snapshot_id=snapshot_id)

    def use_ref(self, name: str) -> TableScan:
        """The version of a branch or tag. Raises ``NoSuchSnapshot`` when the table has none of that name."""
        return self._at(ref=name)

    def as_of(self, timestamp_ms: int) -> TableScan:
        """The version that was current at a time (ms since 1970 UTC), by the table's snapshot log.

        Raises ``NoSuchSnapshot`` when the log does not reach back so far.
        """
        return self._at(snapshot_id=self.metadata.snapshot_as_of(timestamp_ms).snapshot_id)

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The snapshot to read; None for a table without one. Raises ``NoSuchSnapshot``."""
        metadata = self.metadata
        if self.snapshot_id is not None:
            found = metadata.snapshot_by_id(self.snapshot_id)
            if found is None:
                raise NoSuchSnapshot(
                    f"table {metadata.location} has no snapshot {self.snapshot_id}", snapshot_id=self.snapshot_id
                )
            return found
        if self.ref is None or (self.ref == MAIN_BRANCH and metadata.ref(self.ref) is None):
            return metadata.current_snapshot()
        found = metadata.snapshot_by_name(self.ref)
        if found is None:
            known = ", ".join(sorted(metadata.refs)) or "none"
            raise NoSuchSnapshot(
                f"table {metadata.location} has no branch or tag '{self.ref}'; it has {known}", ref=self.ref
            )
        return found

    @cached_property
    def schema(self) -> Schema:
        """The table's columns in the version that is read."""
        snapshot = self.snapshot
        ref = None if self.ref is None else self.metadata.ref(self.ref)
        if snapshot is None or (self.snapshot_id is None and (ref is None or ref.is_branch)):
            return self.metadata.schema()
        return self.metadata.schema_of(snapshot)

    @cached_property
    def projection(self) -> Schema:
        """The columns that the scan gives: those of the table in its order, then the metadata columns as selected.

        Raises ``InvalidArgument`` for a name that is neither.
        """
        names = dict.fromkeys(self.selected_fields)
        of_table, others = [], []
        for name in names:
            column = METADATA_COLUMNS.get(name)
            if column is None or self.schema.has_field(name):
                of_table.append(name)
            else:
                others.append(self._metadata_column(column))
        selected = self.schema.select(*of_table, case_sensitive=self.case_sensitive)
        return selected if not others else Schema(*selected.fields, *others, schema_id=selected.schema_id)

    @cached_property
    def context(self) -> ScanContext:
        """What the tasks of this scan are read with, here or on another machine."""
        metadata = self.metadata
        mapping = find_value(metadata.properties, NAME_MAPPING_DEFAULT)
        return ScanContext(
            schema=self.schema,
            projection=self.projection,
            io=self.io,
            case_sensitive=self.case_sensitive,
            specs={spec.spec_id: spec for spec in metadata.partition_specs},
            dropped=dropped_fields(self.schema, metadata.schemas),
            name_mapping=None if mapping is None else parse_name_mapping(mapping),
            dictionaries=self._dictionaries,
        )

    def plan_files(self, *, include_stats: bool = False) -> Iterator[FileScanTask]:
        """One task for each data file that may hold matching rows, as they are found.

        ``include_stats``: whether each task's ``file`` carries its column statistics. Raises ``InvalidMetadata`` for
        a damaged manifest or manifest list.
        """
        for planned in self._planned(include_stats):
            yield from planned.tasks()

    def plan_arrow(self, *, include_stats: bool = False) -> pa.Table:
        """The plan as a table, one row for each data file; ``partition`` holds the fields of all specs together."""
        return PlanTable(self._united_partition, statistics=include_stats).table(self._planned(include_stats))

    def plan_tasks(self) -> Iterator[tuple[FileScanTask, ...]]:
        """The plan in groups of about equal size: large files divided where they may be, small ones put together.

        By the table's ``read.split.*`` properties, or the scan's ``options``.
        """
        target = self._number("split-size", SPLIT_TARGET_SIZE)
        return combine_tasks(
            (piece for task in self.plan_files() for piece in self._pieces(task, target)),
            target,
            lookback=self._number("split-lookback", SPLIT_PLANNING_LOOKBACK),
            open_file_cost=self._number("split-file-open-cost", SPLIT_OPEN_FILE_COST),
        )

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of batches, read ahead of the consumer in bounded memory."""
        batches = read_tasks(self.plan_files(), self.context, self.limit)
        schema = with_dictionaries(schema_to_arrow(self.projection), self._dictionaries)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def to_arrow(self) -> pa.Table:
        """The rows as one table."""
        return self.to_arrow_batch_reader().read_all().unify_dictionaries()

    def to_pandas(self, **options: Any) -> Any:
        """The rows as a pandas data frame; ``options`` go to ``pyarrow.Table.to_pandas``.

        Raises ``MissingPlugin`` where pandas is not installed, before anything is read.
        """
        if find_spec("pandas") is None:
            raise MissingPlugin("to_pandas needs pandas, which does not come with Icefield; pip install pandas")
        return self.to_arrow().to_pandas(**options)

    def count(self) -> int:
        """How many rows there are, at most ``limit``. Files that the filter takes whole are counted, not read."""
        tally = _Tally()
        context = replace(self.context, projection=Schema(), dictionaries=frozenset())
        planner = self.planner(prove=True)
        planned = iter(()) if planner is None else planner.files()
        batches = read_tasks(tally.to_be_read(planned, self.limit), context)
        counted = 0
        for batch in batches:
            counted += batch.num_rows
            if self.limit is not None and counted + tally.rows >= self.limit:
                break
        total = counted + tally.rows
        return total if self.limit is None else min(total, self.limit)

    def planner(self, *, include_stats: bool = False, prove: bool = False) -> ScanPlanner | None:
        """The planner of this scan, with the options of ``ScanPlanner``; None for a table without a snapshot."""
        snapshot = self.snapshot
        if snapshot is None:
            return None
        return ScanPlanner(
            self.metadata,
            self.io,
            snapshot,
            self.schema,
            bind(self.schema, self._expression, self.case_sensitive),
            statistics=include_stats,
            prove=prove,
            identifier=self.identifier,
        )

    @cached_property
    def _dictionaries(self) -> frozenset[int]:
        found = set()
        for name in self.dictionary_columns:
            column = self.schema.find_field(name, self.case_sensitive)
            if column not in self.schema.fields or not isinstance(column.field_type, StringType | BinaryType):
                raise InvalidArgument(
                    f"column '{name}' cannot come as a dictionary: only columns of type string and binary that are not "
                    f"inside others can, and it is of type {column.field_type}",
                    column=name,
                )
            found.add(column.field_id)
        return frozenset(found)

    @property
    def _expression(self) -> BooleanExpression:
        return as_expression(self.row_filter)

    @cached_property
    def _united_partition(self) -> UnitedPartition:
        specs, schemas = self.metadata.partition_specs, list(self.metadata.schemas)
        return UnitedPartition(specs, {spec.spec_id: spec.partition_type(self.schema, schemas) for spec in specs})

    def _planned(self, include_stats: bool) -> Iterator[PlannedFiles]:
        planner = self.planner(include_stats=include_stats)
        return iter(()) if planner is None else planner.files()

    def _at(self, **version: Any) -> TableScan:
        if self.snapshot_id is not None or self.ref is not None:
            raise InvalidArgument("the scan reads a certain version already")
        scan = replace(self, **version)
        _ = scan.snapshot  # states now that there is none
        return scan

    def _metadata_column(self, column: NestedField) -> NestedField:
        if column.field_id == PARTITION.field_id:
            return partition_field(self._united_partition.type)
        if column.field_id in CHANGELOG_IDS:
            raise InvalidArgument(
                f"column '{column.name}' states changes from snapshot to snapshot, and a scan reads the rows of one "
                "snapshot; snapshots that are scanned by their ids can be compared",
                column=column.name,
            )
        return column

    def _number(self, option: str, declared: Any) -> int:
        given = self.options.get(option)
        return get_int(self.metadata.properties if given is None else {declared.name: str(given)}, declared)

    def _pieces(self, task: FileScanTask, target: int) -> Iterator[FileScanTask]:
        if FormatAbility.SPLITS in self.io.file_format(task.file.file_format).abilities:
            return split_task(task, target)
        return iter((task,))


class _Tally:
    """Counts the rows of files that need not be read, and passes on the tasks of the others."""

    def __init__(self) -> None:
        self.rows = 0

    def to_be_read(self, planned: Iterator[PlannedFiles], limit: int | None) -> Iterator[FileScanTask]:
        for files in planned:
            whole, needed, deleted = _counted_files(files)
            counts = (np.asarray(files.entries.column(f.RECORD_COUNT)) - deleted)[whole]
            # In halves, since counts of a manifest that is wrong may add up to more than a long holds.
            self.rows += (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFF_FFFF).sum())
            if limit is not None and self.rows >= limit:
                return
            tasks = list(files.tasks()) if needed.any() else []
            for row in np.flatnonzero(needed).tolist():
                yield tasks[row]


def _counted_files(files: PlannedFiles) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Which files match whole, and which must be read; the others match nowhere. With the rows that are deleted of
    those that match whole.
    """
    groups, residuals = files.residual_groups()
    whole = np.array([isinstance(residual, AlwaysTrue) for residual in residuals])[groups]
    never = np.array([isinstance(residual, AlwaysFalse) for residual in residuals])[groups]
    if files.proven is not None:
        whole |= files.proven
    # A negative count is not known, and a count of none is looked at: it would hide the rows of the file.
    counts = np.asarray(files.entries.column(f.RECORD_COUNT))
    whole &= counts > 0
    deleted = np.zeros(len(counts), np.int64)
    if files.deletes is not None:
        # A deletion vector states how many rows it deletes; other deletes may overlap, or delete what is not there.
        rows, positions = files.deletes.vectors()
        known = (positions >= 0) & (positions <= counts[rows])
        deleted[rows[known]] = positions[known]
        uncounted = files.deletes.counts() > 0
        uncounted[rows[known]] = False
        whole &= ~uncounted
    return whole, ~(whole | never), deleted
