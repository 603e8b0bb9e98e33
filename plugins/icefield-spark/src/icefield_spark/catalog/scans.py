"""A scan of a table at a version. Its rows are a frame that Spark's own scan reads part by part."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from icefield import Schema, Table
from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysTrue, BooleanExpression, conjunction
from icefield.metadata import MAIN_BRANCH
from icefield.scan import FileScanTask
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from icefield_spark.catalog.bridge import Remote, remote, reply
from icefield_spark.catalog.grouping import Grouping, grouping
from icefield_spark.catalog.predicates import Described, Filters
from icefield_spark.catalog.streams import FollowedTable
from icefield_spark.chunks import VersionScan
from icefield_spark.explaining import Explanation, explanation
from icefield_spark.jvm import is_connected, items, jvm_class
from icefield_spark.planned import Only, Planned, on_executors, planned, planned_tasks, tasks_to_read
from icefield_spark.roads.choosing import Road
from icefield_spark.running import run_sql
from icefield_spark.sql.transform_filters import keeps
from icefield_spark.wap import branch_read


@dataclass(frozen=True)
class Version:
    """A version of a table: a snapshot id, a branch or tag, or the session's default.

    ``after``: a snapshot; only rows of later appends are read.
    """

    snapshot_id: int | None = None
    ref: str | None = None
    after: int | None = None

    def __str__(self) -> str:
        return f"{self.snapshot_id} {self.ref}" + ("" if self.after is None else f" since {self.after}")

    @property
    def is_writable(self) -> bool:
        """Whether the version is a branch."""
        return self.after is None and (self.snapshot_id is None or self.ref is not None)

    @property
    def branch(self) -> str:
        """The branch to write to. Raises ``InvalidArgument`` for a snapshot, since it never changes."""
        if self.after is not None:
            raise InvalidArgument(f"the options {_SINCE} and {_UP_TO} are for reads: a write names a branch")
        if not self.is_writable:
            raise InvalidArgument(f"snapshot {self.snapshot_id} of the table cannot be written: name a branch")
        return self.ref or MAIN_BRANCH

    def scan(self, table: Table) -> VersionScan:
        """A scan of the version."""
        if self.after is not None:
            return table.incremental_append_scan(
                from_snapshot_id_exclusive=self.after, to_snapshot_id_inclusive=self.snapshot_id, ref=self.ref
            )
        if self.snapshot_id is not None:
            return table.scan(snapshot_id=self.snapshot_id)
        return table.scan(ref=self.ref)

    def pinned(self, spark: SparkSession, table: Table) -> Version:
        """The version, with the session's branch if it names none."""
        return Version(None, branch_read(spark, table)) if self == CURRENT else self

    def with_options(self, options: Mapping[str, str], table: Table) -> Version:
        """The version that the options of a read or write name; this version if they name none."""
        given = {name.lower(): value for name, value in options.items() if name.lower() in _NAMING}
        for name in options:
            if name.lower() in _OF_CHANGES:
                raise InvalidArgument(f"the option {name} is for changes: CALL system.create_changelog_view takes it")
        if not given:
            return self
        others = given.keys() - {_SINCE, _UP_TO}
        if len(others) > 1 or (others and others != given.keys()) or self.snapshot_id is not None:
            shown = (*VERSIONS, f"{_SINCE} with or without {_UP_TO}")
            raise InvalidArgument(f"a table is read at one version: give one of {', '.join(shown)}")
        if not others:
            if _SINCE not in given:
                raise InvalidArgument(f"the option {_UP_TO} needs {_SINCE}, the snapshot before the first that is read")
            last = _number(_UP_TO, given[_UP_TO]) if _UP_TO in given else None
            return Version(last, self.ref if last is None else None, _number(_SINCE, given[_SINCE]))
        ((name, value),) = given.items()
        if name in ("branch", "tag"):
            return Version(ref=value)
        number = _number(name, value)
        return Version(number if name == "snapshot-id" else table.snapshot_as_of_timestamp(number).snapshot_id)


def _number(name: str, value: str) -> int:
    if not value.isdigit():
        raise InvalidArgument(f"the option {name} is a number, not '{value}'")
    return int(value)


CURRENT = Version()
VERSIONS = ("snapshot-id", "as-of-timestamp", "branch", "tag")
"""The options of a read that name a version."""
_SINCE, _UP_TO = "start-snapshot-id", "end-snapshot-id"
_OF_CHANGES = ("start-timestamp", "end-timestamp")
_GROUPED = "spark.sql.iceberg.planning.preserve-data-grouping"
"""The setting of Spark that asks for files grouped by their partition values."""
_NAMING = (*VERSIONS, _SINCE, _UP_TO)


