"""Changes of rows as frames: executors write the rows that change and report where they were; the driver commits."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from icefield import Schema
from icefield.errors import InvalidArgument
from icefield.expressions import BooleanExpression
from icefield.metadata import TableMetadata
from icefield.toolkit import distinct
from icefield.transaction import WriteResult
from icefield.writing import WriteContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from icefield_spark.distributing import distributed, mode_of
from icefield_spark.failures import as_raised
from icefield_spark.jobs import run_writers
from icefield_spark.places import FOUND, ROW, Positions, positions_at
from icefield_spark.row_level import Target, apply_changes
from icefield_spark.row_writer import KEEP, OPERATION, UPDATE, RowChangeWriter
from icefield_spark.types import to_spark_schema
from icefield_spark.writing import application_of

_MESSAGES = f"message binary, {FOUND}"
_SPREAD = 64


def columns_of(target: Target) -> spark.StructType:
    """The table's columns, all nullable: the writer checks required columns for nulls."""
    return optional_columns(target.table.schema())


def optional_columns(schema: Schema) -> spark.StructType:
    """The columns of a schema, none of them required."""
    made = to_spark_schema(schema)
    return spark.StructType([spark.StructField(each.name, each.dataType, True) for each in made.fields])


def changed_schema(target: Target) -> spark.StructType:
    """The columns of a frame of changes."""
    first = [
        spark.StructField(OPERATION, spark.IntegerType()),
        spark.StructField(ROW, spark.LongType()),
        *(spark.StructField(name, spark.LongType()) for name in target.lineage),
    ]
    return spark.StructType([*first, *columns_of(target).fields])


def places_in(target: Target, frame: DataFrame) -> dict[str, Positions]:
    """The positions of rows by file, from a frame with the single column of row locations."""
    with as_raised():
        if hasattr(frame, "toArrow"):
            places = np.asarray(frame.toArrow().column(ROW))
        else:  # Spark 3.5
            rows: Any = frame.toPandas()
            places = rows[ROW].to_numpy(np.int64)
    return positions_at(target.plan, places)


def commit_changes(
    session: SparkSession,
    target: Target,
    changes: DataFrame,
    *,
    concern: BooleanExpression | None = None,
    one_source_row: bool = False,
) -> WriteResult:
    """Run the job that writes a frame of changes, and commit its files.

    ``concern`` holds for every row that was read, for the checks of concurrent commits. With ``one_source_row``, a
    table row that appears twice in the changes is refused.
    """
    context = target.write_context()
    changes, context = gathered(changes.to(changed_schema(target)), target.table.metadata, context)
    columns = [*target.lineage, *(each.name for each in columns_of(target).fields)]
    with target.table.transaction() as transaction:
        transaction.expect_branch(target.branch)
        outcome, rows = run_writers(
            session,
            changes,
            lambda log: RowChangeWriter(context, columns, log),
            _MESSAGES,
            context,
            transaction,
        )
        gone: dict[str, Positions] = {}
        updated = 0
        for path, (positions, operations) in _together(target, rows).items():
            if one_source_row and len(distinct(positions)) < len(positions):
                raise InvalidArgument(
                    "several rows of the source match one row of the table, so that it is not clear what becomes of "
                    f"it: MERGE takes one (data file {path})",
                    location=path,
                )
            goes = operations != KEEP
            if goes.any():
                gone[path] = distinct(positions[goes])
            updated += int(np.count_nonzero(operations == UPDATE))
        strings = application_of(outcome)
        return apply_changes(
            session,
            target,
            outcome.files,
            gone,
            transaction,
            branch=target.branch,
            concern=concern,
            strings=strings,
            updated=updated,
        )


def commit_deletes(
    session: SparkSession, target: Target, found: dict[str, Positions], concern: BooleanExpression | None
) -> WriteResult:
    """Commit the removal of the rows at some positions."""
    with target.table.transaction() as transaction:
        transaction.expect_branch(target.branch)
        return apply_changes(session, target, [], found, transaction, branch=target.branch, concern=concern)


def gathered(changes: DataFrame, metadata: TableMetadata, context: WriteContext) -> tuple[DataFrame, WriteContext]:
    """Bring the changed rows of a partition together in one task, unless the table's distribution mode is ``none``.

    Rows that are not written have no partition; they are distributed by their location.
    """
    mode = mode_of(metadata)
    if mode == "none" or metadata.spec().is_unpartitioned:
        return changes, context
    unwritten = f.when(f.col(OPERATION) < UPDATE, f.pmod(f.col(ROW), f.lit(_SPREAD)))
    spread, _ = distributed(changes, metadata, context, "hash", (unwritten,))
    return spread, context


def _together(target: Target, rows: list[Any]) -> dict[str, tuple[Positions, Any]]:
    """The positions of the rows that tasks saw in each file, and the operation on each row."""
    pieces: dict[int, list[Any]] = {}
    for row in rows:
        pieces.setdefault(row.file, []).append(pickle.loads(bytes(row.positions)))
    return target.plan.by_path(
        {
            number: (np.concatenate([each[0] for each in held]), np.concatenate([each[1] for each in held]))
            for number, held in pieces.items()
        }
    )
