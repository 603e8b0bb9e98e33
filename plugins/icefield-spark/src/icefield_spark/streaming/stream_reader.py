"""The streaming source: the commits to a table, batch by batch.

For the whole query, Spark asks one Python worker of the driver for offsets and plans. Tasks read in the Python workers
of executors, as in a batch read.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyspark.sql.datasource as api
from icefield.errors import UnsupportedFeature
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from icefield_spark.failures import cause_alone
from icefield_spark.source import QuerySource
from icefield_spark.streaming.following import Following
from icefield_spark.streaming.history import Limits
from icefield_spark.streaming.offsets import Offset
from icefield_spark.streaming.read_limits import (
    AVAILABLE_NOW,
    HAS_ADMISSION,
    ReadAllAvailable,
    ReadMaxFiles,
    ReadMaxRows,
)
from icefield_spark.workers import begin_task

_Base: Any = getattr(api, "DataSourceStreamReader", object)


@dataclass(frozen=True, slots=True, repr=False)
class StreamChunk(InputPartition):
    """One partition of a batch: a chunk, and the pickled context that it is read with."""

    chunk: bytes
    context: bytes

    def __repr__(self) -> str:  # the context leads to the catalog's properties
        return "icefield"


class IcefieldStreamReader(_Base, *AVAILABLE_NOW):  # type: ignore[misc]
    """Follows a table. Executors receive only the partitions, without the reader."""

    def __init__(self, source: QuerySource, columns: StructType) -> None:
        self._following = Following(source, source.table, columns)
        if not HAS_ADMISSION and not (self._following.limits.none and self._following.is_from_start):
            raise UnsupportedFeature(
                "this Spark cannot bound a batch of a source written in Python: max-files, max-rows and stream-from "
                "take Spark 4.2 or later"
            )

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 -- Spark's name
        """The offset before anything was read.

        The first batch determines the start of the stream, and its end offset keeps it.
        """
        return Offset().to_json()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 -- Spark's name
        """The limit in the options. If the options set two limits, both apply."""
        limits = self._following.limits
        if limits.files is not None:
            return ReadMaxFiles(limits.files)
        return ReadAllAvailable() if limits.rows is None else ReadMaxRows(limits.rows)

    @cause_alone()
    def latestOffset(self, start: Mapping[str, Any] | None = None, limit: Any = None) -> Mapping[str, Any]:  # noqa: N802
        """The end of the next batch; ``start`` itself if there is nothing new."""
        if start is None:  # before Spark 4.2: up to the head; planning refuses snapshots that cannot be followed
            return self._following.head().to_json()
        given = Offset.from_json(start)
        limits = Limits() if isinstance(limit, ReadAllAvailable) else self._following.limits
        reached = self._following.reach(given, limits)
        return start if reached == given else reached.to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 -- Spark's name
        """Pin the table's current state: the query ends there."""
        self._following.pin()

    @cause_alone()
    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        """The tasks that read from one offset to another; raises as ``Following.batch`` does."""
        batch = self._following.batch(Offset.from_json(start), Offset.from_json(end))
        context = pickle.dumps(batch.context)
        return [StreamChunk(chunk, context) for chunk in batch.chunks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition."""
        if not isinstance(partition, StreamChunk):  # for an empty plan Spark makes a partition of its own
            return
        begin_task()
        yield from pickle.loads(partition.context).read(partition.chunk)

    def __getstate__(self) -> dict[str, Any]:  # tasks read with the context in their partitions
        return {}

    def __repr__(self) -> str:  # options may hold credentials
        return "icefield"
