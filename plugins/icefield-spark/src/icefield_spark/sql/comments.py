"""``COMMENT ON``: what a table, a column or a namespace is for."""

from __future__ import annotations

from pyspark.sql import DataFrame

from icefield_spark.sql.alter_columns import Alteration
from icefield_spark.sql.context import Context
from icefield_spark.sql.parsing import Cursor

_COMMENT = "comment"


def comment(context: Context, cursor: Cursor) -> DataFrame:
    """``COMMENT ON TABLE``, ``COLUMN`` and ``NAMESPACE``; the cursor stands after COMMENT."""
    cursor.expect("ON")
    if cursor.takes_one_of("NAMESPACE", "DATABASE", "SCHEMA"):
        local = context.namespace(cursor.names("a namespace"))
        if not local:
            return context.passed(cursor)
        context.catalog.update_namespace_properties(local, updates={_COMMENT: _said(cursor) or ""})
    elif cursor.takes("TABLE"):
        table = context.table(cursor.names("the name of a table"))
        if table is None:
            return context.passed(cursor)
        said = _said(cursor)
        if said is None:
            table.remove_properties(_COMMENT)
        else:
            table.set_properties({_COMMENT: said})
    elif cursor.takes("COLUMN"):
        parts = cursor.names("a column")
        # A column may be nested: the table is the longest beginning of the name that is one.
        ends = (end for end in range(len(parts) - 1, 0, -1) if context.names.find(parts[:end]) is not None)
        end = next(ends, None)
        if end is None:
            return context.passed(cursor)
        said = _said(cursor) or ""
        alteration = Alteration(context.spark, context.names.table(parts[:end]))
        alteration.schema(cursor, lambda update: update.update_column(parts[end:], doc=said))
    else:
        return context.passed(cursor)
    return context.nothing()


def _said(cursor: Cursor) -> str | None:
    """Take ``IS 'x'`` or ``IS NULL``: None for the latter."""
    cursor.expect("IS")
    said = None if cursor.takes("NULL") else cursor.string("a comment")
    cursor.expect_end()
    return said
