"""Rows of a frame as files of a table: written by Spark's own Parquet writer where that serves, else in Arrow."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from icefield import types as iceberg
from icefield.abc import FileInfo
from icefield.errors import IcefieldError, InvalidArgument, StorageError, UnsupportedFeature
from icefield.metadata import TableMetadata
from icefield.toolkit import split_location
from icefield.types import NestedField
from icefield.writing import DataFile, WriteContext
from icefield_import import FileDescriber
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from icefield_spark.arrow import spelt_as
from icefield_spark.attempts import Attempts
from icefield_spark.distributing import distributed, partition_keys
from icefield_spark.failures import original
from icefield_spark.jobs import run_writers
from icefield_spark.jvm import is_connected, jvm_class
from icefield_spark.quoting import quoted
from icefield_spark.roads.choosing import Road
from icefield_spark.roads.columns import UnfitForSpark
from icefield_spark.roads.literals import literal
from icefield_spark.roads.reach import spelt_for_spark
from icefield_spark.roads.write_fit import check_fits_spark, options_of, settings_of
from icefield_spark.settings import at_least, blocks_of, set_to
from icefield_spark.types import to_spark_type
from icefield_spark.writing import APPLICATION, MESSAGE_SCHEMA, ChunkWriter, Outcome, is_case_sensitive

_log = logging.getLogger(__name__)

_ID: Final = "parquet.field.id"
_DONE: Final = "_SUCCESS"
_UNPUBLISHED: Final = ("_temporary", _DONE)
_SCHEMES: Final = ("file", "hdfs")
"""Storage where a folder is renamed in one step, as Spark's committer of files wants it."""

_WHOLE: Final = (spark.ByteType, spark.ShortType)
_STRINGS: Final = (spark.StringType, spark.VarcharType, spark.CharType)
_HOLDS_A_NULL: Final = "it is required and holds a null"
_NO_STRING: Final = "a value is none of string: it is not UTF-8"
_REFUSED: Final = re.compile(rf"(column '\w+' cannot be written: (?:{_HOLDS_A_NULL}|{_NO_STRING}))")
_LONGEST: Final = 100
"""Bytes of a value that name a folder as they are; a name has 255 of them, and each byte takes two digits."""

_NULL: Final = "null"
"""The folder of null. With nullable strings, Spark would derive new folder names and then sort by them again."""

_DESCRIBERS: Final = 8
_OPEN_FILES: Final = "spark.sql.maxConcurrentOutputFileWriters"
_MOST_OPEN: Final = 32
"""Each holds the rows of a row group, which Parquet makes smaller where all together would take too much memory."""


_known_by_spark: Callable[[Column], Column] | None = getattr(f, "is_valid_utf8", None)
"""From Spark 4.0 on."""


@dataclass(frozen=True, slots=True)
class _JobLocation:
    """The folder of a job's files, in the table's spelling and in Spark's."""

    folder: str
    path: str

    @property
    def scheme(self) -> str:
        return self.path.partition("://")[0]


def write_rows(
    spark: SparkSession,
    frame: DataFrame,
    context: WriteContext,
    transaction: Any,
    *,
    distribution: str | None = None,
    road: Road | None = None,
) -> Outcome:
    """Run the job that writes a frame's rows for a table. The transaction owns its files, to commit or to delete.

    The columns are known to fit (``check_fits``). ``road``: the writer; None chooses Spark's own writer if it can be
    used. Raises ``InvalidArgument`` for rows that do not fit, ``UnsupportedFeature`` for a road that does not serve.
    """
    metadata: TableMetadata = transaction.shape
    frame = _in_order_of_bytes(frame)
    if road is not Road.ARROW:
        exact = is_case_sensitive(spark)
        try:
            job = _Job.of(frame.sparkSession, frame, metadata, context, distribution, exact=exact)
        except UnfitForSpark as reason:
            if road is Road.SPARK:
                raise UnsupportedFeature(f"Spark's own writer does not serve: {reason}") from None
            _log.debug("rows are written in Arrow: %s", reason)
        else:
            return job.run(transaction)
    spread, context = distributed(frame, metadata, context, distribution)
    return run_writers(spark, spread, partial(ChunkWriter, context), MESSAGE_SCHEMA, context, transaction)[0]


