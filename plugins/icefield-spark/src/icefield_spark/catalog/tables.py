"""Tables of a session's catalog: their descriptions for Spark, their scans and their changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from icefield import Table
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.expressions import AlwaysTrue
from icefield.metadata import MAIN_BRANCH
from icefield.toolkit import is_true
from icefield.types import METADATA_COLUMNS, NestedField
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as spark_types

from icefield_spark.catalog.bridge import Remote, reply
from icefield_spark.catalog.described import described
from icefield_spark.catalog.merge_keys import with_source_pinned
from icefield_spark.catalog.predicates import NOT_EXACT, Filters
from icefield_spark.catalog.scans import PlannedScan, Version
from icefield_spark.catalog.streams import FollowedTable
from icefield_spark.chunks import VersionScan
from icefield_spark.options import SUMMARY
from icefield_spark.places import ROW, place_in_spark
from icefield_spark.quoting import quoted
from icefield_spark.row_changes import columns_of, commit_changes, commit_deletes, places_in
from icefield_spark.row_level import Target
from icefield_spark.row_writer import OPERATION
from icefield_spark.streaming.epochs import Epoch
from icefield_spark.types import to_spark_type
from icefield_spark.wap import place_of_write
from icefield_spark.writing import PARTITIONS, Replaced

if TYPE_CHECKING:
    from icefield_spark.session import IcefieldSession

_LINEAGE = ("_row_id", "_last_updated_sequence_number")
_DELETED = "_deleted"
SHOWN_COLUMNS = ("_file", "_pos", "_spec_id", "_partition", _DELETED, *_LINEAGE)
_OPERATION = "__row_operation"


class SparkTable(Remote):
    """A table at the version that Spark loaded for one statement: all scans of the statement read that version."""

    def __init__(self, ice: IcefieldSession, catalog_name: str, table: Table, version: Version) -> None:
        self._ice = ice
        self._catalog_name = catalog_name
        self._table = table
        self._version = version.pinned(ice.spark, table)
        self._filters = Filters(self._version.scan(table).schema)

    @property
    def spark(self) -> SparkSession:
        """The session of the statement."""
        return self._ice.spark

    def on_describe(self, _: None) -> str:
        """Everything that Spark asks about a table, at once."""
        table, scan = self._table, self._version.scan(self._table)
        return described(
            (self._catalog_name, *table.name()),
            table.metadata,
            scan.schema,
            version=f"{table.metadata_location} {self._version}",
            metadata_columns=metadata_columns(scan),
            writable=self._version.is_writable,
            streams=self._version.snapshot_id is None,
            lineage=table.format_version >= 3,
        )

    def on_scan(self, asked: str) -> PlannedScan:
        """Plan a scan."""
        return self._scan(json.loads(asked))

    def _scan(self, asked: Mapping[str, Any]) -> PlannedScan:
        version = self._version.with_options(asked["options"], self._table)
        columns = spark_types.StructType.fromJson(asked["columns"])
        options = {**asked["options"], "path": ".".join(self._table.name())}
        if version.ref is not None:
            options["branch"] = version.ref
        return PlannedScan(
            self.spark,
            version.scan(self._table),
            columns,
            asked["predicates"],
            f"{self._table.metadata_location} {version}",
            stream=partial(FollowedTable, self.spark, self._table, options, columns),
        )

    def on_write(self, asked: str) -> Write:
        """Begin a write; its rows follow."""
        return Write(self._ice, self._table, self._version, json.loads(asked))

    def on_operation(self, asked: str) -> RowOperation:
        """Begin a DELETE, UPDATE or MERGE."""
        given = json.loads(asked)
        return RowOperation(self, given["command"].lower(), given["options"])

    def on_can_overwrite(self, predicates: str) -> str:
        """Allow an overwrite if a filter of the kernel matches exactly its rows; else refuse it with the reason."""
        if self._filters.exact(json.loads(predicates)) is None:
            raise UnsupportedFeature(NOT_EXACT)
        return reply(True)

    def on_can_delete(self, predicates: str) -> str:
        """Whether a filter matches only whole files, by their partitions, so that nothing needs to be read."""
        where = self._filters.exact(json.loads(predicates))
        if where is None or not self._version.is_writable:
            return reply(False)
        scan = self._version.scan(self._table).filter(where)
        return reply(all(isinstance(task.residual, AlwaysTrue) for task in scan.plan_files()))

    def on_delete(self, predicates: str) -> None:
        """Delete the rows of whole files."""
        where = self._filters.exact(json.loads(predicates))
        if where is None:
            raise InvalidArgument("the rows to delete are not stated by a filter of the table")
        self._ice.delete(self._table.name(), where, branch=self._version.branch)  # type: ignore[arg-type]

    def target(self, kind: str) -> Target:
        """The table as the target of a row-level operation, in its state when the statement was analyzed."""
        branch, strings = place_of_write(self.spark, self._table, self._version.branch, None)
        return Target(self._table, branch or MAIN_BRANCH, kind, strings=strings or {})


class Write(Remote):
    """An append, or an overwrite of all rows, matching rows or partitions; ``epoch`` marks the write of a stream."""

    def __init__(self, ice: IcefieldSession, table: Table, version: Version, asked: Mapping[str, Any]) -> None:
        self._ice = ice
        self._table = table
        self._branch = version.with_options(asked["options"], table).branch
        self._replaced: Replaced = PARTITIONS if asked["mode"] == "partitions" else None
        if asked["mode"] == "overwrite":
            self._replaced = Filters(table.schema()).exact(asked["predicates"])
            if self._replaced is None:
                raise InvalidArgument("the rows to replace are not stated by a filter of the table")
        options = {name.lower(): value for name, value in asked["options"].items()}
        self._distribution = options.get("distribution-mode")
        self._strings = {
            name[len(SUMMARY) :]: value for name, value in asked["options"].items() if name.lower().startswith(SUMMARY)
        }
        self._epoch = Epoch(asked["query"], asked["epoch"]) if "epoch" in asked else None
        if self._epoch is not None and (is_true(options, "upsert") or "upsert-columns" in options):
            raise InvalidArgument('a stream into a table of the catalog adds rows: upsert is for format("icefield")')

    def on_rows(self, rows: Any) -> None:
        """Write and commit a frame of Spark's."""
        frame, name = DataFrame(rows, self._ice.spark), ".".join(self._table.name())
        strings = self._strings or None
        self._ice._change(
            frame, name, self._replaced, self._branch, strings, False, self._distribution, "auto", self._epoch
        )


