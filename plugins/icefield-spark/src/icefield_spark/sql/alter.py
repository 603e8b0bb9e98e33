"""``ALTER TABLE``: Spark's clauses and those of Iceberg's extensions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from icefield import Table
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.metadata import MAIN_BRANCH
from icefield.schema import Schema
from icefield.types import IcebergType
from pyspark.sql import DataFrame

from icefield_spark.sql import terms, views
from icefield_spark.sql.context import Context
from icefield_spark.sql.defaults import value_of
from icefield_spark.sql.parsing import Cursor
from icefield_spark.types import from_spark_schema, to_spark_type

_DISTRIBUTION = "write.distribution-mode"
_UNITS = {"DAYS": 86_400_000, "DAY": 86_400_000, "HOURS": 3_600_000, "HOUR": 3_600_000, "MINUTES": 60_000}


def alter(context: Context, cursor: Cursor) -> DataFrame:
    """``ALTER TABLE``, ``ALTER NAMESPACE`` and ``ALTER VIEW``; the cursor stands after ALTER."""
    if cursor.takes_one_of("NAMESPACE", "DATABASE", "SCHEMA"):
        return _alter_namespace(context, cursor)
    if cursor.takes("VIEW"):
        return views.alter(context, cursor)
    if not cursor.takes("TABLE"):
        return context.passed(cursor)
    parts = cursor.names("the name of a table")
    table = context.table(parts)
    if table is None:
        return context.passed(cursor)
    if cursor.takes("RENAME", "TO"):
        target = cursor.names("the new name")
        cursor.expect_end()
        local = context.names.local(target) if len(target) > 1 else (*table.name()[:-1], *target)
        context.catalog.rename_table(table.name(), local)
        return context.nothing()
    for words, change in _CLAUSES:
        if cursor.takes(*words):
            change(_Alteration(context, table), cursor)
            return context.nothing()
    raise cursor.unexpected("what is to be altered (ADD, DROP, RENAME, ALTER, SET, UNSET, WRITE, REPLACE, CREATE)")


class _Alteration:
    """One statement's change of one table."""

    def __init__(self, context: Context, table: Table) -> None:
        self.table = table
        self.spark = context.spark
        self.case_sensitive = str(context.spark.conf.get("spark.sql.caseSensitive")) == "true"

    def schema(self, cursor: Cursor, change: Callable[[Any], None]) -> None:
        """Change the columns in one commit, when the whole statement is read."""
        cursor.expect_end()
        with self.table.update_schema(case_sensitive=self.case_sensitive) as update:
            change(update)


def _add_columns(alteration: _Alteration, cursor: Cursor) -> None:
    items = cursor.enclosed().items() if cursor.sees("(") else cursor.items()
    added = [_new_column(alteration, item) for item in items]

    def change(update: Any) -> None:
        for path, kind, required, doc, position, default in added:
            update.add_column(path, kind, doc=doc, required=required, default_value=default)
            _move(update, path, position)

    alteration.schema(cursor, change)


def _new_column(
    alteration: _Alteration, item: Cursor
) -> tuple[tuple[str, ...], IcebergType, bool, str | None, tuple[str, ...] | None, Any]:
    """Take a column: its name, type, whether it is required, its comment, its place, its default."""
    path = item.names("a column")
    definition = item.until(("FIRST",), ("AFTER",), ("COMMENT",), ("NOT", "NULL"), ("DEFAULT",))
    required, doc, position, default = False, None, None, None
    while not item.is_over:
        if item.takes("NOT", "NULL"):
            required = True
        elif item.takes("COMMENT"):
            doc = item.string("a comment")
        elif item.sees("FIRST") or item.sees("AFTER"):
            position = _position(item)
        elif item.takes("DEFAULT"):
            default = item.until(("FIRST",), ("AFTER",), ("COMMENT",), ("NOT", "NULL"))
        else:
            raise item.unexpected("NOT NULL, DEFAULT, COMMENT, FIRST or AFTER")
    kind = _type(definition)
    value = None if default is None else value_of(alteration.spark, default, to_spark_type(kind))
    return path, kind, required, doc, position, value


def _position(cursor: Cursor) -> tuple[str, ...]:
    """Take FIRST, as an empty name, or AFTER a column."""
    if cursor.takes("FIRST"):
        return ()
    cursor.expect("AFTER")
    return cursor.names("a column")


def _move(update: Any, path: tuple[str, ...], position: tuple[str, ...] | None) -> None:
    if position is None:
        return
    if not position:
        update.move_first(path)
    else:
        update.move_after(path, (*path[:-1], position[-1]))


