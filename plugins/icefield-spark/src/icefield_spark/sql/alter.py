"""``ALTER TABLE``: Spark's clauses and those of Iceberg's extensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icefield import Table
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.metadata import MAIN_BRANCH
from pyspark.sql import DataFrame, SparkSession

from icefield_spark.sql import terms, views
from icefield_spark.sql.alter_columns import (
    Alteration,
    add_columns,
    alter_columns,
    drop_columns,
    rename_column,
    replace_columns,
)
from icefield_spark.sql.context import Context
from icefield_spark.sql.parsing import Cursor, Statement

CLAUSE = "icefield.own-clause"
"""The property that hands a clause of Iceberg's own to a catalog, as the hex digits of its UTF-8."""

_DISTRIBUTION = "write.distribution-mode"
_PARTITIONS = "partitions come and go with their rows, by INSERT and DELETE; ADD PARTITION FIELD says what makes them"
_LAYOUT = "WRITE ORDERED BY and ADD PARTITION FIELD say how rows are laid out"
_REFUSED = {
    ("ADD", "PARTITION"): _PARTITIONS,
    ("ADD", "IF", "NOT", "EXISTS", "PARTITION"): _PARTITIONS,
    ("DROP", "PARTITION"): _PARTITIONS,
    ("DROP", "IF", "EXISTS", "PARTITION"): _PARTITIONS,
    ("RENAME", "PARTITION"): _PARTITIONS,
    ("PARTITION",): _PARTITIONS,
    ("RECOVER", "PARTITIONS"): "it knows its files; CALL system.add_files takes others into it",
    ("CLUSTER", "BY"): _LAYOUT,
    ("ADD", "CONSTRAINT"): "NOT NULL is its one constraint; SET IDENTIFIER FIELDS names a key, which nothing checks",
    ("DROP", "CONSTRAINT"): "NOT NULL is its one constraint",
    ("SET", "SERDE"): "its files are in the formats of Iceberg, by the property write.format.default",
    ("SET", "SERDEPROPERTIES"): "its files are in the formats of Iceberg, by the property write.format.default",
    ("SET", "FILEFORMAT"): "set the property write.format.default",
}
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
    for words, change in (*_OWN_CLAUSES, *_SPARKS_CLAUSES):
        if cursor.takes(*words):
            change(Alteration(context.spark, table), cursor)
            return context.nothing()
    for words, why in _REFUSED.items():
        if cursor.sees(*words):
            raise UnsupportedFeature(f"{' '.join(words)} is nothing that an Iceberg table has: {why}")
    raise cursor.unexpected("what is to be altered (ADD, DROP, RENAME, ALTER, SET, UNSET, WRITE, REPLACE, CREATE)")


def is_own_clause(cursor: Cursor) -> bool:
    """Whether a clause of Iceberg's own comes next."""
    return any(cursor.sees(*words) for words, _ in _OWN_CLAUSES)


def alter_by_own_clause(spark: SparkSession, table: Table, clause: str) -> None:
    """Change a table as a clause of Iceberg's own says."""
    cursor = Cursor(Statement(clause))
    for words, change in _OWN_CLAUSES:
        if cursor.takes(*words):
            return change(Alteration(spark, table), cursor)
    raise cursor.unexpected("a clause of Iceberg's own")


def _add_partition_field(alteration: Alteration, cursor: Cursor) -> None:
    column, transform = terms.term(cursor)
    name = cursor.name("the name of the field") if cursor.takes("AS") else None
    cursor.expect_end()
    with alteration.table.update_spec(case_sensitive=alteration.case_sensitive) as update:
        update.add_field(column, transform, name)


def _drop_partition_field(alteration: Alteration, cursor: Cursor) -> None:
    field = _partition_field(alteration, cursor)
    cursor.expect_end()
    with alteration.table.update_spec(case_sensitive=alteration.case_sensitive) as update:
        update.remove_field(field)


def _replace_partition_field(alteration: Alteration, cursor: Cursor) -> None:
    field = _partition_field(alteration, cursor)
    cursor.expect("WITH")
    column, transform = terms.term(cursor)
    name = cursor.name("the name of the field") if cursor.takes("AS") else None
    cursor.expect_end()
    with alteration.table.update_spec(case_sensitive=alteration.case_sensitive) as update:
        update.remove_field(field).add_field(column, transform, name)


def _partition_field(alteration: Alteration, cursor: Cursor) -> Any:
    """Take a field of the spec, by its name or by its term."""
    column, transform = terms.term(cursor)
    if transform == "identity" and any(field.name == column for field in alteration.table.spec().fields):
        return column
    return column, transform


def _write_order(alteration: Alteration, cursor: Cursor) -> None:
    """``WRITE [DISTRIBUTED BY PARTITION] [[LOCALLY] ORDERED BY ...]`` and ``WRITE UNORDERED``."""
    distributed, ordered, unordered, local = False, None, False, False
    while not cursor.is_over:
        if cursor.takes("DISTRIBUTED", "BY", "PARTITION"):
            distributed = True
        elif cursor.takes("UNORDERED"):
            unordered = True
        elif cursor.takes("LOCALLY", "ORDERED", "BY") or cursor.takes("ORDERED", "BY"):
            local = cursor.statement.is_word(cursor.at - 3, "LOCALLY")
            ordered = [_ordering(item) for item in _items(cursor)]
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


