"""``INSERT INTO`` and ``INSERT OVERWRITE``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icefield import Table
from icefield.errors import InvalidArgument
from icefield.expressions import BooleanExpression
from icefield.metadata import MAIN_BRANCH
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from icefield_spark.assignment import stored_as
from icefield_spark.quoting import quoted
from icefield_spark.sql.columns import check_partition, column_of, columns_of, equal_to, exact_filter, partition_of
from icefield_spark.sql.context import Context
from icefield_spark.sql.defaults import constant_of
from icefield_spark.sql.parsing import Cursor
from icefield_spark.types import to_spark_schema
from icefield_spark.wap import staged_as
from icefield_spark.writing import PARTITIONS, Replaced, check_fits, spark_write_context, stage

_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")


def insert(context: Context, cursor: Cursor) -> DataFrame:
    """``INSERT``; the cursor stands after it."""
    overwrites = not cursor.takes("INTO")
    if overwrites:
        cursor.expect("OVERWRITE")
        cursor.takes("INTO")
    cursor.takes("TABLE")
    parts = cursor.names("the name of a table")
    source = context.names.written(parts)
    if source is None:
        return context.passed(cursor)
    if source.about is not None or source.snapshot_id is not None:
        raise InvalidArgument(f"'{'.'.join(parts)}' cannot be written to")
    table = source.table
    staged = None if source.ref else staged_as(context.spark, table)
    branch = None if staged else source.ref or MAIN_BRANCH
    summary = {"wap.id": staged} if staged else None
    partition = partition_of(cursor)
    check_partition(context, table, partition)
    open_partitions = None in partition.values()
    names: list[str] | None = None
    by_name = cursor.takes("BY", "NAME")
    if not by_name and cursor.sees("(") and not any(cursor.statement.is_word(cursor.at + 1, each) for each in _QUERIES):
        names = [item.name("a column") for item in cursor.enclosed().items()]
    condition: BooleanExpression | None = None
    if cursor.takes("REPLACE", "WHERE"):
        if overwrites or partition:
            raise InvalidArgument("REPLACE WHERE belongs to INSERT INTO without a partition")
        condition = exact_filter(context, table.schema(), cursor.until(*((word,) for word in _QUERIES[:-1])))
    values = {column_of(context, table.schema(), n): value for n, value in partition.items() if value is not None}
    chosen = names or [field.name for field in table.schema().fields if field.name not in values]
    query = context.queries.frame(f"{context.before}{_with_defaults(context, table, chosen, cursor)}")
    frame = shaped(context, table, query, names, by_name=by_name, values=values)
    written = spark_write_context(table)
    check_fits(written, frame.schema)
    replaced = _replaced(context, table, values, open_partitions) if overwrites else condition
    with table.transaction() as transaction:
        transaction.expect_branch(branch)
        outcome = context.write(frame, written, transaction)
        stage(transaction, outcome, replaced, branch=branch, snapshot_properties=summary)
    return context.nothing()


def _with_defaults(context: Context, table: Table, names: Sequence[str], cursor: Cursor) -> str:
    """Take the query, in which constants take the place of DEFAULT in the rows of VALUES."""
    statement, start = cursor.statement, cursor.at
    found: list[tuple[int, str]] = []
    spelt: dict[str, str] = {}
    if cursor.takes("VALUES"):
        for row in cursor.items():
            for name, item in zip(names, row.enclosed().items() if row.sees("(") else [row], strict=False):
                if item.sees("DEFAULT") and item.end == item.at + 1:
                    spelt = spelt or dict(zip(names, columns_of(context, table.schema(), names), strict=True))
                    field = table.schema().find_field((spelt[name],))
                    found.append((item.at, constant_of(field)))
    pieces, at = [], start
    for place, constant in found:
        pieces += [statement.between(at, place), constant]
        at = place + 1
    cursor.at = cursor.end
    return " ".join([*pieces, statement.between(at, cursor.end)])


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
        targets = columns_of(context, table.schema(), query.columns)
    elif names is not None:
        targets = columns_of(context, table.schema(), names)
    else:
        targets = [name for name in columns if name not in values]
    if len(targets) != len(query.columns):
        raise InvalidArgument(
            f"the query gives {len(query.columns)} columns ({', '.join(query.columns)}) where the table takes "
            f"{len(targets)} ({', '.join(targets)})"
        )
    given = {*targets, *values}
    if len(given) < len(targets) + len(values):
        raise InvalidArgument(f"a column is given twice: {', '.join([*targets, *values])}")
    frame = query.toDF(*targets)
    if values:
        every = [f.col(quoted(name)) for name in targets]
        # As Spark does: a constant of a partition is cast, whatever rows may hold.
        constants = (f.expr(f"({value})").cast(columns[name].dataType).alias(name) for name, value in values.items())
        frame = frame.select(*every, *constants)
    chosen = [each for name, each in columns.items() if name in given]
    return stored_as(context.spark, frame, spark.StructType(chosen))


def _replaced(context: Context, table: Table, values: Mapping[str, str], open_partitions: bool) -> Replaced:
    """The rows that an overwrite replaces, or ``PARTITIONS`` for the partitions that rows come for."""
    live = [field for field in table.spec().fields if str(field.transform) != "void"]
    dynamic = str(context.spark.conf.get("spark.sql.sources.partitionOverwriteMode")).lower() == "dynamic"
    if dynamic and live and (open_partitions or len(values) < len(live)):
        return PARTITIONS
    return equal_to(context, table.schema(), values)