def _type(definition: str) -> IcebergType:
    schema: Schema = from_spark_schema(terms.columns_of(f"c {definition}"))
    return schema.fields[0].field_type


def _drop_columns(alteration: _Alteration, cursor: Cursor) -> None:
    if_exists = cursor.takes("IF", "EXISTS")
    items = cursor.enclosed().items() if cursor.sees("(") else cursor.items()
    paths = []
    for item in items:
        paths.append(item.names("a column"))
        item.expect_end()
    schema = alteration.table.schema()
    if if_exists:
        paths = [path for path in paths if schema.has_field(path, alteration.case_sensitive)]
    if not paths:
        return

    def change(update: Any) -> None:
        for path in paths:
            update.delete_column(path)

    lost = _lost_sources(alteration, paths)
    alteration.schema(cursor, change)
    if lost:
        warnings.warn(
            f"{', '.join(sorted(lost))} of an earlier partition spec lost the column that it is made from: Iceberg's "
            "Java runtime fails to merge on read into such a table ('Cannot find field'); where it shall, set "
            "write.delete.mode, write.update.mode and write.merge.mode to copy-on-write",
            stacklevel=2,
        )


def _lost_sources(alteration: _Alteration, paths: list[tuple[str, ...]]) -> set[str]:
    """The fields of earlier partition specs whose columns are among those that are to go."""
    schema = alteration.table.schema()
    there = [path for path in paths if schema.has_field(path, alteration.case_sensitive)]
    gone = {schema.find_field(path, alteration.case_sensitive).field_id for path in there}
    fields = [field for spec in alteration.table.specs().values() for field in spec.fields]
    return {field.name for field in fields if gone & set(field.source_ids)}


def _rename_column(alteration: _Alteration, cursor: Cursor) -> None:
    path = cursor.names("a column")
    cursor.expect("TO")
    new = cursor.name("the new name")
    alteration.schema(cursor, lambda update: update.rename_column(path, new))


def _alter_column(alteration: _Alteration, cursor: Cursor) -> None:
    path = cursor.names("a column")
    if cursor.takes("TYPE"):
        kind = _type(cursor.until(("COMMENT",), ("FIRST",), ("AFTER",)))
        change: Callable[[Any], Any] = lambda update: update.update_column(path, kind)  # noqa: E731
    elif cursor.takes("COMMENT"):
        doc = cursor.string("a comment")
        change = lambda update: update.update_column(path, doc=doc)  # noqa: E731
    elif cursor.takes("SET", "NOT", "NULL"):
        change = lambda update: update.update_column(path, required=True)  # noqa: E731
    elif cursor.takes("SET", "DEFAULT") or cursor.takes("DROP", "DEFAULT"):
        dropped = cursor.is_over
        kind = alteration.table.schema().find_type(path, alteration.case_sensitive)
        value = None if dropped else value_of(alteration.spark, cursor.rest(), to_spark_type(kind))
        change = lambda update: update.set_default_value(path, value)  # noqa: E731
    elif cursor.takes("DROP", "NOT", "NULL"):
        change = lambda update: update.make_column_optional(path)  # noqa: E731
    elif cursor.sees("FIRST") or cursor.sees("AFTER"):
        position = _position(cursor)
        change = lambda update: _move(update, path, position)  # noqa: E731
    else:
        raise cursor.unexpected("TYPE, COMMENT, SET or DROP NOT NULL, SET or DROP DEFAULT, FIRST or AFTER")
    alteration.schema(cursor, change)


def _add_partition_field(alteration: _Alteration, cursor: Cursor) -> None:
    column, transform = terms.term(cursor)
    name = cursor.name("the name of the field") if cursor.takes("AS") else None
    cursor.expect_end()
    with alteration.table.update_spec(case_sensitive=alteration.case_sensitive) as update:
        update.add_field(column, transform, name)


def _drop_partition_field(alteration: _Alteration, cursor: Cursor) -> None:
    field = _partition_field(alteration, cursor)
    cursor.expect_end()
    with alteration.table.update_spec(case_sensitive=alteration.case_sensitive) as update:
        update.remove_field(field)


def _replace_partition_field(alteration: _Alteration, cursor: Cursor) -> None:
    field = _partition_field(alteration, cursor)
    cursor.expect("WITH")
    column, transform = terms.term(cursor)
    name = cursor.name("the name of the field") if cursor.takes("AS") else None
    cursor.expect_end()
    with alteration.table.update_spec(case_sensitive=alteration.case_sensitive) as update:
        update.remove_field(field).add_field(column, transform, name)


