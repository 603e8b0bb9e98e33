"""The streaming sink: each epoch of a query is one commit, and enters the table once.

Spark creates the writer again for each commit, in a process of its own, so all of its state comes with the messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyspark.sql.datasource as api
from icefield import Schema, Table
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.expressions import AlwaysTrue
from icefield.metadata import last_epoch
from icefield.toolkit import is_true, whole_number
from icefield.transaction import EqualityDelta
from icefield.writing import DataFile, DeleteContext, write_batches
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from icefield_spark.executors import for_executors
from icefield_spark.failures import cause_alone
from icefield_spark.options import STREAM_READ, refuse_options
from icefield_spark.source import QuerySource
from icefield_spark.streaming.epochs import RUN_ID, WRITE_ID, Epoch, EpochWritten, WriteOnce, sweep_epoch
from icefield_spark.streaming.messages import SMALL_TASK_BYTES, StreamReport, StreamTask, from_streams
from icefield_spark.sweeping import sweep
from icefield_spark.writing import APPLICATION, ENGINE, check_fits, spark_write_context

_Base: Any = getattr(api, "DataSourceStreamArrowWriter", None)
_OF_BATCHES: Final = ("overwrite-where", "partition-overwrite-mode", "merge-schema", "isolation-level")
_TAKES_ARROW: Final = _Base is not None


class IcefieldStreamWriter(_Base if _TAKES_ARROW else object):  # type: ignore[misc]
    """Writes the epochs of a query. ``complete``: each epoch replaces all rows."""

    def __init__(self, source: QuerySource, columns: StructType, complete: bool) -> None:
        if not _TAKES_ARROW:
            raise UnsupportedFeature("a streaming write takes Spark 4.1 or later; before, write in foreachBatch")
        source.check_writable(False)
        refuse_options(source.options, _OF_BATCHES, "is for writes that are no stream")
        refuse_options(source.options, STREAM_READ, "is for reading")
        self._source = source
        self._complete = complete
        table = source.table()
        transaction = table.transaction()
        transaction.expect_branch(source.branch)
        self._uuid = table.metadata.table_uuid
        self._context = source.adjusted(spark_write_context(table, transaction.shape))
        check_fits(self._context, columns, case_sensitive=False)
        self._keys = upsert_keys(source, table.schema(), complete, table.properties)
        self._deletes = None if not self._keys else for_executors(DeleteContext.from_metadata(table.metadata, table.io))
        self._small = whole_number(source.options, "small-task-bytes", SMALL_TASK_BYTES, 0)

    # -- tasks --------------------------------------------------------------------------------------------------------

    @cause_alone()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return StreamTask(self._context, self._deletes, self._keys, self._small).write(iterator)

    def __getstate__(self) -> dict[str, Any]:  # tasks need neither the options nor anything of the catalog
        return {**self.__dict__, "_source": None}

    # -- commits ------------------------------------------------------------------------------------------------------

    @cause_alone()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 -- Spark's name
        """Make the rows of an epoch visible, unless they are; Spark runs an epoch again after a crash."""
        found = [message for message in messages if isinstance(message, StreamReport)]
        if not found:  # no task ran, so that there is nothing to add
            return
        epoch = replace(found[0].epoch, number=batchId)
        with self._source.catalog() as catalog:
            table = self._source.load(catalog)
            if table.metadata.table_uuid != self._uuid:
                raise InvalidArgument(f"table '{'.'.join(table.name())}' was replaced while it was written to")
            before = last_epoch(table.metadata, self._source.branch, epoch.query)
            run = None if before is None or before[1] is None else before[1].summary.get(RUN_ID)
            is_first = not epoch.run or run != epoch.run
            try:
                files = self._append(table, epoch, found)
                if any(message.is_contested for message in found):  # an attempt that lost may have left files
                    sweep(replace(self._context, operation_id=found[0].write_id), files)
            except EpochWritten:
                # The transaction has deleted the files of this attempt, unless they are the very files of the table.
                table.refresh()
            if is_first:
                folders = self._context.locations.data_folder, self._context.locations.metadata_folder
                sweep_epoch(table, epoch, self._source.branch, folders)

    def _append(self, table: Table, epoch: Epoch, messages: Sequence[StreamReport]) -> list[DataFile]:
        """Commit the epoch, and return its files. Raises ``EpochWritten``."""
        write_id = messages[0].write_id
        branch = self._source.branch
        with table.transaction() as transaction:
            transaction.mark_files(write_id)
            for message in messages:
                transaction.context.written.add(*message.paths)
            WriteOnce(transaction.stage, epoch, branch, write_id).commit()
            files = [file for message in messages for file in message.files]
            rows = list(from_streams([message.rows for message in messages]))
            if rows:
                # One file for each partition, where every task would have written one.
                context = replace(self._context, operation_id=f"{write_id}-c")
                files += write_batches(context, iter(rows), note=transaction.context.written.add)
            application = {APPLICATION: found} if (found := messages[0].application) else {}
            strings = {**ENGINE, **application, **self._source.snapshot_properties, **epoch.properties()}
            strings[WRITE_ID] = write_id
            deletes = [file for message in messages for file in message.deletes]
            if self._complete:
                transaction.overwrite_files(files, AlwaysTrue(), strings, branch=branch)
            elif self._keys:
                _check_keys(messages, self._keys)
                action = EqualityDelta(transaction.stage, branch=branch, snapshot_properties=strings)
                action.add_fresh_rows(files).add_deletes(*deletes).commit()
            else:
                transaction.append_files(files, strings, branch)
        return [*files, *deletes]

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 -- Spark's name
        """Delete the files of tasks, when it is certain that no version refers to them.

        Spark calls this when a task failed, and when ``commit`` raised. In the second case no message is missing: the
        commit has cleaned up after itself. If its outcome is unknown, the next attempt at the epoch decides. In the
        first case no commit was tried; the table is read again nevertheless.
        """
        found = [message for message in messages if isinstance(message, StreamReport)]
        if not found or len(found) == len(messages):
            return
        # An error here would hide the original error. The next attempt at the epoch deletes leftovers.
        with suppress(Exception), self._source.catalog() as catalog:
            table = self._source.load(catalog)
            write_id = found[0].write_id
            if all(snapshot.summary.get(WRITE_ID) != write_id for snapshot in table.snapshots()):
                table.io.delete_many([path for message in found for path in message.paths])

    def __repr__(self) -> str:  # options may hold credentials
        return "icefield"


def upsert_keys(source: QuerySource, schema: Schema, complete: bool, properties: Any) -> tuple[str, ...]:
    """The columns by which rows of a stream replace others; empty for appends. Raises ``InvalidArgument``."""
    named = source.options.get("upsert-columns")
    default = not complete and is_true(properties, "write.upsert.enabled")
    if not (is_true(source.options, "upsert", default) or named):
        return ()
    if complete:
        raise InvalidArgument("output mode complete replaces all rows: leave out upsert and upsert-columns")
    if named:
        names = tuple(name.strip() for name in named.split(","))
    else:
        names = tuple(schema.find_column_name(each) or "" for each in schema.identifier_field_ids)
    if not names:
        raise InvalidArgument(
            "an upsert needs the columns that identify a row: give them as upsert-columns='id, day', or set the "
            "identifier fields of the schema"
        )
    own = {field.name for field in schema.fields}
    wrong = next((name for name in names if name not in own), None)
    if wrong is not None:
        raise InvalidArgument(f"upsert-columns are columns of the table that are inside no other, not '{wrong}'")
    return names


def _check_keys(messages: Sequence[StreamReport], keys: Sequence[str]) -> None:
    """Raise ``InvalidArgument`` if two tasks have rows with the same key: their order is unknown."""
    streams = [message.keys for message in messages if message.keys]
    if len(streams) < 2:
        return
    table = pa.Table.from_batches(list(from_streams(streams)))
    if table.group_by(list(keys)).aggregate([]).num_rows != table.num_rows:
        raise InvalidArgument(
            f"a batch has rows of one key ({', '.join(keys)}) in several tasks, so that their order is not known: "
            f"write df.repartition({', '.join(repr(key) for key in keys)}), so that a task gets all rows of a key"
        )
