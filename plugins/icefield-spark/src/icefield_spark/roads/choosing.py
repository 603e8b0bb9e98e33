"""Which road each data file of a scan takes, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import count
from typing import Any

from icefield import Schema
from icefield.errors import IcefieldError, InvalidArgument
from icefield.expressions import AlwaysTrue, BooleanExpression, as_expression, bind, bound_leaves
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
from icefield_spark.roads.deleted import GroupDeletes, why_executors_apply
from icefield_spark.roads.footers import FOOTERS, FileShape, Footer
from icefield_spark.roads.reach import reach_of

FILE, POS, DELETED, SPEC_ID, PARTITION, ROW_ID, LAST_UPDATED = (
    METADATA_COLUMNS[name].field_id
    for name in ("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")
)
OF_FILES = frozenset({FILE, POS, DELETED, SPEC_ID, PARTITION, ROW_ID, LAST_UPDATED})

_MOST_GROUPS = 16
"""Groups of files that are read as relations of their own; with more, Spark would plan longer than it reads."""

_AS_IN_URIS = re.compile(r"^[A-Za-z0-9/_.~=+@&$,:;!'()*-]+$")
"""Paths that Java's URIs spell as they are."""

_MOST_FILES = 20_000
"""Files that Spark lists one by one."""

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


@dataclass(frozen=True, slots=True, eq=False)
class RelationFiles:
    """Files that one relation reads: they have one shape, and the same constants for missing columns.

    ``held`` and ``constants`` are by field id; ``prefixes`` are the beginnings of their locations, in the table and for
    Spark, where the column ``_file`` is wanted.
    """

    held: dict[int, FileColumn]
    constants: dict[int, Any]
    prefixes: tuple[str, str]
    has_nans: bool
    """Whether its floats may be NaN, according to the NaN counts in manifests."""
    is_old: bool
    """Whether its dates and times may be of before 1900, by the bounds in manifests."""
    deleted: GroupDeletes | None = None
    """The deleted rows of the files; None if no delete file applies."""
    paths: list[str] = field(default_factory=list)
    locations: list[str] = field(default_factory=list)
    size: list[int] = field(default_factory=lambda: [0])


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
    row_filter = bind(scan.schema, as_expression(scan.row_filter), scan.case_sensitive)
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
        self._is_narrow = leaves <= _FEW_COLUMNS and not is_asked_for
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
        groups: dict[Any, RelationFiles] = {}
        members: dict[int, RelationFiles] = {}
        for task, footer in zip(fit, FOOTERS.read(io, sizes), strict=True):
            try:
                members[id(task)] = self._member(task, footer, groups)
            except UnfitForSpark as unfit:
                reasons[id(task)] = str(unfit)
        kept = sorted(groups.values(), key=lambda group: group.size[0], reverse=True)[:_MOST_GROUPS]
        marked = [task for task in fit if task.delete_files and members.get(id(task)) in kept]
        unread = self._read_deletes(marked, members)
        if unread is not None:  # executors read them again, and raise the error
            kept = [group for group in kept if group.deleted is None]
        chosen, arrow = [], set()
        for task in files:
            group, reason = members.get(id(task)), reasons[id(task)]
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
            return dict.fromkeys(map(id, files), f"Spark lists files one by one, and there are {len(files)}")
        times = Counter(task.file.file_path for task in files)
        deletes = why_executors_apply(self._spark, files, shows_deleted=DELETED in self._ids, is_narrow=self._is_narrow)
        return {id(task): _reason(task, times[task.file.file_path], deletes) for task in files}

    def _read_deletes(self, tasks: list[FileScanTask], members: dict[int, RelationFiles]) -> str | None:
        """Note the deleted rows of files in their groups; return the reason for a failure, or None."""
        try:
            found = read_deletes(tasks, self._scan.context)
        except (IcefieldError, OSError) as error:
            return f"its deletes cannot be read: {type(error).__name__}"
        for task, positions in zip(tasks, found, strict=True):
            deleted = members[id(task)].deleted
            assert deleted is not None
            deleted.note(task.file.file_size_in_bytes, task.file.record_count, positions)
        return None

    def _member(self, task: FileScanTask, footer: Footer | None, groups: dict[Any, RelationFiles]) -> RelationFiles:
        """Put a file into its group, and return the group."""
        file = task.file
        if footer is None:
            # Spark is not asked either: it would send requests to hosts that the configuration does not name.
            raise UnfitForSpark("its footer cannot be read")
        if 0 <= file.record_count != footer.rows:
            raise UnfitForSpark(f"it holds {footer.rows} rows, and its manifest says {file.record_count}")
        shape = footer.shape
        try:
            path = self._reach.path(self._spark, self._scan.io.resolve(file.file_path))
        except IcefieldError as error:
            raise UnfitForSpark("its location is refused") from error
        held = self._held(shape)
        if isinstance(held, UnfitForSpark):
            raise held
        constants = {
            column.field_id: self._constant(column, task)
            for column in self._wanted.fields
            if column.field_id not in held or column.field_id in (ROW_ID, LAST_UPDATED)
        }
        prefixes = _prefixes(file.file_path, path) if FILE in self._ids else ("", "")
        counts = file.nan_value_counts or {}
        has_nans = any(counts.get(each) != 0 for column, ids in self._floats.items() if column in held for each in ids)
        is_old = any(_may_be_old(file, each) for column, ids in self._times.items() if column in held for each in ids)
        key = (id(shape), prefixes, tuple(constants.items()), has_nans, is_old)
        group = self._with_room(groups, key, task, RelationFiles(held, constants, prefixes, has_nans, is_old))
        group.paths.append(path)
        group.locations.append(file.file_path)
        group.size[0] += file.file_size_in_bytes
        return group

    @staticmethod
    def _with_room(
        groups: dict[Any, RelationFiles], key: Any, task: FileScanTask, empty: RelationFiles
    ) -> RelationFiles:
        """The group of a key; for a file with deletes, the first group in which all files can be distinguished."""
        if not task.delete_files:
            return groups.setdefault((key, None), empty)
        for layer in count():
            group = groups.setdefault((key, layer), replace(empty, deleted=GroupDeletes()))
            assert group.deleted is not None
            if group.deleted.admits(task.file.file_size_in_bytes):
                return group
        raise AssertionError("a new group admits any file")

    def _held(self, shape: FileShape) -> dict[int, FileColumn] | UnfitForSpark:
        found = self._shapes.get(shape)
        if found is None:
            found = self._shapes[shape] = self._settled(shape)
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
            return None if file.first_row_id is None else (task.data_sequence_number,)
        if column.field_id == PARTITION:
            return self._partition(column, task)
        if column.field_id in OF_FILES:
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


def _prefixes(location: str, path: str) -> tuple[str, str]:
    """The beginnings in which a location differs between the table and Spark. Raises ``UnfitForSpark``."""
    at = path.index("/", path.index("://") + 3)
    rest = path[at:]
    if not location.endswith(rest) or not _AS_IN_URIS.match(rest):
        raise UnfitForSpark("Spark spells its location otherwise, and column '_file' is wanted")
    return location.removesuffix(rest), path[:at]


def checked_road(road: str | None) -> Road | None:
    """The road that a user asked for; None to choose for each file."""
    if road is None or road == "auto":
        return None
    try:
        return Road(road)
    except ValueError:
        raise InvalidArgument(f"road is 'auto', 'spark' or 'arrow', not {road!r}") from None
