"""Data frames of tables at a version, and of their metadata tables."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from icefield.schema import schema_from_arrow
from pyspark.sql import DataFrame, SparkSession

from icefield_spark.arrow import SparkBatches
from icefield_spark.sql.sources import Source
from icefield_spark.types import to_spark_schema


def frame_about(spark: SparkSession, source: Source) -> DataFrame:
    """The rows of a metadata table."""
    rows = source.rows_about()
    schema = schema_from_arrow(rows.schema)
    columns = to_spark_schema(schema)
    batches = SparkBatches(schema, columns)
    converted = pa.Table.from_batches([batches.convert(each) for each in rows.to_batches()], batches.schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, converted.schema) as writer:
        writer.write_table(converted)
    return spark.range(0, 1, 1, 1).mapInArrow(_PickledRows(sink.getvalue().to_pybytes()), columns)


class _PickledRows:
    """The function for ``mapInArrow``: it returns the rows that it was pickled with."""

    def __init__(self, stream: bytes) -> None:
        self._stream = stream

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            if batch.num_rows:
                yield from pa.ipc.open_stream(self._stream)

    def __repr__(self) -> str:  # shown in Spark's plan
        return "icefield"
