"""Values for columns in changes of rows: the columns that they belong to, and checks that these can store them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from icefield import Schema
from icefield.errors import InvalidArgument
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from icefield_spark.assignment import stored_as
from icefield_spark.conditions import Expression, expression
from icefield_spark.places import ROW
from icefield_spark.quoting import quoted
from icefield_spark.sql.defaults import constant_of, default_of
from icefield_spark.writing import is_case_sensitive

Path = tuple[str, ...]
"""A column, or a field in one."""

Fold = Callable[[str], str]


def fold_of(session: SparkSession) -> Fold:
    """The function that maps two names to equal strings if the session treats them as the same name."""
    return str if is_case_sensitive(session) else str.lower


def paths(
    columns: spark.StructType, given: Mapping[Path, Expression], fold: Fold, alias: str
) -> dict[Path, Expression]:
    """Values by the table's own spelling of columns. Raises ``InvalidArgument`` for unknown or repeated columns."""
    found: dict[Path, Expression] = {}
    for names, value in given.items():
        path = _resolved(columns, names, fold)
        if path is None and fold(names[0]) == fold(alias):
            path = _resolved(columns, names[1:], fold)
        if not path:
            raise InvalidArgument(f"the table has no column '{'.'.join(names)}'; it has {', '.join(columns.names)}")
        if any(path[: len(other)] == other[: len(path)] for other in found):
            raise InvalidArgument(f"column '{'.'.join(path)}' is set twice", column=".".join(path))
        found[path] = value
    return found


def _resolved(columns: spark.DataType, names: Sequence[str], fold: Fold) -> Path | None:
    if not names:
        return ()
    if isinstance(columns, spark.StructType):
        for each in columns.fields:
            if fold(each.name) == fold(names[0]):
                rest = _resolved(each.dataType, names[1:], fold)
                return None if rest is None else (each.name, *rest)
    return None


def values_of(session: SparkSession, schema: Schema, given: Mapping[Path, Expression]) -> dict[Path, Column]:
    """Values as columns of Spark's; ``DEFAULT`` stands for the default of its column."""
    found: dict[Path, Column] = {}
    for path, value in given.items():
        if isinstance(value, str) and value.strip().upper() == "DEFAULT":
            value = default_of(schema, path, value)
        # Within a function, Spark refuses expressions that give several rows, such as explode.
        found[path] = f.coalesce(expression(session, value))
    return found


def default_values(session: SparkSession, schema: Schema, columns: spark.StructType) -> dict[str, Column]:
    """Default values for the columns that an INSERT does not name."""
    return {
        field.name: f.lit(None).cast(column.dataType)
        if field.write_default is None
        else expression(session, constant_of(field))
        for field, column in zip(schema.fields, columns.fields, strict=True)
    }


def check_stored(
    session: SparkSession,
    frame: DataFrame,
    columns: spark.StructType,
    values: Mapping[Path, Column],
    condition: Column | None,
) -> None:
    """Have Spark check values, and the condition under which they apply, before anything is read or written.

    ``frame`` has the columns that values and condition may name. Raises Spark's error, ``InvalidArgument`` or
    ``UnsupportedFeature`` for values that the session's store assignment policy refuses.
    """
    if condition is not None:
        frame = frame.where(condition)
    if not values:
        frame.select(ROW).schema  # noqa: B018 -- with Spark Connect it is looked at only now
        return
    shown = {".".join(path): value.alias(".".join(path)) for path, value in values.items()}
    kinds = [spark.StructField(name, _kind(columns, path)) for name, path in zip(shown, values, strict=True)]
    # Spark refuses an aggregate beside a column that is not an aggregate.
    made = stored_as(session, frame.select(*shown.values(), f.col(ROW)), spark.StructType(kinds))
    made.schema  # noqa: B018 -- with Spark Connect it is looked at only now


def _kind(columns: spark.DataType, path: Path) -> spark.DataType:
    for name in path:
        assert isinstance(columns, spark.StructType)
        columns = columns[name].dataType
    return columns


def by_column(columns: spark.StructType, values: Mapping[Path, Column], alias: str) -> dict[str, Column]:
    """The new values of whole columns. Other fields keep their values."""
    given = {path[0] for path in values}
    return {
        each.name: _value(each.dataType, f.col(quoted(alias, each.name)), (each.name,), values)
        for each in columns.fields
        if each.name in given
    }


def _value(kind: spark.DataType, old: Column, path: Path, given: Mapping[Path, Column]) -> Column:
    if path in given:
        return given[path]
    if not any(other[: len(path)] == path for other in given) or not isinstance(kind, spark.StructType):
        return old
    fields = [
        _value(each.dataType, old.getField(each.name), (*path, each.name), given).alias(each.name)
        for each in kind.fields
    ]
    return f.struct(*fields)
