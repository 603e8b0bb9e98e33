"""Values that statements give columns: which columns they are of, and how they are stored in them."""

# See docs/decisions/0131.

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icefield import Schema
from icefield.errors import InvalidArgument, UnsupportedFeature
from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from icefield_spark.assignment import fits_strictly, stored_as
from icefield_spark.jvm import is_connected
from icefield_spark.quoting import constant, quoted, spelt_type
from icefield_spark.row_changes import optional_columns
from icefield_spark.sql.columns import fold_of
from icefield_spark.sql.context import Context
from icefield_spark.sql.defaults import default_of
from icefield_spark.sql.parsing import Cursor, Statement
from icefield_spark.sql.qualified import Relation, names_table
from icefield_spark.sql.queries import setting
from icefield_spark.sql.scopes import Fold

Path = tuple[str, ...]
"""A column, or a field in one."""

_BY_CHANCE = frozenset(
    {"rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id"}
    | {"spark_partition_id", "input_file_name", "input_file_block_start", "input_file_block_length"}
)
"""Functions of Spark's that may give another value each time: through Spark Connect no plan tells of them."""


def assignments(
    context: Context, schema: Schema, cursor: Cursor, relation: Relation, *ends: tuple[str, ...]
) -> dict[Path, str]:
    """Take ``a = 1, s.b = 2``: the new values as they are written, by what they are given to."""
    start, columns = cursor.at, optional_columns(schema)
    cursor.until(*ends)
    given: dict[Path, str] = {}
    for item in Cursor(cursor.statement, start, cursor.at).items():
        path = path_of(columns, item.names("a column"), relation, fold_of(context))
        item.expect("=")
        if any(path[: len(other)] == other[: len(path)] for other in given):
            raise InvalidArgument(f"column '{'.'.join(path)}' is set twice", column=".".join(path))
        given[path] = default_of(schema, path, item.rest())
    if not given:
        raise cursor.unexpected("column = value")
    return given


def path_of(columns: spark.StructType, names: Sequence[str], relation: Relation, fold: Fold) -> Path:
    """The column or field that a name is, with or without its table's. Raises ``InvalidArgument`` where it is none."""
    for size in range(min(len(relation.name), len(names) - 1), -1, -1):
        if size == 0 or names_table(names[:size], relation.name, fold):
            found = _resolved(columns, names[size:], fold)
            if found:
                return found
    raise InvalidArgument(f"the table has no column '{'.'.join(names)}'; it has {', '.join(columns.names)}")


def _resolved(columns: spark.DataType, names: Sequence[str], fold: Fold) -> Path | None:
    if not names:
        return ()
    if not isinstance(columns, spark.StructType):
        return None
    for each in columns.fields:
        if fold(each.name) == fold(names[0]):
            rest = _resolved(each.dataType, names[1:], fold)
            return None if rest is None else (each.name, *rest)
    return None


def stored(
    context: Context,
    columns: spark.StructType,
    values: Mapping[Path, str],
    tables: str,
    frames: Mapping[str, DataFrame],
    condition: str = "",
) -> dict[Path, str]:
    """Values as expressions of the types that they are stored in.

    ``tables``: the tables that they are of, as in FROM, of these frames; ``condition`` is looked at with them. Spark
    judges both before anything is read or written: raises its error, ``InvalidArgument`` or ``UnsupportedFeature``
    for what the policy of the session does not store.
    """
    names = [f"c{at}" for at in range(len(values))]
    # Within a function nothing stands that gives several rows, as explode does.
    listed = [f"coalesce({value}) AS {name}" for name, value in zip(names, values.values(), strict=True)]
    where = f" WHERE {condition}" if condition else ""
    query = f"{context.before}SELECT {', '.join(listed) or '1'} FROM {tables}{where}"
    frame = context.queries.frame(query, frames=frames)
    given = frame.schema
    if condition:
        _check_determined(context, frame, condition)
    if not values:
        return {}
    kinds = [_kind(columns, path) for path in values]
    shown = [".".join(path) for path in values]
    made = stored_as(
        context.spark,
        frame.toDF(*shown),
        spark.StructType([spark.StructField(name, kind, True) for name, kind in zip(shown, kinds, strict=True)]),
    )
    made.schema  # noqa: B018 -- with Spark Connect it is looked at only now
    checks = setting(context.spark, "spark.sql.ansi.enabled") == "true"
    return {
        path: _cast(value, each.dataType, kind, checks)
        for (path, value), each, kind in zip(values.items(), given.fields, kinds, strict=True)
    }


def _check_determined(context: Context, frame: DataFrame, condition: str) -> None:
    """Raise ``UnsupportedFeature`` where Spark says that a condition may hold of a row once and not the next time.

    A clause of MERGE asks it for each column that it sets.
    """
    if is_connected(context.spark):
        words = {token.text.lower() for token in Statement(condition).tokens}
        is_determined = not words & _BY_CHANCE
    else:
        plan = frame._jdf.queryExecution().analyzed()
        while plan.nodeName() != "Filter":
            plan = plan.plan() if plan.nodeName() == "WithCTE" else plan.children().apply(0)
        is_determined = plan.condition().deterministic()
    if not is_determined:
        raise UnsupportedFeature(
            f"a condition of MERGE gives the same answer each time that it is asked: {condition:.200} may not; compute "
            "it as a column of the source"
        )


def _kind(columns: spark.DataType, path: Sequence[str]) -> spark.DataType:
    for name in path:
        assert isinstance(columns, spark.StructType)
        columns = columns[name].dataType
    return columns


def _cast(value: str, given: spark.DataType, kind: spark.DataType, checks: bool) -> str:
    """A value in the type of its column. ``checks``: whether a cast fails for what does not fit."""
    if given == kind or isinstance(kind, spark.StructType | spark.ArrayType | spark.MapType):
        return f"({value})"
    name = spelt_type(kind)
    if checks or fits_strictly(given, kind):
        return f"CAST(({value}) AS {name})"
    wrong = f"raise_error({constant(f'a value does not fit into the type {name} of its column')})"
    return f"coalesce(try_cast(({value}) AS {name}), IF(({value}) IS NULL, NULL, {wrong}))"


def by_column(columns: spark.StructType, values: Mapping[Path, str], alias: str) -> dict[str, str]:
    """The new values of whole columns, of which those fields keep theirs that are given none."""
    given = {path[0] for path in values}
    return {
        each.name: _value(each.dataType, quoted(alias, each.name), (each.name,), values)
        for each in columns.fields
        if each.name in given
    }


def _value(kind: spark.DataType, old: str, path: Path, given: Mapping[Path, str]) -> str:
    """What a column or field is to be."""
    if path in given:
        return given[path]
    if not any(other[: len(path)] == path for other in given) or not isinstance(kind, spark.StructType):
        return old
    fields = [
        f"{constant(each.name)}, {_value(each.dataType, f'{old}.{quoted(each.name)}', (*path, each.name), given)}"
        for each in kind.fields
    ]
    return f"named_struct({', '.join(fields)})"