class PlannedScan(Remote):
    """A planned scan. It is planned again for filters that Spark finds at run time."""

    def __init__(
        self,
        spark: SparkSession,
        whole: VersionScan,
        columns: spark_types.StructType,
        predicates: Sequence[Described],
        key: str,
        *,
        road: Road | None = None,
        stream: Callable[[], FollowedTable] | None = None,
    ) -> None:
        """``whole``: the scan before filters and columns narrow it; ``key`` identifies it.

        ``road``: how all files are read; None chooses for each file. ``stream`` follows the table.
        """
        self._spark = spark
        self._whole = whole
        self._columns = columns
        self._key = key
        self._road = road
        self._stream = stream
        self._name = ".".join(whole.identifier)
        self._parts = _parts_of(whole)
        self._filters = Filters(self._whole.schema)
        self.row_filter = self._filters.keeping(predicates)
        self._buckets = self._filters.buckets(predicates)
        self._run_time: list[BooleanExpression] = []
        self._planned: Planned | None = None
        self._grouped: Grouping | None = None

    def on_describe(self, _: None) -> str:
        """The description and the statistics of the scan for Spark."""
        chosen = self._plan().roads.chosen
        in_arrow = [each for each in chosen if each.road is Road.ARROW]
        filters = self._shown_filters()
        text = f"icefield {self._name} files={len(chosen)} filter=[{', '.join(filters)}]"
        shown = frozenset(self._columns.names)
        sources = {field.source_id for field in self._whole.metadata.spec().fields}
        grouped = self._grouping()
        return reply(
            {
                "description": text,
                "key": "\n".join([self._key, self._columns.json(), *filters]),
                "rows": sum(each.rows for each in chosen),
                "bytes": sum(each.size for each in chosen),
                "rows_in_arrow": sum(max(0, each.rows) for each in in_arrow),
                "runtime_columns": [
                    field.name
                    for field in self._whole.schema.fields
                    if field.field_id in sources and field.name in shown
                ],
                **({} if grouped is None else {"grouping": grouped.described(self._whole.schema)}),
            }
        )

    @property
    def concern(self) -> BooleanExpression:
        """A filter that holds of all rows that the scan is to give."""
        return conjunction([self.row_filter, *self._run_time])

    def narrow(self, filters: Sequence[BooleanExpression]) -> None:
        """Leave out more files. The scan in the JVM must then discard its plan."""
        self._run_time += filters
        self._planned = self._grouped = None

    def explanation(self) -> Explanation:
        """How the scan reads the table."""
        return explanation(self._scan(), self._plan(), self._columns.names)

    def on_stream(self, _: None) -> FollowedTable | None:
        """Read the table as a stream, instead of once."""
        return None if self._stream is None else self._stream()

    def on_filter(self, predicates: str) -> str:
        """Leave out more files, by the values that another part of the query found."""
        self._run_time.append(self._filters.keeping(json.loads(predicates)))
        self._planned = None
        if self._grouped is not None:
            self._grouped = self._grouped.narrowed(self._tasks_to_read())
        return self.on_describe(None)

    def on_frame(self, _: None) -> Any:
        """The frame if Spark's own reader reads every file; else None."""
        roads = self._plan().roads
        return None if roads.arrow is None or roads.arrow or not roads.groups else self._frame()._jdf

    def on_count(self, columns: str) -> Any:
        """A frame of one row with the number of all rows in each column, if metadata states the number; else None."""
        if self._shown_filters():
            return None
        chosen = self._plan().roads.chosen
        if any(each.deletes or each.rows < 0 for each in chosen):
            return None
        row = ", ".join([f"{sum(each.rows for each in chosen)}L"] * int(columns))
        return run_sql(self._spark, f"SELECT * FROM VALUES ({row})")._jdf

    def on_rows(self, _: None) -> Any:
        """The rows, as the RDD of Spark's internal rows of a frame."""
        return self._frame()._jdf.queryExecution().toRdd()

    def on_groups(self, _: None) -> Any:
        """The rows of each group of files, in a Java list: the values of a group as JSON, its RDD, the next values."""
        made = jvm_class(self._spark, "java.util.ArrayList")()
        scan, grouped = on_executors(self._spark, self._scan()), self._grouping()
        assert grouped is not None  # Java asks for groups that were described
        for key, tasks in grouped.tasks.items():
            paths = {task.file.file_path for task in tasks}
            only = partial(_is_in, paths)
            frame = planned_tasks(self._spark, scan, self._names(), list(tasks), only=only, road=self._road).frame
            made.add(grouped.row(key))
            made.add(self._shaped(frame)._jdf.queryExecution().toRdd())
        return made

    def _grouping(self) -> Grouping | None:
        """The groups of the files by their partition values; None if they were not requested, or if there are none."""
        if str(self._spark.conf.get(_GROUPED, "false")).lower() != "true":
            return None
        if self._grouped is None:
            specs = {spec.spec_id: spec for spec in self._whole.metadata.partition_specs}
            self._grouped = grouping(self._whole.schema, specs, self._columns.names, self._tasks_to_read())
        return self._grouped

    def _tasks_to_read(self) -> list[FileScanTask]:
        return tasks_to_read(on_executors(self._spark, self._scan()), self._keeps(), self._road)

    def tasks(self) -> list[FileScanTask]:
        """The tasks of the plan."""
        return list(filter(self._keeps(), self._scan().plan_files()))

    def _keeps(self) -> Only | None:
        """A test of whether a file may have rows in the requested buckets; None if no buckets are requested."""
        specs = {spec.spec_id: spec for spec in self._whole.metadata.partition_specs}
        return keeps(self._whole.schema, specs, self._buckets) if self._buckets else None

    def _shown_filters(self) -> list[str]:
        filters = (self._whole.row_filter, self.row_filter, *self._run_time, *self._buckets)
        return [str(each) for each in filters if each != AlwaysTrue()]

    def _scan(self) -> VersionScan:
        fields: list[Any] = [path for name in self._names() for path in self._parts.get(name, (name,))]
        return self._whole.filter(self.concern).select(*fields)

    def _names(self) -> list[str]:
        # A scan must read at least one column, but for a count Spark asks for none.
        return self._columns.names or [self._whole.projection.fields[0].name]

    def _plan(self) -> Planned:
        if self._planned is None:
            only = self._keeps()
            self._planned = planned(self._spark, self._scan(), self._names(), only=only, road=self._road)
        return self._planned

    def _frame(self) -> DataFrame:
        return self._shaped(self._plan().frame)

    def _shaped(self, frame: DataFrame) -> DataFrame:
        """The frame with the columns and types that Spark asked for."""
        if not self._columns.fields:
            return frame.select()
        return frame if _same(frame.schema, self._columns) else frame.to(self._columns)