def _partition_field(alteration: _Alteration, cursor: Cursor) -> Any:
    """Take a field of the spec, by its name or by its term."""
    column, transform = terms.term(cursor)
    if transform == "identity" and any(field.name == column for field in alteration.table.spec().fields):
        return column
    return column, transform


def _write_order(alteration: _Alteration, cursor: Cursor) -> None:
    """``WRITE [DISTRIBUTED BY PARTITION] [[LOCALLY] ORDERED BY ...]`` and ``WRITE UNORDERED``."""
    distributed, ordered, unordered, local = False, None, False, False
    while not cursor.is_over:
        if cursor.takes("DISTRIBUTED", "BY", "PARTITION"):
            distributed = True
        elif cursor.takes("UNORDERED"):
            unordered = True
        elif cursor.takes("LOCALLY", "ORDERED", "BY") or cursor.takes("ORDERED", "BY"):
            local = cursor.statement.is_word(cursor.at - 3, "LOCALLY")
            ordered = [terms.ordering(item) for item in _items(cursor)]
        else:
            raise cursor.unexpected("DISTRIBUTED BY PARTITION, ORDERED BY, LOCALLY ORDERED BY or UNORDERED")
    if not (distributed or unordered or ordered):
        raise cursor.unexpected("DISTRIBUTED BY PARTITION, ORDERED BY, LOCALLY ORDERED BY or UNORDERED")
    with alteration.table.transaction() as transaction:
        with transaction.update_sort_order(case_sensitive=alteration.case_sensitive) as update:
            for column, transform, direction, nulls in ordered or ():
                (update.asc if direction == "asc" else update.desc)(column, transform, nulls)
        if distributed or not local:  # an order within tasks leaves their distribution as it is
            mode = "hash" if distributed else "range" if ordered else "none"
            transaction.set_properties({_DISTRIBUTION: mode})


def _items(cursor: Cursor) -> list[Cursor]:
    start = cursor.at
    cursor.until(("DISTRIBUTED",))
    return Cursor(cursor.statement, start, cursor.at).items()


def _set_identifier_fields(alteration: _Alteration, cursor: Cursor) -> None:
    paths = [item.names("a column") for item in cursor.items()]
    alteration.schema(cursor, lambda update: update.set_identifier_fields(*paths))


def _drop_identifier_fields(alteration: _Alteration, cursor: Cursor) -> None:
    dropped = {".".join(item.names("a column")) for item in cursor.items()}
    known = alteration.table.schema().identifier_field_names()
    if dropped - known:
        raise InvalidArgument(f"{', '.join(sorted(dropped - known))} is no identifier field of the table")
    alteration.schema(cursor, lambda update: update.set_identifier_fields(*sorted(known - dropped)))


def _set_properties(alteration: _Alteration, cursor: Cursor) -> None:
    given = terms.properties(cursor)
    cursor.expect_end()
    version = given.pop("format-version", None)
    with alteration.table.transaction() as transaction:
        if version is not None and int(version) != alteration.table.format_version:
            transaction.upgrade_table_version(int(version))
        if given:
            transaction.set_properties(given)


def _unset_properties(alteration: _Alteration, cursor: Cursor) -> None:
    if_exists = cursor.takes("IF", "EXISTS")
    names = terms.keys(cursor)
    cursor.expect_end()
    known = alteration.table.properties
    absent = [name for name in names if name not in known]
    if absent and not if_exists:
        raise InvalidArgument(f"the table has no property {', '.join(absent)}; UNSET TBLPROPERTIES IF EXISTS tolerates")
    alteration.table.remove_properties(*(name for name in names if name in known))


def _set_location(alteration: _Alteration, cursor: Cursor) -> None:
    location = cursor.string("a location")
    cursor.expect_end()
    with alteration.table.transaction() as transaction:
        transaction.update_location(location)


def _create_ref(kind: str, replaces: bool) -> Callable[[_Alteration, Cursor], None]:
    def change(alteration: _Alteration, cursor: Cursor) -> None:
        if_not_exists = cursor.takes("IF", "NOT", "EXISTS")
        name = cursor.name(f"the name of a {kind}")
        table = alteration.table
        snapshot_id: int | None = None
        if cursor.takes("AS", "OF", "VERSION"):
            snapshot_id = cursor.number("a snapshot id")
        keep_ms = _duration(cursor) if cursor.takes("RETAIN") else None
        count, age_ms = _snapshot_retention(cursor) if kind == "branch" else (None, None)
        cursor.expect_end()
        there = table.refs().get(name)
        if there is not None and if_not_exists:
            return
        if snapshot_id is None:
            current = table.current_snapshot()
            if current is None:
                raise UnsupportedFeature(f"a table without a snapshot takes no {kind}; write to it first")
            snapshot_id = current.snapshot_id
        with table.manage_snapshots() as update:
            if there is not None and replaces:
                (update.replace_branch if kind == "branch" else update.replace_tag)(name, snapshot_id)
                if keep_ms is not None:
                    update.set_max_ref_age_ms(name, keep_ms)
            elif kind == "branch":
                update.create_branch(snapshot_id, name, max_ref_age_ms=keep_ms)
            else:
                update.create_tag(snapshot_id, name, max_ref_age_ms=keep_ms)
            if count is not None:
                update.set_min_snapshots_to_keep(name, count)
            if age_ms is not None:
                update.set_max_snapshot_age_ms(name, age_ms)

    return change


