"""Rows moved to the tasks that write them, and sorted there, as a table asks for.

``write.distribution-mode``: with ``hash``, all rows of a partition go to one task, so a partition gets one file instead
of one from each task. With ``range``, tasks get ranges of the sort order. With ``none``, rows stay in their tasks. Keys
are the values of the table's transforms, computed by Spark itself where it can, else in Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from icefield import Schema
from icefield.errors import InvalidArgument
from icefield.metadata import TableMetadata
from icefield.partitioning import NullOrder, SortDirection
from icefield.toolkit import to_arrow_type
from icefield.types import IcebergType
from icefield.writing import WriteContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from icefield_spark.arrow import leaf_from_spark, leaf_to_spark
from icefield_spark.quoting import quoted
from icefield_spark.running import REFERENCE
from icefield_spark.transforms import transformed
from icefield_spark.types import to_spark_type

MODE: Final = "write.distribution-mode"
_MODES = ("none", "hash", "range")
_PLAIN = ("identity", "void")
# From Spark 4.1 on.
_arrow_udf: Callable[..., Any] | None = getattr(f, "arrow_udf", None)
_ORDERS = {
    (SortDirection.ASC, NullOrder.NULLS_FIRST): Column.asc_nulls_first,
    (SortDirection.ASC, NullOrder.NULLS_LAST): Column.asc_nulls_last,
    (SortDirection.DESC, NullOrder.NULLS_FIRST): Column.desc_nulls_first,
    (SortDirection.DESC, NullOrder.NULLS_LAST): Column.desc_nulls_last,
}


def mode_of(metadata: TableMetadata, mode: str | None = None) -> str:
    """The distribution mode of a write: as requested, as the table states, or as suits its partitions and its order.

    Raises ``InvalidArgument`` for an unknown mode.
    """
    found = (mode or metadata.properties.get(MODE) or "").strip().lower()
    if found in _MODES:
        return found
    if found:
        raise InvalidArgument(f"{MODE} is none, hash or range, not '{found}'")
    if not metadata.sort_order().is_unsorted:
        return "range"
    return "none" if metadata.spec().is_unpartitioned else "hash"


def distributed(
    frame: DataFrame,
    metadata: TableMetadata,
    context: WriteContext,
    mode: str | None = None,
    more: tuple[Column, ...] = (),
    *,
    keys: Sequence[Column] | None = None,
) -> tuple[DataFrame, WriteContext]:
    """The rows, moved to their writing tasks and sorted in the order of the table, and the context with this order.

    ``more``: further columns of the ``hash`` distribution, which split partitions; with them rows are not sorted.
    ``keys``: columns that identify partitions, in place of the partition values.
    """
    chosen, schema, order, spec = mode_of(metadata, mode), metadata.schema(), metadata.sort_order(), metadata.spec()
    sorting = order.fields if all(each.is_known for each in order.fields) else ()
    if _arrow_udf is None and not all(_is_known(schema, each) for each in [*spec.fields, *sorting]):
        return frame, context
    partitions = [key for key, _ in _keys(frame, metadata)] if keys is None else [*keys]
    ordered = [
        _ORDERS[each.direction, each.null_order](key)
        for each in sorting
        if (key := _key(frame, schema, each.source_id, each.transform)) is not None
    ]
    if chosen == "hash" and partitions:
        frame = frame.repartition(*partitions, *more)
    elif chosen == "range" and (partitions or ordered):
        frame = frame.repartitionByRange(*partitions, *ordered)
    if not ordered or more:
        return frame, context
    # The rows of a partition are adjacent, so its file is written at one stretch.
    return frame.sortWithinPartitions(*partitions, *ordered), replace(context, sort_order_id=order.order_id)


def partition_keys(frame: DataFrame, metadata: TableMetadata) -> list[tuple[Column, IcebergType]] | None:
    """A table's partition values as Spark's own expressions, with their types; None if Spark lacks an expression.

    Fields with one value for all rows are left out.
    """
    schema, fields = metadata.schema(), metadata.spec().fields
    if not all(_is_known(schema, each) for each in fields):
        return None
    return [
        (key, each.transform.result_type(schema.id_to_field[each.source_id].field_type))
        for key, each in _keys(frame, metadata)
    ]


def _keys(frame: DataFrame, metadata: TableMetadata) -> list[tuple[Column, Any]]:
    """The key of each partition field that has one, and the field."""
    schema, fields = metadata.schema(), metadata.spec().fields
    found = [(_key(frame, schema, each.source_id, each.transform), each) for each in fields]
    return [(key, each) for key, each in found if key is not None]


def _is_known(schema: Schema, each: Any) -> bool:
    """Whether the key of a partition or sort field is computed without Arrow."""
    if str(each.transform) in _PLAIN:
        return True
    return transformed("NULL", each.transform, schema.id_to_field[each.source_id].field_type) is not None


def _key(frame: DataFrame, schema: Schema, source_id: int, transform: Any) -> Column | None:
    """A transform of a column; None if all rows have the same value because the frame lacks the column."""
    if str(transform) == "void":
        return None  # the column may be gone
    path = schema.name_path(source_id)
    # Spark finds the column by its own rule of case; if it finds no column, the write has been refused.
    if path[0].lower() not in map(str.lower, frame.columns):
        return None
    name = quoted(*path)
    kind = schema.id_to_field[source_id].field_type
    if str(transform) == "identity":
        return f.col(name)
    known = None if REFERENCE in name else transformed(name, transform, kind)
    return _transformed(transform, kind)(f.col(name)) if known is None else f.expr(known)


def _transformed(transform: Any, kind: IcebergType) -> Callable[[Column], Column]:
    result = transform.result_type(kind)
    form = to_arrow_type(kind)

    def key(values: pa.Array) -> pa.Array:
        found = leaf_from_spark(values, kind)
        return leaf_to_spark(transform.apply(found if found.type == form else found.cast(form), kind), result)

    assert _arrow_udf is not None, "asked before"
    made: Callable[[Column], Column] = _arrow_udf(key, to_spark_type(result))
    return made
