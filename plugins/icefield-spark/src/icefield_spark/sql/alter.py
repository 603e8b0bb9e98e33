"""``ALTER TABLE``: the clauses of Iceberg's extensions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from icefield import Table
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.metadata import MAIN_BRANCH
from pyspark.sql import DataFrame

from icefield_spark.sql import terms
from icefield_spark.sql.context import StatementContext
from icefield_spark.sql.parsing import Cursor, Statement
from icefield_spark.writing import is_case_sensitive

CLAUSE = "icefield.own-clause"
"""The property that hands a clause of Iceberg's own to a catalog, as the hex digits of its UTF-8."""

_DISTRIBUTION = "write.distribution-mode"
_UNITS = {"DAYS": 86_400_000, "DAY": 86_400_000, "HOURS": 3_600_000, "HOUR": 3_600_000, "MINUTES": 60_000}


@dataclass(frozen=True)
class Alteration:
    """One statement's change of one table."""

    table: Table
    case_sensitive: bool

    def schema(self, cursor: Cursor, change: Callable[[Any], None]) -> None:
        """Change the columns in one commit, when the whole statement is read."""
        cursor.expect_end()
        with self.table.update_schema(case_sensitive=self.case_sensitive) as update:
            change(update)


def alter(context: StatementContext, cursor: Cursor) -> DataFrame | None:
    """``ALTER TABLE`` with a clause of Iceberg's own, or ``RENAME COLUMN``; None for other statements."""
    if not cursor.takes("ALTER", "TABLE"):
        return None
    parts = cursor.names("the name of a table")
    if context.names.find(parts) is None and not context.names.is_known(parts):
        return None
    for words, change in (*_OWN_CLAUSES, (("RENAME", "COLUMN"), _rename_column)):
        if cursor.takes(*words):
            change(Alteration(context.names.table(parts), is_case_sensitive(context.spark)), cursor)
            return context.nothing()
    return None


def is_own_clause(cursor: Cursor) -> bool:
    """Whether a clause of Iceberg's own comes next."""
    return any(cursor.sees(*words) for words, _ in _OWN_CLAUSES)


def alter_by_own_clause(table: Table, clause: str, *, case_sensitive: bool) -> None:
    """Change a table as a clause of Iceberg's own says."""
    cursor = Cursor(Statement(clause))
    for words, change in _OWN_CLAUSES:
        if cursor.takes(*words):
            return change(Alteration(table, case_sensitive), cursor)
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
    """Take the terms of a sort order, with or without parentheses; return a cursor over each."""
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


def _rename_column(alteration: Alteration, cursor: Cursor) -> None:
    """``RENAME COLUMN a TO b``."""
    path = cursor.names("a column")
    cursor.expect("TO")
    new = cursor.name("the new name")
    alteration.schema(cursor, lambda update: update.rename_column(path, new))


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
