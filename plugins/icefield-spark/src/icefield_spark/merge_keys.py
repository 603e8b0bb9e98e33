"""The keys of a merge's source, sent to the readers of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from icefield import Schema
from icefield import types as iceberg
from icefield.expressions import AlwaysFalse, BooleanExpression, GreaterThanOrEqual, In, LessThanOrEqual
from icefield.toolkit import to_arrow_type
from icefield.types import IcebergType, NestedField
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from icefield_spark.failures import as_raised
from icefield_spark.keys import KEYS, MOST_KEYS, Distinct, KeyFilter
from icefield_spark.quoting import quoted
from icefield_spark.types import to_spark_type

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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
        chosen = source.select(*(_cast(field, other).alias(f"c{at}") for at, (field, other) in enumerate(self.pairs)))
        with as_raised():
            rows = chosen.mapInArrow(Distinct(), KEYS).collect()
        found = [pa.ipc.open_stream(bytes(row.keys)).read_all() for row in rows]
        columns = [_united([each.column(at) for each in found], kind) for at, kind in enumerate(kinds)]
        every = [(each, column) for (each, _), column in zip(self.pairs, columns, strict=True) if column is not None]
        if len(every) < len(columns):
            return None, []
        best, values = max(every, key=lambda each: len(each[1]))
        return KeyFilter(best.name, values), [each for named, column in every for each in _bounds(named, column)]

    def ends(self) -> list[Column]:
        """Aggregates over the source: the number of its rows, then the least and the greatest key of each pair."""
        found = [f.count(f.lit(1)).alias("count")]
        for at, (field, other) in enumerate(self.pairs):
            for name, end in (("least", f.min), ("greatest", f.max)):
                found.append(_text(end(_cast(field, other)), field.field_type).alias(f"{name}{at}"))
        return found

    def bounds(self, ends: Sequence[Any], source: DataFrame) -> list[BooleanExpression]:
        """Filters for the files of the table that may have a key of the source. No Python worker is needed for them.

        ``ends``: the values of the aggregates ``ends``.
        """
        count, *texts = ends
        fields = [field for field, _ in self.pairs]
        try:
            if count > _FEW:
                values = [_value(fields[at // 2].field_type, text) for at, text in enumerate(texts)]
                pairs = zip(fields, values[::2], values[1::2], strict=True)
                return [each for field, least, greatest in pairs for each in _within(field, least, greatest)]
            keys = [
                _text(_cast(field, other), field.field_type).alias(f"c{at}")
                for at, (field, other) in enumerate(self.pairs)
            ]
            with as_raised():
                rows = source.select(*keys).collect()
            return [
                _among(field, [_value(field.field_type, row[at]) for row in rows]) for at, field in enumerate(fields)
            ]
        except (OverflowError, ValueError):  # dates and times that Python does not have
            return []


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
    if len(values) <= _FEW:
        return [_among(field, values.to_pylist())]
    ends = pc.min_max(values).as_py()
    return _within(field, ends["min"], ends["max"])


def _among(field: NestedField, values: Iterable[Any]) -> BooleanExpression:
    """A filter: the column has one of some values, null excepted."""
    found = {each for each in values if each is not None}
    return In((field.name,), list(found)) if found else AlwaysFalse()


def _within(field: NestedField, least: Any, greatest: Any) -> list[BooleanExpression]:
    """Filters: the column lies between two values, which are None if there is no value."""
    if least is None:
        return [AlwaysFalse()]
    if isinstance(field.field_type, iceberg.BinaryType):
        return []
    return [GreaterThanOrEqual((field.name,), least), LessThanOrEqual((field.name,), greatest)]


def _cast(field: NestedField, other: str) -> Column:
    """A column of the source in the type of the table's."""
    return f.col(quoted(other)).cast(to_spark_type(field.field_type))


def _text(column: Column, kind: IcebergType) -> Column:
    """A key as text. Spark would spell an instant in the zone of the session: it becomes microseconds."""
    if isinstance(kind, iceberg.BinaryType):
        return f.hex(column)
    return (f.unix_micros(column) if isinstance(kind, iceberg.TimestamptzType) else column).cast("string")


def _value(kind: IcebergType, text: str | None) -> Any:
    """A key from its text. Raises ``ValueError`` or ``OverflowError`` for dates and times that Python does not have."""
    return None if text is None else _READ[type(kind)](text)


_READ: dict[type[IcebergType], Callable[[str], Any]] = {
    iceberg.IntegerType: int,
    iceberg.LongType: int,
    iceberg.StringType: str,
    iceberg.DateType: date.fromisoformat,
    iceberg.TimestampType: datetime.fromisoformat,
    iceberg.TimestamptzType: lambda text: _EPOCH + timedelta(microseconds=int(text)),
    iceberg.DecimalType: Decimal,
    iceberg.BinaryType: bytes.fromhex,
}


def _is_comparable(kind: IcebergType, given: spark.DataType) -> bool:
    if not isinstance(kind, _KINDS):
        return False
    mine = to_spark_type(kind)
    return mine == given or (isinstance(mine, _WHOLE) and isinstance(given, _WHOLE))
