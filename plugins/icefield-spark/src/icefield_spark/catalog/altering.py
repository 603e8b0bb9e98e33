"""ALTER TABLE: the changes from Spark, made in one transaction on the table."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from icefield import Table
from icefield.errors import InvalidArgument, UnsupportedFeature
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from icefield_spark.sql.alter import CLAUSE, alter_by_own_clause
from icefield_spark.sql.defaults import value_of
from icefield_spark.types import from_spark_schema, to_spark_type
from icefield_spark.writing import is_case_sensitive

Change = Mapping[str, Any]


def alter(spark: SparkSession, table: Table, changes: Sequence[Change]) -> None:
    """Make the changes, all in one commit. Raises ``UnsupportedFeature`` for a kind of change that it does not know."""
    own = [
        bytes.fromhex(each["value"]).decode() for each in changes if each.get("property") == CLAUSE and "value" in each
    ]
    if own:
        return alter_by_own_clause(table, own[0], case_sensitive=is_case_sensitive(spark))
    for change in changes:
        if (kind := change["kind"]) not in _COLUMN_CHANGES and kind not in _PROPERTY_CHANGES:
            hint = "; ALTER TABLE ... WRITE ORDERED BY sorts new files" if kind == "ClusterBy" else ""
            raise UnsupportedFeature(f"an Iceberg table cannot be altered with {kind}{hint}")
    lost = _lost_sources(table, (tuple(each["column"]) for each in changes if each["kind"] == "DeleteColumn"))
    with table.transaction() as transaction:
        columns = [each for each in changes if "column" in each]
        if columns:
            with transaction.update_schema() as update:
                for change in columns:
                    whole = {**change, "default": _default(spark, table, change)}
                    _COLUMN_CHANGES[change["kind"]](update, tuple(change["column"]), whole)
        given = {each["property"]: each["value"] for each in changes if each["kind"] == "SetProperty"}
        removed = [each["property"] for each in changes if each["kind"] == "RemoveProperty"]
        if given.get("comment") == "":  # COMMENT ON TABLE ... IS NULL
            removed.append("comment")
            del given["comment"]
        if (location := given.pop("location", None)) is not None:
            transaction.update_location(location)
        if given:
            transaction.set_properties(given)
        if removed:
            transaction.remove_properties(*removed)
    _warn_of_lost(lost)


def _default(spark: SparkSession, table: Table, change: Change) -> Any:
    """The value of the default in a change, a constant expression of Spark; None if the change has no default."""
    constant = change.get("default")
    if not constant:
        return None
    if "type" in change:
        return value_of(spark, constant, _spark_type(change))
    return value_of(spark, constant, to_spark_type(table.schema().find_field(tuple(change["column"])).field_type))


def _add(update: Any, path: tuple[str, ...], change: Change) -> None:
    required = not change["nullable"]
    update.add_column(path, _type_of(change), doc=change["comment"], required=required, default_value=change["default"])
    _move(update, path, change)


def _set_default(update: Any, path: tuple[str, ...], change: Change) -> None:
    update.set_default_value(path, change["default"])


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


def _spark_type(change: Change) -> spark_types.DataType:
    field = {"name": "c", "type": change["type"], "nullable": True, "metadata": {}}
    return spark_types.StructType.fromJson({"type": "struct", "fields": [field]}).fields[0].dataType


def _type_of(change: Change) -> Any:
    schema = spark_types.StructType([spark_types.StructField("c", _spark_type(change))])
    return from_spark_schema(schema).fields[0].field_type


def _warn_of_lost(lost: set[str]) -> None:
    """Warn of the operations that fail in Iceberg's Java runtime when partition fields have lost their columns."""
    if lost:
        warnings.warn(
            f"the partition fields {', '.join(sorted(lost))} lost the columns that they are made from: Iceberg's "
            "Java runtime fails to merge on read into such a table ('Cannot find field'); where it shall, set "
            "write.delete.mode, write.update.mode and write.merge.mode to copy-on-write",
            stacklevel=2,
        )


def _lost_sources(table: Table, paths: Iterable[tuple[str, ...]], case_sensitive: bool = True) -> set[str]:
    """The names of partition fields, in any spec, that have one of the dropped columns as a source."""
    schema = table.schema()
    there = [path for path in paths if schema.has_field(path, case_sensitive)]
    gone = {schema.find_field(path, case_sensitive).field_id for path in there}
    fields = [field for spec in table.specs().values() for field in spec.fields]
    return {field.name for field in fields if gone & set(field.source_ids)}


_PROPERTY_CHANGES = frozenset({"SetProperty", "RemoveProperty"})
_COLUMN_CHANGES: dict[str, Any] = {
    "AddColumn": _add,
    "DeleteColumn": _delete,
    "RenameColumn": _rename,
    "UpdateColumnType": _retype,
    "UpdateColumnComment": _comment,
    "UpdateColumnDefaultValue": _set_default,
    "UpdateColumnNullability": _nullability,
    "UpdateColumnPosition": _move,
}