def _snapshot_retention(cursor: Cursor) -> tuple[int | None, int | None]:
    """Take ``WITH SNAPSHOT RETENTION 5 SNAPSHOTS 7 DAYS``."""
    if not cursor.takes("WITH", "SNAPSHOT", "RETENTION"):
        return None, None
    count, age_ms = None, None
    while not cursor.is_over:
        number = cursor.number()
        if cursor.takes("SNAPSHOTS"):
            count = number
        else:
            age_ms = number * _unit(cursor)
    return count, age_ms


def _duration(cursor: Cursor) -> int:
    return cursor.number() * _unit(cursor)


def _unit(cursor: Cursor) -> int:
    unit = cursor.takes_one_of(*_UNITS)
    if unit is None:
        raise cursor.unexpected("DAYS, HOURS or MINUTES")
    return _UNITS[unit]


def _drop_ref(kind: str) -> Callable[[_Alteration, Cursor], None]:
    def change(alteration: _Alteration, cursor: Cursor) -> None:
        if_exists = cursor.takes("IF", "EXISTS")
        name = cursor.name(f"the name of a {kind}")
        cursor.expect_end()
        if if_exists and name not in alteration.table.refs():
            return
        if name == MAIN_BRANCH:
            raise InvalidArgument("the branch 'main' cannot be dropped")
        with alteration.table.manage_snapshots() as update:
            (update.remove_branch if kind == "branch" else update.remove_tag)(name)

    return change


def _alter_namespace(context: Context, cursor: Cursor) -> DataFrame:
    parts = cursor.names("a namespace")
    local = context.namespace(parts)
    if local is None:
        return context.passed(cursor)
    cursor.expect("SET")
    if cursor.takes("LOCATION"):
        given = {"location": cursor.string("a location")}
    else:
        if not (cursor.takes("DBPROPERTIES") or cursor.takes("PROPERTIES")):
            raise cursor.unexpected("DBPROPERTIES, PROPERTIES or LOCATION")
        given = terms.properties(cursor)
    cursor.expect_end()
    context.catalog.update_namespace_properties(local, updates=given)
    return context.nothing()


_CLAUSES: list[tuple[tuple[str, ...], Callable[[_Alteration, Cursor], None]]] = [
    (("ADD", "PARTITION", "FIELD"), _add_partition_field),
    (("DROP", "PARTITION", "FIELD"), _drop_partition_field),
    (("REPLACE", "PARTITION", "FIELD"), _replace_partition_field),
    (("ADD", "COLUMNS"), _add_columns),
    (("ADD", "COLUMN"), _add_columns),
    (("DROP", "COLUMNS"), _drop_columns),
    (("DROP", "COLUMN"), _drop_columns),
    (("RENAME", "COLUMN"), _rename_column),
    (("ALTER", "COLUMN"), _alter_column),
    (("CHANGE", "COLUMN"), _alter_column),
    (("WRITE",), _write_order),
    (("SET", "IDENTIFIER", "FIELDS"), _set_identifier_fields),
    (("DROP", "IDENTIFIER", "FIELDS"), _drop_identifier_fields),
    (("SET", "TBLPROPERTIES"), _set_properties),
    (("UNSET", "TBLPROPERTIES"), _unset_properties),
    (("SET", "LOCATION"), _set_location),
    (("CREATE", "OR", "REPLACE", "BRANCH"), _create_ref("branch", True)),
    (("CREATE", "OR", "REPLACE", "TAG"), _create_ref("tag", True)),
    (("CREATE", "BRANCH"), _create_ref("branch", False)),
    (("CREATE", "TAG"), _create_ref("tag", False)),
    (("REPLACE", "BRANCH"), _create_ref("branch", True)),
    (("REPLACE", "TAG"), _create_ref("tag", True)),
    (("DROP", "BRANCH"), _drop_ref("branch")),
    (("DROP", "TAG"), _drop_ref("tag")),
]
