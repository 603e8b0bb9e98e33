"""The keys of a merge's source, sent to the readers of the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from icefield import Schema
from icefield import types as iceberg
from icefield.expressions import AlwaysFalse, BooleanExpression, GreaterThanOrEqual, In, LessThanOrEqual
from icefield.toolkit import to_arrow_type
from icefield.types import IcebergType, NestedField
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from icefield_spark.failures import as_raised
from icefield_spark.keys import KEYS, MOST_KEYS, Distinct, KeyFilter
from icefield_spark.quoting import quoted
from icefield_spark.types import to_spark_type

_FEW = 200
_KINDS = (
    iceberg.IntegerType,
    iceberg.LongType,
    iceberg.StringType,
    iceberg.DateType,
    iceberg.TimestampType,
    iceberg.TimestamptzType,
    iceberg.DecimalType,
    iceberg.BinaryType,
)
"""Types for which Spark and Arrow agree on equality. Floats are not among them: they have NaN and two zeros."""

_WHOLE = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)


@dataclass(frozen=True)
class KeyColumns:
    """Columns of the table and of the source that are equal in matched rows."""

    pairs: Sequence[tuple[NestedField, str]]

    def read(self, source: DataFrame) -> tuple[KeyFilter | None, list[BooleanExpression]]:
        """A key filter for rows of the table that may match the source, and filters for their files.

        Too many keys give no key filter. Pruned rows match no row of the source, so the join has the same result
        without them.
        """
        kinds = [each.field_type for each, _ in self.pairs]
        chosen = source.select(
            *(
                f.col(quoted(other)).cast(to_spark_type(kind)).alias(f"c{at}")
                for at, (kind, (_, other)) in enumerate(zip(kinds, self.pairs, strict=True))
            )
        )
        with as_raised():
            rows = chosen.mapInArrow(Distinct(), KEYS).collect()
        found = [pa.ipc.open_stream(bytes(row.keys)).read_all() for row in rows]
        columns = [_united([each.column(at) for each in found], kind) for at, kind in enumerate(kinds)]
        every = [(each, column) for (each, _), column in zip(self.pairs, columns, strict=True) if column is not None]
        if len(every) < len(columns):
            return None, []
        best, values = max(every, key=lambda each: len(each[1]))
        return KeyFilter(best.name, values), [each for named, column in every for each in _bounds(named, column)]


def key_columns(schema: Schema, source: DataFrame, pairs: Iterable[tuple[str, str]]) -> KeyColumns | None:
    """The columns by which a merge prunes rows. ``pairs``: columns of the table and the source that must be equal.

    None if Spark and Arrow disagree on equality for the types of every pair.
    """
    fields = {each.name: each for each in schema.fields}
    found = [
        (fields[mine], other)
        for mine, other in pairs
        if source.columns.count(other) == 1 and _is_comparable(fields[mine].field_type, source.schema[other].dataType)
    ]
    return KeyColumns(found) if found else None


def _united(columns: Sequence[pa.ChunkedArray], kind: IcebergType) -> pa.Array | None:
    """The distinct values that all tasks found; None if there are too many."""
    form = to_arrow_type(kind)
    lists = [chunk.flatten() for column in columns for chunk in column.chunks]
    values = pc.unique(pa.concat_arrays([each.cast(form) for each in lists])) if lists else pa.array([], form)
    return None if len(values) > MOST_KEYS else values


def _bounds(field: NestedField, values: pa.Array) -> list[BooleanExpression]:
    name = (field.name,)
    if not len(values):
        return [AlwaysFalse()]
    if len(values) <= _FEW:
        return [In(name, values.to_pylist())]
    if isinstance(field.field_type, iceberg.BinaryType):
        return []
    ends = pc.min_max(values).as_py()
    return [GreaterThanOrEqual(name, ends["min"]), LessThanOrEqual(name, ends["max"])]


def _is_comparable(kind: IcebergType, given: spark.DataType) -> bool:
    if not isinstance(kind, _KINDS):
        return False
    mine = to_spark_type(kind)
    return mine == given or (isinstance(mine, _WHOLE) and isinstance(given, _WHOLE))
