"""ALTER TABLE: changes that Spark states, as one transaction of the table's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from icefield import Table
from icefield.errors import InvalidArgument, UnsupportedFeature
from pyspark.sql import types as spark_types

from icefield_spark.types import from_spark_schema

Change = Mapping[str, Any]


def alter(table: Table, changes: Sequence[Change]) -> None:
    """Make the changes, all in one commit. Raises ``UnsupportedFeature`` for a kind of change that it does not know."""
    for change in changes:
        kind = change["kind"]
        if (kind not in _COLUMN_CHANGES and kind not in _PROPERTY_CHANGES) or "default" in change:
            shown = "a default value" if "default" in change else kind
            raise UnsupportedFeature(f"ALTER TABLE with {shown} is not there for Spark's own SQL: use ice.sql")
    with table.transaction() as transaction:
        columns = [each for each in changes if "column" in each]
        if columns:
            with transaction.update_schema() as update:
                for change in columns:
                    _COLUMN_CHANGES[change["kind"]](update, tuple(change["column"]), change)
        given = {each["property"]: each["value"] for each in changes if each["kind"] == "SetProperty"}
        if given:
            transaction.set_properties(given)
        removed = [each["property"] for each in changes if each["kind"] == "RemoveProperty"]
        if removed:
            transaction.remove_properties(*removed)


def _add(update: Any, path: tuple[str, ...], change: Change) -> None:
    update.add_column(path, _type_of(change), doc=change["comment"], required=not change["nullable"])
    _move(update, path, change)


def _move(update: Any, path: tuple[str, ...], change: Change) -> None:
    if change.get("first"):
        update.move_first(path)
    elif change.get("after"):
        update.move_after(path, (*path[:-1], change["after"]))


def _delete(update: Any, path: tuple[str, ...], change: Change) -> None:
    update.delete_column(path)


def _rename(update: Any, path: tuple[str, ...], change: Change) -> None:
    update.rename_column(path, change["to"])


def _retype(update: Any, path: tuple[str, ...], change: Change) -> None:
    update.update_column(path, field_type=_type_of(change))


def _comment(update: Any, path: tuple[str, ...], change: Change) -> None:
    update.update_column(path, doc=change["comment"])


def _nullability(update: Any, path: tuple[str, ...], change: Change) -> None:
    if not change["nullable"]:
        raise InvalidArgument(f"column {'.'.join(path)} may hold nulls; it cannot be made NOT NULL")
    update.make_column_optional(path)


def _type_of(change: Change) -> Any:
    field = {"name": "c", "type": change["type"], "nullable": True, "metadata": {}}
    schema = spark_types.StructType.fromJson(json.loads(json.dumps({"type": "struct", "fields": [field]})))
    return from_spark_schema(schema).fields[0].field_type


_PROPERTY_CHANGES = frozenset({"SetProperty", "RemoveProperty"})
_COLUMN_CHANGES: dict[str, Any] = {
    "AddColumn": _add,
    "DeleteColumn": _delete,
    "RenameColumn": _rename,
    "UpdateColumnType": _retype,
    "UpdateColumnComment": _comment,
    "UpdateColumnNullability": _nullability,
    "UpdateColumnPosition": _move,
}
