"""Which road each data file of a scan takes, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from icefield import Schema
from icefield.errors import IcefieldError, InvalidArgument
from icefield.expressions import AlwaysTrue, BooleanExpression, bind, bound_leaves
from icefield.scan import FileScanTask, read_deletes
from icefield.types import METADATA_COLUMNS, MapType, NestedField, StructType
from icefield.writing import DataFile
from pyspark.sql import SparkSession

from icefield_spark.chunks import VersionScan
from icefield_spark.roads.columns import (
    FileColumn,
    ShapeColumns,
    UnfitForSpark,
    calendar_times_of,
    children_of,
    floats_of,
    unfit_type,
)
from icefield_spark.roads.deleted import why_executors_apply
from icefield_spark.roads.footers import FOOTERS, FileShape, Footer
from icefield_spark.roads.groups import Member, RelationFiles, groups_of
from icefield_spark.roads.literals import has_json
from icefield_spark.roads.reach import reach_of
from icefield_spark.roads.relations import takes_constants

FILE, POS, DELETED, SPEC_ID, PARTITION, ROW_ID, LAST_UPDATED = (
    METADATA_COLUMNS[name].field_id
    for name in ("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")
)
OF_FILES = frozenset({FILE, POS, DELETED, SPEC_ID, PARTITION, ROW_ID, LAST_UPDATED})

_MOST_GROUPS = 16
"""Groups of files that are read as relations of their own; with more, Spark would plan longer than it reads."""

_MOST_FILES = 20_000
"""The most files of a scan: the footer of each is read beforehand."""

_FEW_COLUMNS = 4
"""Up to this number of leaf columns, Arrow is the faster road for files with deletes under a filter."""

_FIRST_DAY = -25_567
"""1900-01-01. From here on Java's older calendar and its zones agree with the values in files."""

_DATE_BYTES = 4
_DAY_US = 86_400_000_000


class Road(Enum):
    """The road of a file's rows to Spark."""

    SPARK = "spark"
    ARROW = "arrow"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Chosen:
    """A file's road. ``reason`` says why the road is not Spark's own reader, if it is not."""

    location: str
    size: int
    rows: int
    deletes: int
    road: Road
    reason: str


@dataclass(frozen=True)
class ScanColumns:
    """The request of a scan: its columns, further columns of its filter, and the filter."""

    columns: tuple[NestedField, ...]
    filtered: tuple[NestedField, ...]
    row_filter: BooleanExpression
    is_exact: bool
    """Whether required columns of the table are not nullable in Spark; else every column is nullable."""

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """All columns to read."""
        return (*self.columns, *self.filtered)


@dataclass(frozen=True)
class Roads:
    """The roads of a scan's files."""

    groups: list[RelationFiles]
    arrow: frozenset[str] | None
    """Locations of the files that are read in Arrow; None for all."""
    chosen: list[Chosen]
    """The road of each file; empty if all files take one road and no explanation was requested."""


def wanted_of(scan: VersionScan, *, is_exact: bool) -> ScanColumns:
    """The request of a scan to Spark's own reader. Raises ``UnfitForSpark`` if no file can be read that way.

    ``is_exact``: required columns of the table are not nullable in Spark.
    """
    projection = scan.projection
    row_filter = bind(scan.schema, scan.expression, scan.case_sensitive)
    known = {column.field_id for column in projection.fields}
    extra: dict[int, set[int]] = {}
    for leaf in bound_leaves(row_filter):
        top = scan.schema.find_field((leaf.path[0],))
        if top.field_id not in known:
            extra.setdefault(top.field_id, set()).add(leaf.field.field_id)
        elif leaf.field.field_id not in projection.field_ids:
            raise UnfitForSpark(f"the filter needs a field of '{leaf.path[0]}' that is not among the columns")
    ids = {id_ for ids in extra.values() for id_ in ids}
    filtered = scan.schema.select_ids(ids).fields if ids else ()
    wanted = ScanColumns(projection.fields, tuple(filtered), row_filter, is_exact)
    for column in wanted.fields:
        reason = None if column.field_id in OF_FILES else unfit_type(column)
        if reason is not None:
            raise UnfitForSpark(reason)
    return wanted


def requires_any(scan: VersionScan) -> bool:
    """Whether a scan has a column, or a field inside of one, that the table requires."""
    return any(map(_is_required, scan.projection.fields))


def _is_required(column: NestedField) -> bool:
    """Whether a column, or a field inside of it, may not be null. Keys of maps never are, for Spark either."""
    if column.field_id in OF_FILES:
        return False
    kind = column.field_type
    inside = (kind.value,) if isinstance(kind, MapType) else children_of(kind)
    return column.required or any(map(_is_required, inside))


def needs_statistics(scan: VersionScan) -> bool:
    """Whether the choice of roads depends on the statistics of the files."""
    asked = scan.projection.fields
    compared = asked if isinstance(scan.row_filter, AlwaysTrue) else (*asked, *scan.schema.fields)
    found = (*map(floats_of, asked), *map(calendar_times_of, compared))
    return any(next(ids, None) is not None for ids in found)


