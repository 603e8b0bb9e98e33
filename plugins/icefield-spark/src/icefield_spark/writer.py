"""The writing side of the data source: executors write files, one commit makes them visible, or none does."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
from icefield import Table
from icefield.errors import ValidationFailed
from icefield.writing import DataFile
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from icefield_spark.source import Source
from icefield_spark.writing import ChunkWriter, check_fits, check_target, files_of, spark_write_context, stage

WRITE_ID = "icefield.write-id"
"""A key of the snapshot's summary: by it a table that is read again says whether a write was committed."""


@dataclass(frozen=True, slots=True, repr=False)
class Written(WriterCommitMessage):
    """What a task states: its data files, pickled."""

    files: bytes

    def __repr__(self) -> str:
        return "icefield"


class IcefieldWriter(DataSourceArrowWriter):
    """Writes on executors; the commit runs once, with the messages of the winning attempts.

    Made on the driver's side, before the job: a missing table, and columns that do not fit, fail there.
    """

    def __init__(self, source: Source, columns: StructType, overwrite: bool) -> None:
        self._source = source
        table = source.table()
        table.transaction().expect_branch(source.branch)
        self._uuid = table.metadata.table_uuid
        self._context = spark_write_context(table)
        check_fits(self._context, columns)
        self._overwritten = check_target(table, source.options.get("overwrite-where")) if overwrite else None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return Written(pickle.dumps(ChunkWriter(self._context).write(iterator)))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        files = _files(messages)
        source, is_staged = self._source, False
        try:
            with source.catalog() as catalog, self._same(source.load(catalog)).transaction() as transaction:
                is_staged = True  # from here on the transaction deletes what is surely not committed
                strings = {**source.snapshot_properties, WRITE_ID: self._context.operation_id}
                stage(transaction, files, self._overwritten, branch=source.branch, snapshot_properties=strings)
        except BaseException:
            if not is_staged:
                with suppress(Exception):
                    self._context.io.delete_many([file.file_path for file in files])
            raise

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete what tasks wrote, when it is certain that no version refers to it.

        Spark calls this when a task failed, and when ``commit`` raised. In the second case every message is there,
        and the commit has cleaned up after itself unless its outcome is unknown: then it may still come to pass, and
        nothing may be deleted. In the first it is certain, and the table is read again nevertheless.
        """
        if all(isinstance(message, Written) for message in messages):
            return
        files = _files(messages)
        # An error here would hide the one that matters; what stays is an orphan, and upkeep removes it.
        with suppress(Exception), self._source.catalog() as catalog:
            table = self._source.load(catalog)
            if files and not self._is_committed(table):
                self._context.io.delete_many([file.file_path for file in files])

    def _same(self, table: Table) -> Table:
        if table.metadata.table_uuid != self._uuid:
            raise ValidationFailed(
                f"table '{'.'.join(table.name())}' was replaced by another one while it was written to; write again",
                table=table.name(),
            )
        return table

    def _is_committed(self, table: Table) -> bool:
        operation = self._context.operation_id
        return any(snapshot.summary.get(WRITE_ID) == operation for snapshot in table.snapshots())

    def __repr__(self) -> str:  # options may hold credentials
        return "icefield"


def _files(messages: Sequence[WriterCommitMessage | None]) -> list[DataFile]:
    return files_of([message.files for message in messages if isinstance(message, Written)])
