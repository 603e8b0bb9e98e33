"""Columns in ``ALTER TABLE``: adding, dropping, renaming, changing, moving and replacing them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from icefield import Table
from icefield.errors import UnsupportedFeature
from icefield.schema import Schema
from icefield.types import IcebergType
from pyspark.sql import SparkSession

from icefield_spark.sql import terms
from icefield_spark.sql.defaults import value_of
from icefield_spark.sql.parsing import Cursor
from icefield_spark.types import from_spark_schema, to_spark_type

Change = Callable[[Any], Any]
"""What is done with an update of a schema."""

_ACTIONS = ("TYPE", "COMMENT", "SET", "DROP", "FIRST", "AFTER")


class Alteration:
    """One statement's change of one table."""

    def __init__(self, spark: SparkSession, table: Table) -> None:
        self.table = table
        self.spark = spark
        self.case_sensitive = str(spark.conf.get("spark.sql.caseSensitive")) == "true"

    def schema(self, cursor: Cursor, change: Callable[[Any], None]) -> None:
        """Change the columns in one commit, when the whole statement is read."""
        cursor.expect_end()
        with self.table.update_schema(case_sensitive=self.case_sensitive) as update:
            change(update)


def add_columns(alteration: Alteration, cursor: Cursor) -> None:
    """``ADD COLUMNS (…)``, and ``ADD COLUMN`` with one or several."""
    alteration.schema(cursor, _adding(alteration, cursor))


def replace_columns(alteration: Alteration, cursor: Cursor) -> None:
    """``REPLACE COLUMNS (…)``: all columns go, and new ones come, whatever they are called, as in Spark."""
    adding = _adding(alteration, cursor)

    def change(update: Any) -> None:
        for field in alteration.table.schema().fields:
            update.delete_column((field.name,))
        adding(update)

    alteration.schema(cursor, change)


def _adding(alteration: Alteration, cursor: Cursor) -> Change:
    """Take columns that are to be added."""
    added = [_new_column(alteration, item) for item in terms.definitions(cursor)]

    def change(update: Any) -> None:
        for path, kind, required, doc, position, default in added:
            update.add_column(path, kind, doc=doc, required=required, default_value=default)
            _move(update, path, position)

    return change


def _new_column(
    alteration: Alteration, item: Cursor
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


def drop_columns(alteration: Alteration, cursor: Cursor) -> None:
    """``DROP COLUMNS``."""
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

    lost = lost_sources(alteration.table, paths, alteration.case_sensitive)
    alteration.schema(cursor, change)
    warn_of_lost(lost)


def warn_of_lost(lost: set[str]) -> None:
    """Say what Iceberg's Java runtime cannot do when partition fields have lost their columns."""
    if lost:
        warnings.warn(
            f"{', '.join(sorted(lost))} of an earlier partition spec lost the column that it is made from: Iceberg's "
            "Java runtime fails to merge on read into such a table ('Cannot find field'); where it shall, set "
            "write.delete.mode, write.update.mode and write.merge.mode to copy-on-write",
            stacklevel=2,
        )


def lost_sources(table: Table, paths: Iterable[tuple[str, ...]], case_sensitive: bool = True) -> set[str]:
    """The fields of earlier partition specs whose columns are among those that are to go."""
    schema = table.schema()
    there = [path for path in paths if schema.has_field(path, case_sensitive)]
    gone = {schema.find_field(path, case_sensitive).field_id for path in there}
    fields = [field for spec in table.specs().values() for field in spec.fields]
    return {field.name for field in fields if gone & set(field.source_ids)}


def rename_column(alteration: Alteration, cursor: Cursor) -> None:
    """``RENAME COLUMN a TO b``."""
    path = cursor.names("a column")
    cursor.expect("TO")
    new = cursor.name("the new name")
    alteration.schema(cursor, lambda update: update.rename_column(path, new))


def alter_columns(alteration: Alteration, cursor: Cursor) -> None:
    """``ALTER [COLUMN] a …, b …``: one commit, whatever is changed; ``CHANGE`` also with the type as in Hive."""
    changes = [change for item in terms.definitions(cursor) for change in _altered(alteration, item)]

    def change(update: Any) -> None:
        for each in changes:
            each(update)

    alteration.schema(cursor, change)


def _altered(alteration: Alteration, cursor: Cursor) -> list[Change]:
    """Take what is to become of one column."""
    path = cursor.names("a column")
    if not any(cursor.sees(word) for word in _ACTIONS):
        return _as_in_hive(alteration, path, cursor)
    change: Change
    if cursor.takes("TYPE"):
        kind = _type(cursor.until(("COMMENT",), ("FIRST",), ("AFTER",)))
        change = lambda update: update.update_column(path, kind)  # noqa: E731
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
    cursor.expect_end()
    return [change]


def _as_in_hive(alteration: Alteration, path: tuple[str, ...], cursor: Cursor) -> list[Change]:
    """Take ``a a bigint COMMENT 'x' AFTER b``, of which the first name is taken already."""
    new, kind, required, doc, position, default = _new_column(alteration, cursor)
    same = new if alteration.case_sensitive else tuple(part.lower() for part in new)
    if same != (path if alteration.case_sensitive else tuple(part.lower() for part in path)):
        raise UnsupportedFeature(f"CHANGE COLUMN gives a column no other name: RENAME COLUMN {'.'.join(path)} TO …")
    if required or default is not None:
        raise UnsupportedFeature("CHANGE COLUMN takes a type, a comment and a place: ALTER COLUMN … SET does the rest")
    changes: list[Change] = [lambda update: update.update_column(path, kind)]
    if doc is not None:
        changes.append(lambda update: update.update_column(path, doc=doc))
    if position is not None:
        changes.append(lambda update: _move(update, path, position))
    return changes