class Chooser:
    """Chooses roads for the tasks of one scan. The tasks have statistics if the scan ``needs_statistics``.

    ``is_asked_for``: files take Spark's own reader if it serves them, even if Arrow is faster.
    """

    def __init__(
        self, spark: SparkSession, scan: VersionScan, wanted: ScanColumns, *, is_asked_for: bool = False
    ) -> None:
        self._spark = spark
        self._scan = scan
        self._wanted = wanted
        self._reach = reach_of(spark)
        self._ids = {column.field_id for column in wanted.fields}
        self._floats = {column.field_id: list(floats_of(column)) for column in wanted.columns}
        self._times = {column.field_id: list(calendar_times_of(column)) for column in wanted.fields}
        held = Schema(*(column for column in wanted.fields if column.field_id not in OF_FILES)).id_to_field.values()
        leaves = sum(not each.field_type.is_nested for each in held)
        places = self._ids >= {FILE, POS}  # the rows will be joined or changed in Spark
        self._is_narrow = leaves <= _FEW_COLUMNS and not is_asked_for and not places
        takes = takes_constants(spark)
        self._varying = {each.field_id for each in wanted.fields if takes and has_json(each.field_type)}
        self._shapes: dict[FileShape, dict[int, FileColumn] | UnfitForSpark] = {}
        self._identities: dict[int, list[tuple[int, int]]] = {}
        self._specs = scan.context.specs

    def choose(self, tasks: Iterable[FileScanTask]) -> Roads:
        """The roads of whole files."""
        files = list(tasks)
        reasons = self._reasons(files)
        fit = [task for task in files if reasons[id(task)] is None]
        io = self._scan.io
        sizes = [(task.file.file_path, task.file.file_size_in_bytes) for task in fit]
        alike: dict[Any, list[Member]] = {}
        for task, footer in zip(fit, FOOTERS.read(io, sizes), strict=True):
            try:
                member = self._member(task, footer)
                alike.setdefault(member.key, []).append(member)
            except UnfitForSpark as unfit:
                reasons[id(task)] = str(unfit)
        groups = [group for members in alike.values() for group in groups_of(members)]
        of_tasks = {id(task): group for group in groups for task in group.tasks}
        kept = sorted(groups, key=lambda group: group.size, reverse=True)[:_MOST_GROUPS]
        unread = self._read_deletes(kept)
        if unread is not None:  # executors read them again, and raise the error
            kept = [group for group in kept if group.deleted is None]
        chosen, arrow = [], set()
        for task in files:
            group, reason = of_tasks.get(id(task)), reasons[id(task)]
            if group is not None and group not in kept:
                reason = f"it is in none of the {_MOST_GROUPS} largest groups of {len(groups)} that differ in columns"
                if unread is not None and group.deleted is not None:
                    reason = unread
            if reason is not None:
                arrow.add(task.file.file_path)
            chosen.append(_chosen(task, reason))
        return Roads(kept, frozenset(arrow), chosen)

    def _reasons(self, files: list[FileScanTask]) -> dict[int, str | None]:
        """Why each file cannot take Spark's own reader, as far as this is known without its footer."""
        if len(files) > _MOST_FILES:
            return dict.fromkeys(map(id, files), f"it is one of {len(files)}, whose footers would be read beforehand")
        times = Counter(task.file.file_path for task in files)
        deletes = why_executors_apply(self._spark, files, shows_deleted=DELETED in self._ids, is_narrow=self._is_narrow)
        return {id(task): _reason(task, times[task.file.file_path], deletes) for task in files}

    def _read_deletes(self, groups: Iterable[RelationFiles]) -> str | None:
        """Note the deleted rows of files in their groups; return the reason for a failure, or None."""
        marked = [(group.deleted, task) for group in groups if group.deleted is not None for task in group.tasks]
        try:
            found = read_deletes([task for _, task in marked], self._scan.context)
        except (IcefieldError, OSError) as error:
            return f"its deletes cannot be read: {type(error).__name__}"
        for (deleted, task), positions in zip(marked, found, strict=True):
            deleted.note(task.file.file_path, task.file.record_count, positions)
        return None

    def _member(self, task: FileScanTask, footer: Footer | None) -> Member:
        """A file with what its relation must know of it. Raises ``UnfitForSpark``."""
        file = task.file
        if footer is None:
            # Spark is not asked either: it would send requests to hosts that the configuration does not name.
            raise UnfitForSpark("its footer cannot be read")
        if 0 <= file.record_count != footer.rows:
            raise UnfitForSpark(f"it holds {footer.rows} rows, and its manifest says {file.record_count}")
        try:
            path = self._reach.path(self._spark, self._scan.io.resolve(file.file_path))
        except IcefieldError as error:
            raise UnfitForSpark("its location is refused") from error
        held = self._held(footer.shape)
        if isinstance(held, UnfitForSpark):
            raise held
        constants = {
            column.field_id: self._constant(column, task)
            for column in self._wanted.fields
            if column.field_id not in held or column.field_id in (ROW_ID, LAST_UPDATED)
        }
        counts = file.nan_value_counts or {}
        has_nans = any(counts.get(each) != 0 for column, ids in self._floats.items() if column in held for each in ids)
        is_old = any(_may_be_old(file, each) for column, ids in self._times.items() if column in held for each in ids)
        apart = tuple((key, value) for key, value in constants.items() if key not in self._varying)
        return Member(task, path, held, constants, has_nans, is_old, (id(held), has_nans, is_old, apart))

    def _held(self, shape: FileShape) -> dict[int, FileColumn] | UnfitForSpark:
        found = self._shapes.get(shape)
        if found is None:
            settled = self._settled(shape)
            # Shapes that differ in other columns only are one for this scan.
            same = (each for each in self._shapes.values() if not isinstance(each, UnfitForSpark) and each == settled)
            found = self._shapes[shape] = next(same, settled)
        return found

    def _settled(self, shape: FileShape) -> dict[int, FileColumn] | UnfitForSpark:
        stated = {source for spec_id in self._specs for source, _ in self._sources(spec_id)}
        try:
            columns = ShapeColumns(shape, is_exact=self._wanted.is_exact)
            held = {}
            for column in self._wanted.fields:
                if column.field_id in OF_FILES and column.field_id not in (ROW_ID, LAST_UPDATED):
                    continue
                found = columns.held(column, stated)
                if found is not None:
                    held[column.field_id] = found
        except UnfitForSpark as unfit:
            return unfit
        return held

    def _constant(self, column: NestedField, task: FileScanTask) -> Any:
        """The value of a column in every row of a file that lacks the column."""
        file = task.file
        if column.field_id == SPEC_ID:
            return file.spec_id
        if column.field_id == DELETED:
            return False
        if column.field_id == ROW_ID:
            return file.first_row_id
        if column.field_id == LAST_UPDATED:
            return None if file.first_row_id is None else task.data_sequence_number
        if column.field_id == PARTITION:
            return self._partition(column, task)
        if column.field_id == FILE:
            return file.file_path
        if column.field_id == POS:
            return None
        stated = {source: file.partition[place] for source, place in self._sources(file.spec_id)}
        if stated.get(column.field_id) is not None:
            return stated[column.field_id]
        if column.field_id in stated and not column.required:
            return None
        if column.field_type.is_nested and (column.initial_default is not None or stated):
            raise UnfitForSpark(f"it lacks column '{column.name}', which may have a value")
        if column.initial_default is None and column.required:
            raise UnfitForSpark(f"it lacks column '{column.name}', which is required")
        return column.initial_default

    def _partition(self, column: NestedField, task: FileScanTask) -> tuple[Any, ...]:
        assert isinstance(column.field_type, StructType)
        spec = self._specs.get(task.file.spec_id)
        values = {
            each.field_id: value for each, value in zip(spec.fields if spec else (), task.file.partition, strict=True)
        }
        return tuple(values.get(child.field_id) for child in column.field_type.fields)

    def _sources(self, spec_id: int) -> list[tuple[int, int]]:
        """The sources of a spec's identity fields, with their places in the partition."""
        if spec_id not in self._identities:
            spec = self._specs.get(spec_id)
            self._identities[spec_id] = [
                (each.source_id, place)
                for place, each in enumerate(spec.fields if spec else ())
                if str(each.transform) == "identity"
            ]
        return self._identities[spec_id]


