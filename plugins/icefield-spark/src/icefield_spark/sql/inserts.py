"""``INSERT INTO`` and ``INSERT OVERWRITE``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from icefield import Table
from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysTrue, BooleanExpression, EqualTo, IsNull, conjunction
from icefield.metadata import MAIN_BRANCH
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from icefield_spark.distributing import distributed
from icefield_spark.sql.context import Context
from icefield_spark.sql.parsing import Cursor, quoted
from icefield_spark.types import to_spark_schema
from icefield_spark.writing import PARTITIONS, Replaced, check_fits, spark_write_context, stage

_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")


def insert(context: Context, cursor: Cursor, before: str = "") -> DataFrame:
    """``INSERT``; the cursor stands after it. ``before``: the WITH clause that stood in front."""
    overwrites = not cursor.takes("INTO")
    if overwrites:
        cursor.expect("OVERWRITE")
        cursor.takes("INTO")
    cursor.takes("TABLE")
    parts = cursor.names("the name of a table")
    source = context.names.find(parts)
    if source is None:
        return context.passed(cursor)
    if source.about is not None or source.snapshot_id is not None:
        raise InvalidArgument(f"'{'.'.join(parts)}' cannot be written to")
    table, branch = source.table, source.ref or MAIN_BRANCH
    given, open_partitions = _partition(cursor)
    names: list[str] | None = None
    by_name = cursor.takes("BY", "NAME")
    if not by_name and cursor.sees("(") and not any(cursor.statement.is_word(cursor.at + 1, each) for each in _QUERIES):
        names = [item.name("a column") for item in cursor.enclosed().items()]
    if cursor.sees("REPLACE", "WHERE"):
        raise InvalidArgument("INSERT INTO ... REPLACE WHERE is not supported; ice.overwrite(frame, table, where) is")
    query = context.queries.frame(f"{before} {cursor.rest()}".strip())
    values = {_column(table, name, context): value for name, value in given.items()}
    frame = shaped(context, table, query, names, by_name=by_name, values=values)
    written = spark_write_context(table)
    check_fits(written, frame.schema)
    replaced = _replaced(context, table, values, open_partitions) if overwrites else None
    with table.transaction() as transaction:
        transaction.expect_branch(branch)
        spread, written = distributed(frame, transaction.shape, written, None)
        stage(transaction, context.write(spread, written, transaction), replaced, branch=branch)
    return context.nothing()


def shaped(
    context: Context,
    table: Table,
    query: DataFrame,
    names: Sequence[str] | None,
    *,
    by_name: bool,
    values: Mapping[str, str],
) -> DataFrame:
    """The rows of a query as those of the table, by the rules of storing: what may lose its meaning is refused."""
    columns = {each.name: each for each in to_spark_schema(table.schema()).fields}
    if by_name:
        targets = [_column(table, name, context) for name in query.columns]
    elif names is not None:
        targets = [_column(table, name, context) for name in names]
    else:
        targets = [name for name in columns if name not in values]
    if len(targets) != len(query.columns):
        raise InvalidArgument(
            f"the query gives {len(query.columns)} columns ({', '.join(query.columns)}) where the table takes "
            f"{len(targets)} ({', '.join(targets)})"
        )
    if len({*targets, *values}) < len(targets) + len(values):
        raise InvalidArgument(f"a column is given twice: {', '.join([*targets, *values])}")
    frame = query.toDF(*targets)
    if values:
        every = [f.col(quoted(name)) for name in targets]
        frame = frame.select(*every, *(f.expr(value).alias(name) for name, value in values.items()))
    chosen = [each for name, each in columns.items() if name in {*targets, *values}]
    return frame.to(spark.StructType([spark.StructField(each.name, each.dataType, True) for each in chosen]))


def _partition(cursor: Cursor) -> tuple[dict[str, str], bool]:
    """Take ``PARTITION (a = 1, b)``: values by column, and whether a column has none."""
    given: dict[str, str] = {}
    is_open = False
    if cursor.takes("PARTITION"):
        for item in cursor.enclosed().items():
            name = item.name("a column")
            if item.takes("="):
                given[name] = item.rest()
            else:
                item.expect_end()
                is_open = True
    return given, is_open


def _replaced(context: Context, table: Table, values: Mapping[str, str], open_partitions: bool) -> Replaced:
    """The rows that an overwrite replaces, or ``PARTITIONS`` for the partitions that rows come for."""
    live = [field for field in table.spec().fields if str(field.transform) != "void"]
    dynamic = str(context.spark.conf.get("spark.sql.sources.partitionOverwriteMode")).lower() == "dynamic"
    if dynamic and live and (open_partitions or len(values) < len(live)):
        return PARTITIONS
    kinds = {each.name: each.dataType.simpleString() for each in to_spark_schema(table.schema()).fields}
    found: list[BooleanExpression] = []
    for name, value in values.items():
        made = context.spark.sql(f"SELECT CAST(({value}) AS {kinds[name]})").collect()[0][0]
        found.append(IsNull((name,)) if made is None else EqualTo((name,), made))
    return conjunction(found) if found else AlwaysTrue()


def _column(table: Table, name: str, context: Context) -> str:
    """The table's own spelling of a column. Raises ``InvalidArgument`` for one that it does not have."""
    sensitive = str(context.spark.conf.get("spark.sql.caseSensitive")) == "true"
    found: Any = [
        each.name
        for each in table.schema().fields
        if each.name == name or (not sensitive and each.name.lower() == name.lower())
    ]
    if len(found) != 1:
        known = ", ".join(field.name for field in table.schema().fields)
        raise InvalidArgument(f"the table has no column '{name}'; it has {known}", column=name)
    return str(found[0])