@dataclass(frozen=True, slots=True)
class _Job:
    """A write by Spark's own writer."""

    spark: SparkSession
    frame: DataFrame
    keys: Sequence[str]
    options: Mapping[str, str]
    metadata: TableMetadata
    context: WriteContext
    place: _JobLocation

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        frame: DataFrame,
        metadata: TableMetadata,
        context: WriteContext,
        distribution: str | None,
        *,
        exact: bool,
    ) -> _Job:
        """The job for a frame of a session. Raises ``UnfitForSpark`` where Spark's writer does not serve.

        ``exact``: whether names of columns that differ by case are different.
        """
        if is_connected(spark):
            raise UnfitForSpark("Spark Connect leads to no JVM")
        check_fits_spark(spark, context)
        place = _place_of(spark, context, metadata)
        options = options_of(metadata, context, is_local=place.scheme == "file")
        columns = _columns(frame, context, exact)
        keys = partition_keys(frame, metadata)
        if keys is None:
            raise UnfitForSpark("Spark has no expression for a transform of the table")
        taken = {name.lower() for name in [*frame.columns, *(field.name for field in context.schema.fields)]}
        names = [_free(f"partition_{number}", taken) for number in range(len(keys))]
        # Compute columns before the shuffle: expressions above a shuffle would build each row again.
        frame = frame.select(*columns, *(_as_folder(key).alias(name) for key, name in zip(keys, names, strict=True)))
        spread, context = distributed(frame, metadata, context, distribution, keys=[f.col(name) for name in names])
        return cls(spark, spread, names, options, metadata, context, place)

    def run(self, transaction: Any) -> Outcome:
        """Write the files, and describe them."""
        attempts = Attempts(self.spark)
        try:
            with attempts, ExitStack() as changed:
                for name, value in settings_of(self.context).items():
                    changed.enter_context(set_to(self.spark, name, value))
                is_sorted = self._write()
        except BaseException as failure:
            attempts.end()
            self._remove("")
            error = _cause(failure) if isinstance(failure, (PySparkException, Py4JJavaError)) else None
            if error is None:
                raise
            raise error from failure
        try:
            any_lost = attempts.any_lost()  # waits for running attempts
            found = self._published()
            self._flush(found)
            files = self._described(found, self.context.sort_order_id if is_sorted else None)
            if any_lost is False:
                self._check_all_there(files, attempts.rows_written())
        except BaseException:
            self._remove("")
            raise
        transaction.context.written.add(*(file.file_path for file in files))
        for name in _UNPUBLISHED if files else [""]:
            self._remove(name)
        settings = {APPLICATION: self.spark.sparkContext.applicationId}
        return Outcome(files, is_contested=False, settings=settings)

    def _write(self) -> bool:
        """Run the job, and return whether the rows of each file kept the order of the frame.

        A task has a file open for each partition, and with many partitions sorts the rows by them. For sorted rows, a
        setting of the session prevents both: only then do the rows surely keep their order.
        """
        writer = self.frame.write.options(**self.options)
        if not self.keys:
            writer.parquet(self.place.path)
            return True
        if self.context.sort_order_id is None:
            with at_least(self.spark, _OPEN_FILES, _MOST_OPEN, 0):
                writer.partitionBy(*self.keys).parquet(self.place.path)
            return False
        before, is_set = blocks_of(self.spark, _OPEN_FILES), self.spark.conf.get(_OPEN_FILES)
        writer.partitionBy(*self.keys).parquet(self.place.path)
        return is_set == "0" and blocks_of(self.spark, _OPEN_FILES) == before

    def _published(self) -> list[FileInfo]:
        """The files that Spark has put into their place."""
        folder = f"{self.place.folder}/"
        found = list(self.context.io.list_files(folder))
        names = [info.location[len(folder) :] for info in found]
        if _DONE not in names:
            raise StorageError(
                f"Spark has written to {self.place.path}, and no {_DONE} is in {folder}: Spark and this process do not "
                "see the same storage there; write with road='arrow'"
            )
        return [info for info, name in zip(found, names, strict=True) if not name.startswith("_")]

    def _check_all_there(self, files: Sequence[DataFile], written: int) -> None:
        """Refuse files that hold fewer rows than the tasks wrote."""
        there = sum(file.record_count for file in files)
        if there < written:
            raise StorageError(
                f"Spark's tasks have written {written} rows to {self.place.path}, and the files there hold {there}: "
                "executors and this process do not see the same storage; write with road='arrow'"
            )

    def _flush(self, found: Sequence[FileInfo]) -> None:
        """Make local files survive a loss of power, which Spark does not do: metadata will soon name them."""
        if self.place.scheme != "file" or self.context.io.properties.get("file.sync", "true").lower() == "false":
            return
        folder = Path(self.place.path.removeprefix("file://"))
        places = {folder / info.location[len(self.place.folder) + 1 :] for info in found}
        folders = {each for place in places for each in place.parents if each.is_relative_to(folder)}
        for place in [*places, *folders, folder.parent]:
            descriptor = os.open(place, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _described(self, found: Sequence[FileInfo], order: int | None) -> list[DataFile]:
        describer = FileDescriber(self.metadata, self.context.io)
        floats = [field.field_id for field in self.context.schema.fields if _is_float(field)]

        def describe(info: FileInfo) -> DataFile:
            file = describer.describe(info.location, of_one_partition=True)
            # Parquet's Java library states no bounds for columns with NaN: a column with a bound has no NaN.
            free = {each: 0 for each in floats if each in file.upper_bounds}
            return replace(file, nan_value_counts=free, sort_order_id=order)

        with ThreadPoolExecutor(_DESCRIBERS) as threads:
            files = list(threads.map(describe, found))
        empty = [file.file_path for file in files if not file.record_count]
        self.context.io.delete_many(empty)
        return [file for file in files if file.record_count]

    def _remove(self, name: str) -> None:
        """Delete a path below the job's folder, or the whole folder. The removal of orphans deletes leftovers."""
        with suppress(Py4JError):
            system, path = _opened(self.spark, f"{self.place.path}/{name}".rstrip("/"))
            system.delete(path, True)


def _cause(failure: PySparkException | Py4JJavaError) -> IcefieldError | None:
    refused = _REFUSED.search(str(failure))
    if refused is not None:
        return InvalidArgument(refused[1])
    return original(failure) if isinstance(failure, PySparkException) else None


def _place_of(session: SparkSession, context: WriteContext, metadata: TableMetadata) -> _JobLocation:
    folder = context.locations.job_folder(context.operation_id)
    try:
        resolved = context.io.resolve(folder)
        at_home = context.io.resolve(metadata.location)
    except IcefieldError as error:
        raise UnfitForSpark(f"Spark would not be given the location: {error}") from None
    place = _JobLocation(folder, spelt_for_spark(resolved))
    if place.scheme not in _SCHEMES:
        raise UnfitForSpark(f"files on {place.scheme} are not put into place by renaming them")
    if place.scheme != "file":
        try:
            system, home = _opened(session, spelt_for_spark(at_home))
            if not system.exists(home):
                raise UnfitForSpark("Spark does not see the table's folder")
        except Py4JError as error:
            where = f"{place.scheme}://{split_location(resolved)[1]}"
            raise UnfitForSpark(f"Spark does not reach {where} ({type(error).__name__})") from None
    return place


def _opened(session: SparkSession, path: str) -> tuple[Any, Any]:
    """Hadoop's file system of a path, and the path."""
    made = jvm_class(session, "org.apache.hadoop.fs.Path")(path)
    return made.getFileSystem(session._jsc.hadoopConfiguration()), made


def _in_order_of_bytes(frame: DataFrame) -> DataFrame:
    """A frame without collations, so that Spark compares and sorts strings as Iceberg does."""
    plain = spark.StringType()
    strings = {each.name: each.dataType for each in frame.schema.fields if isinstance(each.dataType, spark.StringType)}
    if all(kind == plain for kind in strings.values()):
        return frame
    columns = [(name, f.col(quoted(name))) for name in frame.columns]
    return frame.select(*(column.cast(plain).alias(name) if name in strings else column for name, column in columns))


def _columns(frame: DataFrame, context: WriteContext, exact: bool) -> list[Column]:
    """The table's columns, computed from a frame's columns, with their field ids."""
    fields = context.schema.fields
    spelt = spelt_as([field.name for field in fields], frame.columns, exact)
    given = dict(zip(spelt, frame.schema.fields, strict=True))
    return [_column(field, given.get(field.name)).alias(field.name, metadata={_ID: field.field_id}) for field in fields]


def _column(field: NestedField, given: spark.StructField | None) -> Column:
    kind = to_spark_type(field.field_type)
    if given is None:
        return literal(field.field_type, field.write_default)
    column = f.col(quoted(given.name))
    if given.dataType != kind:
        alike = isinstance(given.dataType, _WHOLE) and isinstance(kind, spark.IntegerType)
        if not alike and not (isinstance(given.dataType, _STRINGS) and isinstance(kind, spark.StringType)):
            raise UnfitForSpark(
                f"column '{field.name}' is {kind.simpleString()}, and {given.dataType.simpleString()} is given"
            )
        column = column.cast(kind)
    checked = column
    if isinstance(kind, spark.StringType):
        checked = f.when(~_is_utf8(column), _refusal(field, _NO_STRING).cast(kind)).otherwise(column)
    if not field.required or not given.nullable:
        return checked
    checked = f.when(column.isNull(), _refusal(field, _HOLDS_A_NULL).cast(kind)).otherwise(checked)
    # So Spark sees that the column is never null, and marks it as required in the files. The last value is never used.
    return f.coalesce(checked, literal(field.field_type, _some_value(field.field_type)))


def _refusal(field: NestedField, why: str) -> Column:
    return f.raise_error(f.lit(f"column '{field.name}' cannot be written: {why}"))


def _is_utf8(column: Column) -> Column:
    if _known_by_spark is not None:
        return _known_by_spark(column)
    return f.decode(column.cast("binary"), "UTF-8") == column


def _some_value(kind: iceberg.IcebergType) -> Any:
    if isinstance(kind, iceberg.StringType):
        return ""
    if isinstance(kind, iceberg.BinaryType):
        return b""
    return isinstance(kind, iceberg.BooleanType) or 0


def _as_folder(key: tuple[Column, iceberg.IcebergType]) -> Column:
    """A partition's value as a unique folder name. The value is never read back from the name."""
    column, kind = key
    if isinstance(kind, iceberg.TimestamptzType):
        return f.unix_micros(column)
    if isinstance(kind, iceberg.TimestampType):
        return f.coalesce(column.cast("string"), f.lit(_NULL))
    if isinstance(kind, iceberg.StringType | iceberg.BinaryType):
        data = column.cast("binary")
        short = f.concat(f.lit("x"), f.hex(data))
        name = f.when(f.octet_length(data) > _LONGEST, f.concat(f.lit("h"), f.sha2(data, 256))).otherwise(short)
        return f.coalesce(name, f.lit(_NULL))
    if isinstance(kind, iceberg.FloatType | iceberg.DoubleType):
        raise UnfitForSpark("it is partitioned by floats, of which two zeros are equal for Spark")
    return column


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _is_float(field: NestedField) -> bool:
    return isinstance(field.field_type, iceberg.FloatType | iceberg.DoubleType)