def all_in_arrow(tasks: Iterable[FileScanTask], reason: str) -> Roads:
    """The roads of a scan with all files read in Arrow."""
    return Roads([], None, [_chosen(task, reason) for task in tasks])


def _chosen(task: FileScanTask, reason: str | None) -> Chosen:
    file = task.file
    road = Road.SPARK if reason is None else Road.ARROW
    return Chosen(
        file.file_path, file.file_size_in_bytes, file.record_count, len(task.delete_files), road, reason or ""
    )


def _reason(task: FileScanTask, times: int, deletes: Callable[[FileScanTask], str | None]) -> str | None:
    file = task.file
    if file.file_format.lower() != "parquet":
        return f"it is {file.file_format.lower()}"
    if task.delete_files and (why := deletes(task)) is not None:
        return f"{len(task.delete_files)} delete files apply to it{why}"
    if file.key_metadata is not None:
        return "it is encrypted"
    if times > 1:
        return "the table has it more than once"
    return None


def _may_be_old(file: DataFile, field_id: int) -> bool:
    """Whether a date or time in a file may be of before 1900."""
    bound = file.lower_bounds.get(field_id)
    if bound is None:
        return file.null_value_counts.get(field_id) != file.record_count
    least = int.from_bytes(bound, "little", signed=True)
    return least < (_FIRST_DAY if len(bound) == _DATE_BYTES else _FIRST_DAY * _DAY_US)


def checked_road(road: str | None) -> Road | None:
    """The road that a user asked for; None to choose for each file."""
    if road is None or road == "auto":
        return None
    try:
        return Road(road)
    except ValueError:
        raise InvalidArgument(f"road is 'auto', 'spark' or 'arrow', not {road!r}") from None
