"""Checks whether Spark's own Parquet writer can write to a table, and chooses its options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from icefield import types as iceberg
from icefield.metadata import Property, TableMetadata, get_int, get_str
from icefield.types import NestedField
from icefield.writing import WriteContext
from icefield_parquet.properties import (
    PARQUET_COMPRESSION,
    PARQUET_COMPRESSION_LEVEL,
    PARQUET_DICT_SIZE,
    PARQUET_PAGE_ROW_LIMIT,
    PARQUET_PAGE_SIZE,
    PARQUET_PAGE_VERSION,
    PARQUET_ROW_GROUP_SIZE,
)
from pyspark import __version__ as spark_version
from pyspark.sql import SparkSession

from icefield_spark.roads.columns import UnfitForSpark

SMALLEST_TARGET: Final = 32 << 20
"""Spark ends a file after so many rows. For smaller files than this, bytes are looked at while they are written."""

_TYPES: Final = (
    iceberg.BooleanType,
    iceberg.IntegerType,
    iceberg.LongType,
    iceberg.FloatType,
    iceberg.DoubleType,
    iceberg.DecimalType,
    iceberg.DateType,
    iceberg.TimestampType,
    iceberg.TimestamptzType,
    iceberg.StringType,
    iceberg.BinaryType,
)
_TIMES: Final = (iceberg.DateType, iceberg.TimestampType, iceberg.TimestamptzType)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_BYTES: Final[Mapping[type, int]] = {
    iceberg.BooleanType: 1,
    iceberg.IntegerType: 4,
    iceberg.FloatType: 4,
    iceberg.DateType: 4,
}
_BYTES_OF_STRINGS, _BYTES_OF_OTHERS = 20, 8
_TOTALS: Final = ("total-files-size", "total-data-files", "total-records")
_A_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_LARGE_FILE: Final = 1 << 20
_FEWEST_ROWS: Final = 100

_CODECS: Final = {"zstd": "zstd", "gzip": "gzip", "snappy": "snappy", "uncompressed": "uncompressed", "none": "none"}
_TIMESTAMPS: Final = "spark.sql.parquet.outputTimestampType"
_MICROS: Final = "TIMESTAMP_MICROS"
_OPTIONS_SAY_WHICH_TIMESTAMPS: Final = tuple(map(int, spark_version.split(".")[:2])) >= (4, 3)
"""Before Spark 4.3, only the session's setting chooses the type of timestamps, and its default is INT96."""