def _is_in(paths: set[str], task: FileScanTask) -> bool:
    return task.file.file_path in paths


def _parts_of(scan: VersionScan) -> dict[str, list[tuple[str, ...]]]:
    """The columns that a scan reads in part, with the paths of the leaves that it reads."""
    if "*" in scan.selected_fields:
        return {}
    found = {}
    for column in scan.projection.fields:
        if not scan.schema.has_field((column.name,)):  # a metadata column
            continue
        taken, whole = Schema(column), Schema(scan.schema.find_field((column.name,)))
        if taken.field_ids != whole.field_ids:
            leaves = (each.field_id for each in taken.id_to_field.values() if not each.field_type.is_nested)
            found[column.name] = [scan.schema.name_path(each) for each in leaves]
    return found


def _same(left: Any, right: Any) -> bool:
    return [(field.name, field.dataType) for field in left.fields] == [
        (field.name, field.dataType) for field in right.fields
    ]


def explanations_in(frame: DataFrame) -> list[Explanation]:
    """How a frame reads the tables of catalogs, including the tables in its subqueries."""
    if is_connected(frame.sparkSession):
        return []
    found, left = [], [frame._jdf.queryExecution().optimizedPlan()]
    while left:
        plan = left.pop()
        scan = scan_of(plan)
        if scan is not None:
            found.append(scan.explanation())
        for plans in (plan.subqueries(), plan.children()):
            left += reversed(items(plans))
    return found


def scan_of(plan: Any) -> PlannedScan | None:
    """The scan of a catalog's table in a node of a plan; None for other nodes."""
    java = java_scan_of(plan)
    found = None if java is None else remote(java.python())
    return found if isinstance(found, PlannedScan) else None


def java_scan_of(plan: Any) -> Any | None:
    """As ``scan_of``, in the JVM."""
    scan = plan.scan() if plan.nodeName() == "DataSourceV2ScanRelation" else None
    return scan if scan is not None and scan.getClass().getSimpleName() == "IcefieldScan" else None
