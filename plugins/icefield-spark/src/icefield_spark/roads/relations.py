"""Relations of data files in Spark's JVM, with values that are constant in each file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from icefield.errors import UnsupportedFeature
from icefield.toolkit import LruCache
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icefield_spark.catalog.compiling import maker_of_frames
from icefield_spark.jvm import is_connected, key_of

_MAKERS: LruCache[str, tuple[Any, ...]] = LruCache(100)
"""What makes relations in a session's JVM; empty where it takes no classes of ours."""


def takes_constants(spark: SparkSession) -> bool:
    """Whether a session can have relations of files with constants: its JVM is at hand and takes added classes."""
    return not is_connected(spark) and bool(_maker(spark))


def _maker(spark: SparkSession) -> tuple[Any, ...]:
    return _MAKERS.get_or_make(key_of(spark), lambda: _made(spark))


def _made(spark: SparkSession) -> tuple[Any, ...]:
    try:
        return (maker_of_frames(spark),)
    except UnsupportedFeature:
        return ()


def relation_of(
    spark: SparkSession,
    columns: StructType,
    constants: StructType,
    options: Mapping[str, str],
    files: Sequence[tuple[str, int, Sequence[Any]]],
) -> DataFrame:
    """The rows of Parquet files: some of their columns, then the constants of each file.

    ``files``: path, size in bytes and the values of the constants, as ``in_json`` gives them. Spark asks no storage
    for them before it reads them. The session ``takes_constants``.
    """
    asked = {
        "columns": columns.jsonValue(),
        "constants": constants.jsonValue(),
        "options": dict(options),
        "files": files,
    }
    (maker,) = _maker(spark)
    return DataFrame(maker.ofFiles(json.dumps(asked), spark._jsparkSession), spark)
