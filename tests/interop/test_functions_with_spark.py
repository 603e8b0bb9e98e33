"""The functions of Iceberg's Java runtime in Spark's SQL give the same values as the transforms of Icefield."""

from __future__ import annotations

from typing import Any

from function_calls import COLUMNS, SCHEMA, calls, rows_of, transformed
from shared_with_spark import Shared


def test_javas_functions_give_what_transforms_give(shared: Shared) -> None:
    rows = rows_of()
    shared.catalog.create_table("db.t", SCHEMA).append(rows)
    catalog = shared.name.partition(".")[0]
    items = [
        f"{'hex' if COLUMNS[column][0] == COLUMNS['b'][0] and call.startswith('truncate') else 'string'}"
        f"({catalog}.system.{call}) AS c{at}"
        for at, (call, column, _) in enumerate(calls())
    ]
    found = [tuple(row.values()) for row in shared.spark.sql(f"SELECT {', '.join(items)} FROM {shared.name}")]
    wanted = [tuple(map(shown, row)) for row in transformed(rows)]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)


def shown(value: Any) -> str | None:
    """A result as Spark spells it."""
    if value is None:
        return None
    return value.hex().upper() if isinstance(value, bytes) else str(value)
