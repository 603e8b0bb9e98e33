"""The writing side of the data source: executors write files, one commit makes them visible, or none does."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from icefield import Table
from icefield.errors import ValidationFailed
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from icefield_spark.attempts import SECONDS_TO_KILL
from icefield_spark.failures import cause_alone
from icefield_spark.merging import add_columns
from icefield_spark.source import QuerySource
from icefield_spark.sweeping import sweep
from icefield_spark.writing import (
    PARTITIONS,
    ChunkWriter,
    Outcome,
    Replaced,
    check_fits,
    check_target,
    spark_write_context,
    stage,
)

WRITE_ID = "icefield.write-id"
"""A key of the snapshot's summary: by it a table that is read again says whether a write was committed."""


@dataclass(frozen=True, slots=True, repr=False)
class Written(WriterCommitMessage):
    """The message of a task: a pickled ``Message``."""

    message: bytes

    def __repr__(self) -> str:
        return "icefield"


class IcefieldWriter(DataSourceArrowWriter):
    """Writes on executors; the commit runs once, with the messages of the winning attempts.

    It is created on the driver before the job, and raises there for a missing table and for columns that do not fit.
    """

    def __init__(self, source: QuerySource, columns: StructType, overwrite: bool) -> None:
        source.check_writable(overwrite)
        self._source = source
        self._overwrite = overwrite
        self._columns = columns
        table = source.table()
        transaction = table.transaction()
        try:
            transaction.expect_branch(source.branch)
            if source.merges_schema:
                add_columns(transaction, columns, False)
            shape = transaction.shape
        finally:
            transaction.end()  # ``commit`` begins another one
        self._uuid = table.metadata.table_uuid
        self._context = source.adjusted(spark_write_context(table, shape))
        # Only tasks know spark.sql.caseSensitive, and refuse columns by it later.
        check_fits(self._context, columns, case_sensitive=False)
        self._filter = check_target(table, source.options.get("overwrite-where"))
        self._by_partition = source.replaces_partitions

    @cause_alone()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return Written(pickle.dumps(ChunkWriter(self._context).write(iterator)))

    @cause_alone()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        outcome = _outcome(messages)
        source, is_staged = self._source, False
        try:
            with source.catalog() as catalog, self._same(source.load(catalog)).transaction() as transaction:
                if source.merges_schema:
                    add_columns(transaction, self._columns, False)
                    self._check_schema(transaction)
                is_staged = True  # from here on the transaction deletes files that are surely not committed
                stage(
                    transaction,
                    outcome,
                    self._replaced(outcome),
                    branch=source.branch,
                    snapshot_properties={**source.snapshot_properties, WRITE_ID: self._context.operation_id},
                    isolation_level=source.options.get("isolation-level"),
                )
        except BaseException:
            if not is_staged:
                with suppress(Exception):
                    self._context.io.delete_many([file.file_path for file in outcome.files])
            raise
        finally:
            outcome.sweep(self._context)

    def _replaced(self, outcome: Outcome) -> Replaced:
        if not self._overwrite:
            return None
        # Only tasks see the session's settings.
        by_partition = outcome.replaces_partitions if self._by_partition is None else self._by_partition
        return PARTITIONS if by_partition else self._filter

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete the files of tasks, when it is certain that no version refers to them.

        Spark calls this when a task failed, and when ``commit`` raised. In the second case no message is missing, and
        the commit has cleaned up after itself unless its outcome is unknown: then the commit may still happen, and
        nothing may be deleted. In the first case this is certain, and the table is read again nevertheless.
        """
        missing = sum(not isinstance(message, Written) for message in messages)
        if not missing:
            return
        if missing > 1:  # one has failed; other tasks may run until Spark kills them
            time.sleep(SECONDS_TO_KILL)
        # An error here would hide the original error. Leftovers are orphans, and maintenance removes them.
        with suppress(Exception), self._source.catalog() as catalog:
            if not self._is_committed(self._source.load(catalog)):
                self._context.io.delete_many([file.file_path for file in _outcome(messages).files])
                sweep(self._context)

    def _same(self, table: Table) -> Table:
        if table.metadata.table_uuid != self._uuid:
            raise ValidationFailed(
                f"table '{'.'.join(table.name())}' was replaced by another one while it was written to; write again",
                table=table.name(),
            )
        return table

    def _check_schema(self, transaction: Any) -> None:
        if transaction.shape.schema().as_struct() != self._context.schema.as_struct():
            raise ValidationFailed("the table's columns were changed while it was written to; write again")

    def _is_committed(self, table: Table) -> bool:
        operation = self._context.operation_id
        return any(snapshot.summary.get(WRITE_ID) == operation for snapshot in table.snapshots())

    def __repr__(self) -> str:  # options may hold credentials
        return "icefield"


def _outcome(messages: Sequence[WriterCommitMessage | None]) -> Outcome:
    return Outcome.of([message.message for message in messages if isinstance(message, Written)])