class RowOperation(Remote):
    """A DELETE, UPDATE or MERGE. Spark computes the changed rows."""

    def __init__(self, table: SparkTable, kind: str, options: Mapping[str, str]) -> None:
        self._table = table
        self._target = table.target(kind)
        self._scans: list[PlannedScan] = []

    def on_scan(self, asked: str) -> PlannedScan:
        """Plan a scan of the rows that may change."""
        scan = self._table._scan(json.loads(asked))
        self._scans.append(scan)
        return scan

    def on_rows(self, rows: Any) -> None:
        """Write and commit the changes."""
        spark, frame = self._table.spark, DataFrame(rows, self._table.spark)
        if self._target.kind != "merge" or len(self._scans) != 1:
            self._commit(frame)
            return
        with with_source_pinned(spark, frame, self._scans[0], self._target.table.schema()) as (changes, looks):
            self._commit(changes, one_source_row=looks)

    def _commit(self, frame: DataFrame, one_source_row: bool = False) -> None:
        for scan in self._scans:
            for task in scan.tasks():
                self._target.plan.number(task)
        place, concern = place_in_spark("_file", "_pos").alias(ROW), self._scans[0].concern if self._scans else None
        if self._target.kind == "delete":
            found = places_in(self._target, frame.select(place))
            commit_deletes(self._table.spark, self._target, found, concern)
            return
        held = set(frame.columns)
        columns = [
            f.col(_OPERATION).cast("int").alias(OPERATION),
            place,
            *((f.col(name) if name in held else f.lit(None).cast("long")).alias(name) for name in self._target.lineage),
        ]
        for field in columns_of(self._target).fields:
            value = f.col(quoted(field.name)) if field.name in held else f.lit(None).cast(field.dataType)
            columns.append(value.alias(field.name))
        commit_changes(
            self._table.spark, self._target, frame.select(*columns), concern=concern, one_source_row=one_source_row
        )


def metadata_columns(scan: VersionScan) -> list[dict[str, Any]]:
    """The metadata columns that a query may name, described for Spark."""
    names = [each for each in SHOWN_COLUMNS if scan.metadata.format_version >= 3 or each not in _LINEAGE]
    return [_metadata_column(each) for each in scan.select(*names).projection.fields]


def _metadata_column(field: NestedField) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": to_spark_type(field.field_type).jsonValue(),
        "nullable": field.name not in ("_file", "_pos", "_spec_id", _DELETED),
        "comment": METADATA_COLUMNS[field.name].doc or "",
    }