def _ordering(item: Cursor) -> tuple[str, str, str, str | None]:
    found = terms.ordering(item)
    item.expect_end()
    return found


def _items(cursor: Cursor) -> list[Cursor]:
    """Take what rows are ordered by, with parentheses around it or without: a cursor over each."""
    if cursor.sees("("):
        return cursor.enclosed().items()
    start = cursor.at
    cursor.until(("DISTRIBUTED",))
    return Cursor(cursor.statement, start, cursor.at).items()


def _set_identifier_fields(alteration: Alteration, cursor: Cursor) -> None:
    paths = [item.names("a column") for item in cursor.items()]
    alteration.schema(cursor, lambda update: update.set_identifier_fields(*paths))


def _drop_identifier_fields(alteration: Alteration, cursor: Cursor) -> None:
    dropped = {".".join(item.names("a column")) for item in cursor.items()}
    known = alteration.table.schema().identifier_field_names()
    if dropped - known:
        raise InvalidArgument(f"{', '.join(sorted(dropped - known))} is no identifier field of the table")
    alteration.schema(cursor, lambda update: update.set_identifier_fields(*sorted(known - dropped)))


def _set_properties(alteration: Alteration, cursor: Cursor) -> None:
    given = terms.properties(cursor)
    cursor.expect_end()
    version = given.pop("format-version", None)
    with alteration.table.transaction() as transaction:
        if version is not None and int(version) != alteration.table.format_version:
            transaction.upgrade_table_version(int(version))
        if given:
            transaction.set_properties(given)


def _unset_properties(alteration: Alteration, cursor: Cursor) -> None:
    if_exists = cursor.takes("IF", "EXISTS")
    names = terms.keys(cursor)
    cursor.expect_end()
    known = alteration.table.properties
    absent = [name for name in names if name not in known]
    if absent and not if_exists:
        raise InvalidArgument(f"the table has no property {', '.join(absent)}; UNSET TBLPROPERTIES IF EXISTS tolerates")
    alteration.table.remove_properties(*(name for name in names if name in known))


def _set_location(alteration: Alteration, cursor: Cursor) -> None:
    location = cursor.string("a location")
    cursor.expect_end()
    with alteration.table.transaction() as transaction:
        transaction.update_location(location)


def _create_ref(kind: str, replaces: bool) -> Callable[[Alteration, Cursor], None]:
    def change(alteration: Alteration, cursor: Cursor) -> None:
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


def _drop_ref(kind: str) -> Callable[[Alteration, Cursor], None]:
    def change(alteration: Alteration, cursor: Cursor) -> None:
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


_OWN_CLAUSES: list[tuple[tuple[str, ...], Callable[[Alteration, Cursor], None]]] = [
    (("ADD", "PARTITION", "FIELD"), _add_partition_field),
    (("DROP", "PARTITION", "FIELD"), _drop_partition_field),
    (("REPLACE", "PARTITION", "FIELD"), _replace_partition_field),
    (("WRITE",), _write_order),
    (("SET", "IDENTIFIER", "FIELDS"), _set_identifier_fields),
    (("DROP", "IDENTIFIER", "FIELDS"), _drop_identifier_fields),
    (("CREATE", "OR", "REPLACE", "BRANCH"), _create_ref("branch", True)),
    (("CREATE", "OR", "REPLACE", "TAG"), _create_ref("tag", True)),
    (("CREATE", "BRANCH"), _create_ref("branch", False)),
    (("CREATE", "TAG"), _create_ref("tag", False)),
    (("REPLACE", "BRANCH"), _create_ref("branch", True)),
    (("REPLACE", "TAG"), _create_ref("tag", True)),
    (("DROP", "BRANCH"), _drop_ref("branch")),
    (("DROP", "TAG"), _drop_ref("tag")),
]
_SPARKS_CLAUSES: list[tuple[tuple[str, ...], Callable[[Alteration, Cursor], None]]] = [
    (("ADD", "COLUMNS"), add_columns),
    (("ADD", "COLUMN"), add_columns),
    (("DROP", "COLUMNS"), drop_columns),
    (("DROP", "COLUMN"), drop_columns),
    (("RENAME", "COLUMN"), rename_column),
    (("REPLACE", "COLUMNS"), replace_columns),
    (("ALTER", "COLUMN"), alter_columns),
    (("CHANGE", "COLUMN"), alter_columns),
    (("ALTER",), alter_columns),
    (("CHANGE",), alter_columns),
    (("SET", "TBLPROPERTIES"), _set_properties),
    (("UNSET", "TBLPROPERTIES"), _unset_properties),
    (("SET", "LOCATION"), _set_location),
]