_COMMON: Final = {
    _TIMESTAMPS: _MICROS,
    # Parquet leaves out longer bounds, and with them the count of nulls.
    "parquet.statistics.truncate.length": "64",
    "parquet.summary.metadata.level": "NONE",
    "parquet.bloom.filter.enabled": "false",
    "parquet.column.statistics.enabled": "true",
    "parquet.writer.version": "v1",
    "mapreduce.output.basename": "part",  # names of data files must not begin with '_'
    # Version 1 moves files to their final place after all tasks have ended, version 2 after each task.
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
}
_LOCAL: Final = {  # without a file of checksums next to each
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
_SIZES: Final = {
    "parquet.block.size": PARQUET_ROW_GROUP_SIZE,
    "parquet.page.size": PARQUET_PAGE_SIZE,
    "parquet.dictionary.page.size": PARQUET_DICT_SIZE,
}
_OBEYED: Final = frozenset(
    each.name
    for each in (
        PARQUET_COMPRESSION,
        PARQUET_COMPRESSION_LEVEL,
        PARQUET_PAGE_ROW_LIMIT,
        PARQUET_PAGE_VERSION,
        *_SIZES.values(),
    )
)
_OF_PARQUET: Final = "write.parquet."

_MOST_OF_AN_INT: Final = (1 << 31) - 1
_MOST_OF_A_LONG: Final = (1 << 63) - 1
_LEAST_OF_A_PAGE: Final = 64
_LEVELS: Final = range(-131_072, 23)
_CIPHER: Final = "parquet.crypto.factory.class"

# The defaults of these settings. With other values, files are written differently.
_SETTINGS: Final = {
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
    # Without planned writes, Spark sorts by partitions again, and the order within a partition is undefined.
    "spark.sql.optimizer.plannedWrite.enabled": "true",
}
_CALENDAR: Final = "spark.sql.parquet.datetimeRebaseModeInWrite"


def check_fits_spark(spark: SparkSession, context: WriteContext) -> None:
    """Raise ``UnfitForSpark`` if a table's schema, properties or session rule out Spark's own writer."""
    if context.file_format != "parquet":
        raise UnfitForSpark(f"the table's files are {context.file_format}")
    if context.io.key_length is not None:
        raise UnfitForSpark("the table is encrypted, and Spark's writer cannot be given the keys of its files")
    if context.locations.object_storage:
        raise UnfitForSpark("write.object-storage.enabled spreads files over folders")
    names = [field.name for field in context.schema.fields]
    for field in context.schema.fields:
        _check_column(field)
    if len({name.lower() for name in names}) < len(names):
        raise UnfitForSpark("names of columns differ by case alone")
    if context.target_file_bytes < SMALLEST_TARGET:
        raise UnfitForSpark(f"files of less than {SMALLEST_TARGET >> 20} MB are cut by their bytes")
    wanted = dict(_SETTINGS)
    kinds = {type(field.field_type) for field in context.schema.fields}
    if kinds.intersection(_TIMES):
        wanted[_CALENDAR] = "CORRECTED"
    for name, value in wanted.items():
        if str(spark.conf.get(name)).lower() != value.lower():
            raise UnfitForSpark(f"{name} is {spark.conf.get(name)}")
    jvm: Any = spark
    cipher = spark.conf.get(_CIPHER, None) or jvm._jsc.hadoopConfiguration().get(_CIPHER)
    if cipher:
        raise UnfitForSpark(f"{_CIPHER} is {cipher}")


def settings_of(context: WriteContext) -> dict[str, str]:
    """Settings of the session during the job, for which the writer has no option."""
    has_instants = any(isinstance(field.field_type, iceberg.TimestamptzType) for field in context.schema.fields)
    return {_TIMESTAMPS: _MICROS} if has_instants and not _OPTIONS_SAY_WHICH_TIMESTAMPS else {}


def options_of(metadata: TableMetadata, context: WriteContext, *, is_local: bool) -> dict[str, str]:
    """The options of a write. Raises ``UnfitForSpark`` for a table property without an option of Spark's writer."""
    properties = context.properties
    for name in properties:
        if name.startswith(_OF_PARQUET) and name not in _OBEYED:
            raise UnfitForSpark(f"the table has a property {name}")
    if get_str(properties, PARQUET_PAGE_VERSION).lower() != "v1":
        raise UnfitForSpark(f"the table has a property {PARQUET_PAGE_VERSION.name}")
    codec = _CODECS.get(get_str(properties, PARQUET_COMPRESSION).lower())
    if codec is None:
        raise UnfitForSpark(f"the table has a property {PARQUET_COMPRESSION.name}")
    found = {**_COMMON, **(_LOCAL if is_local else {}), "compression": codec}
    if PARQUET_COMPRESSION_LEVEL.name in properties:
        if codec != "zstd":
            raise UnfitForSpark(f"the table has a property {PARQUET_COMPRESSION_LEVEL.name}")
        level = get_int(properties, PARQUET_COMPRESSION_LEVEL)
        if level not in _LEVELS:
            raise UnfitForSpark(f"the table has a property {PARQUET_COMPRESSION_LEVEL.name} of {level}")
        found["parquet.compression.codec.zstd.level"] = str(level)
    for option, size in _SIZES.items():
        least, most = (1, _MOST_OF_A_LONG) if size is PARQUET_ROW_GROUP_SIZE else (_LEAST_OF_A_PAGE, _MOST_OF_AN_INT)
        found[option] = _within(properties, size, least, most)
    if PARQUET_PAGE_ROW_LIMIT.name in properties:
        found["parquet.page.row.count.limit"] = _within(properties, PARQUET_PAGE_ROW_LIMIT, 1, _MOST_OF_AN_INT)
    return found | {"maxRecordsPerFile": str(_rows_of_a_file(metadata, context.target_file_bytes))}


def _within(properties: Mapping[str, str], size: Property, least: int, most: int) -> str:
    found = get_int(properties, size)
    if not least <= found <= most:
        raise UnfitForSpark(f"the table has a property {size.name} of {found}")
    return str(found)


def _check_column(field: NestedField) -> None:
    if not isinstance(field.field_type, _TYPES):
        # Spark gives no ids to elements, keys and values.
        raise UnfitForSpark(f"column '{field.name}' is {field.field_type}")
    if not _PLAIN_NAME.fullmatch(field.name):
        raise UnfitForSpark(f"'{field.name}' is not a plain name")


def _rows_of_a_file(metadata: TableMetadata, target: int) -> int:
    """The number of rows in a file of a given size, estimated from the table's files or from its column types.

    The totals come from the summary of some writer: a wrong total makes files too small or too large, but never a file
    for each row.
    """
    snapshot = metadata.current_snapshot()
    summary: Mapping[str, Any] = {} if snapshot is None else snapshot.summary
    size, files, rows = (_number(summary.get(name)) for name in _TOTALS)
    if rows and size >= files * _LARGE_FILE:
        bytes_of_a_row = size / rows
    else:  # no files, or small files, which are mostly metadata
        bytes_of_a_row = sum(_width(field) for field in metadata.schema().fields)
    return int(min(max(target / max(bytes_of_a_row, 1), _FEWEST_ROWS), _MOST_OF_AN_INT))


def _number(total: str | None) -> int:
    return int(total) if total is not None and _A_NUMBER.fullmatch(total) else 0


def _width(field: NestedField) -> int:
    if isinstance(field.field_type, iceberg.StringType | iceberg.BinaryType):
        return _BYTES_OF_STRINGS
    return _BYTES.get(type(field.field_type), _BYTES_OF_OTHERS)
