"""Columns of a table as statements name them, and conditions on them that Iceberg evaluates just as Spark does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from icefield import Schema, Table
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.expressions import AlwaysTrue, BooleanExpression, EqualTo, IsNull, conjunction
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from icefield_spark.sql.context import Context
from icefield_spark.sql.defaults import value_of
from icefield_spark.sql.parsing import Cursor
from icefield_spark.sql.pushdown import Pushdown, conjuncts
from icefield_spark.sql.queries import setting
from icefield_spark.sql.scopes import Fold
from icefield_spark.types import to_spark_type

# Nulls match none of these, on either side. Negated comparisons are not among them: for Iceberg a null differs.
_EXACT = (exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)


def is_case_sensitive(context: Context) -> bool:
    """Whether names that differ by case are different names."""
    return setting(context.spark, "spark.sql.caseSensitive") == "true"


def fold_of(context: Context) -> Fold:
    """What makes names the same that are the same for the session."""
    return str if is_case_sensitive(context) else str.lower


def column_of(context: Context, schema: Schema, name: str) -> str:
    """The table's own spelling of a column. Raises ``InvalidArgument`` for one that it does not have."""
    return columns_of(context, schema, [name])[0]


def columns_of(context: Context, schema: Schema, names: Iterable[str]) -> list[str]:
    """The table's own spellings of columns. Raises ``InvalidArgument`` for one that it does not have."""
    return spellings([field.name for field in schema.fields], names, fold_of(context))


def spellings(known: Sequence[str], names: Iterable[str], fold: Fold) -> list[str]:
    """For each name the one that is known and the same. Raises ``InvalidArgument`` where not just one is."""
    alike: dict[str, list[str]] = {}
    for each in known:
        alike.setdefault(fold(each), []).append(each)
    found = []
    for name in names:
        if len(same := alike.get(fold(name), [])) != 1:
            raise InvalidArgument(f"the table has no column '{name}'; it has {', '.join(known)}", column=name)
        found += same
    return found


def spelling_of(context: Context, schema: Schema, name: str) -> str:
    """The schema's own spelling of a column or nested field; the name as it is where it is none."""
    if is_case_sensitive(context) or not schema.has_field(name, False) or schema.has_field(name):
        return name
    return str(schema.find_column_name(schema.find_field(name, False).field_id))


def check_distinct(context: Context, names: Iterable[str]) -> None:
    """Raise ``InvalidArgument`` for two columns that the session takes for one."""
    fold, known = fold_of(context), dict[str, str]()
    for name in names:
        other = known.setdefault(fold(name), name)
        if other is not name and other != name:
            raise InvalidArgument(
                f"columns '{other}' and '{name}' differ by case alone: rename one, or set spark.sql.caseSensitive to "
                "true",
                column=name,
            )


def partition_of(cursor: Cursor) -> dict[str, str | None]:
    """Take ``PARTITION (a = 1, b)``: values by column, None for a column without one."""
    given: dict[str, str | None] = {}
    if cursor.takes("PARTITION"):
        for item in cursor.enclosed().items():
            name = item.name("a column")
            given[name] = item.rest() if item.takes("=") else None
            item.expect_end()
    return given


def check_partition(context: Context, table: Table, names: Iterable[str]) -> None:
    """Raise ``InvalidArgument`` for a name in PARTITION of what rows are not partitioned by, or by a transform of."""
    schema = table.schema()
    identities = {schema.find_column_name(f.source_id) for f in table.spec().fields if str(f.transform) == "identity"}
    others = {*columns_of(context, schema, names)} - identities
    if others:
        raise InvalidArgument(
            f"the table is not partitioned by {', '.join(sorted(others))} itself, so that PARTITION cannot name it; "
            "REPLACE WHERE and DELETE take conditions on any column"
        )


def equal_to(context: Context, schema: Schema, values: Mapping[str, str]) -> BooleanExpression:
    """The filter of the rows with certain values in columns, given as Spark's expressions."""
    found: list[BooleanExpression] = []
    for name, value in values.items():
        made = value_of(context.spark, value, to_spark_type(schema.find_type((name,))))
        found.append(IsNull((name,)) if made is None else EqualTo((name,), made))
    return conjunction(found) if found else AlwaysTrue()


def filter_of(context: Context, schema: Schema, condition: str) -> BooleanExpression | None:
    """A condition in Spark's words as a filter with Iceberg's meaning of nulls; None where a part of it has none."""
    tree = _tree_of(condition)
    if tree is None:
        return None
    fold = fold_of(context)
    known: dict[str, list[str]] = {}
    for field in schema.fields:
        known.setdefault(fold(field.name), []).append(field.name)

    def column(node: exp.Column) -> str | None:
        found = known.get(fold(node.name), []) if len(node.parts) == 1 else []
        return found[0] if len(found) == 1 else None

    zone = setting(context.spark, "spark.sql.session.timeZone")
    pushdown = Pushdown(schema, column, zone, context.catalog.name)
    return pushdown.filter(tree) if pushdown.is_whole(tree) else None


def exact_filter(context: Context, schema: Schema, condition: str) -> BooleanExpression:
    """A condition as a filter that holds of just the same rows. Raises ``UnsupportedFeature`` where there is none."""
    tree = _tree_of(condition)
    if tree is None:
        raise InvalidArgument(f"the condition cannot be understood: {condition:.200}")
    columns = list(tree.find_all(exp.Column))
    plain_columns = [column for column in columns if len(column.parts) == 1]
    names: dict[str, str | None] = dict.fromkeys(column.sql() for column in columns)
    spelt = columns_of(context, schema, [column.name for column in plain_columns])
    names |= {column.sql(): name for column, name in zip(plain_columns, spelt, strict=True)}
    pushdown = Pushdown(
        schema, lambda column: names.get(column.sql()), setting(context.spark, "spark.sql.session.timeZone")
    )
    found = []
    for each in conjuncts(tree):
        plain = each.this if isinstance(each, exp.Not) and isinstance(each.this, exp.Is) else each
        made = pushdown.filter(each) if isinstance(plain, (*_EXACT, exp.Is)) and pushdown.is_whole(each) else None
        if made is None:
            raise UnsupportedFeature(
                f"'{condition:.200}' must be comparisons of columns with constants, joined by AND: {each.sql():.100} "
                "is none that Iceberg has; DELETE takes any condition"
            )
        found.append(made)
    return conjunction(found) if found else AlwaysTrue()


def _tree_of(condition: str) -> exp.Expression | None:
    """The tree of a condition in Spark's words; None where it is none."""
    try:
        tree: exp.Expression = parse_one(f"SELECT 1 WHERE {condition}", read="spark").args["where"].this
    except (SqlglotError, KeyError, AttributeError):
        return None
    return tree
