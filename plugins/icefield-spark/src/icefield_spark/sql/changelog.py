"""The view of a table's changes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from icefield import Schema, Table
from icefield.errors import UnsupportedFeature
from icefield.scan import ChangelogContext, ChangelogScanTask, read_changes
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icefield_spark.arrow import SparkBatches, in_pieces
from icefield_spark.executors import for_executors
from icefield_spark.failures import with_cause_alone
from icefield_spark.quoting import quoted
from icefield_spark.sql.context import Rows, StatementContext
from icefield_spark.types import to_spark_schema

_OPTIONS = {
    "start-snapshot-id": "from_snapshot_id_exclusive",
    "end-snapshot-id": "to_snapshot_id_inclusive",
    "start-timestamp": "from_timestamp",
    "end-timestamp": "to_timestamp",
}


def create_changelog_view(context: StatementContext, table: Table, given: dict[str, Any]) -> Rows:
    """Create a temporary view of the changes between two snapshots, and return its name."""
    options = given.get("options", {})
    for key in options:
        if key not in _OPTIONS:
            raise UnsupportedFeature(f"a changelog has no option '{key}'; it has {', '.join(_OPTIONS)}")
    frame = changes_of(
        context.spark,
        table,
        options,
        net_changes=given.get("net_changes", False),
        compute_updates=given.get("compute_updates"),
        identifier_columns=tuple(given.get("identifier_columns") or ()),
    )
    name = str(given.get("changelog_view") or f"{table.name()[-1]}_changes")
    frame.createOrReplaceTempView(quoted(name))
    return [[name]]


def changes_of(spark: SparkSession, table: Table, options: Mapping[str, str], **how: Any) -> DataFrame:
    """The rows that changed between the snapshots or times in the options; other options are ignored."""
    bounds: dict[str, Any] = {argument: int(options[key]) for key, argument in _OPTIONS.items() if key in options}
    scan = table.incremental_changelog_scan(**how, **bounds)
    columns = to_spark_schema(scan.projection)
    made = scan.changelog_context
    reader = _ChangeReader(
        replace(made, scan=for_executors(made.scan)), pickle.dumps(list(scan.plan_files())), scan.projection, columns
    )
    return spark.range(0, 1, 1, 1).mapInArrow(reader, columns)


class _ChangeReader:
    """The function for ``mapInArrow``: the changed rows, in the order of the commits."""

    def __init__(self, context: ChangelogContext, tasks: bytes, schema: Schema, columns: StructType) -> None:
        self._context = context
        self._tasks = tasks
        self._schema = schema
        self._columns = columns

    @with_cause_alone
    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tasks: list[ChangelogScanTask] = pickle.loads(self._tasks)
        for batch in numbers:
            if not batch.num_rows:
                continue
            batches = SparkBatches(self._schema, self._columns)
            for each in read_changes(tasks, self._context, workers=1):
                yield from in_pieces(batches.convert(each))

    def __repr__(self) -> str:  # the context leads to the catalog's properties
        return "icefield"
