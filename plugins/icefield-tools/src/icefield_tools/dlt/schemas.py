"""Iceberg tables for tables of a dlt schema: made, and given new columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from dlt.common.destination import DestinationCapabilitiesContext
from dlt.common.destination.typing import PreparedTableSchema
from dlt.common.libs.pyarrow import get_py_arrow_datatype
from dlt.common.schema.typing import TColumnSchema
from icefield import Catalog, Table

from icefield_tools.dlt.adapter import PARTITION_HINT, PROPERTIES_HINT


def arrow_field(
    column: TColumnSchema, capabilities: DestinationCapabilitiesContext, *, added: bool = False
) -> pa.Field:
    """A column as a field of Arrow, of a type that Iceberg has.

    An ``added`` column is optional, because the rows that are there have no value for it.
    """
    found = _in_microseconds(get_py_arrow_datatype(column, capabilities, "UTC"))
    return pa.field(column["name"], found, nullable=added or column.get("nullable", True))


def _in_microseconds(found: pa.DataType) -> pa.DataType:
    """A type whose times have the precision of Iceberg; of nested types, all parts."""
    if pa.types.is_time(found):
        return pa.time64("us")
    if pa.types.is_timestamp(found):
        return found if found.unit == "ns" else pa.timestamp("us", found.tz)
    if pa.types.is_struct(found):
        return pa.struct([field.with_type(_in_microseconds(field.type)) for field in found])
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        return pa.list_(found.value_field.with_type(_in_microseconds(found.value_type)))
    return found


def create(
    catalog: Catalog,
    identifier: tuple[str, ...],
    table: PreparedTableSchema,
    capabilities: DestinationCapabilitiesContext,
    properties: dict[str, Any],
) -> None:
    """Create the table for a table of a dlt schema, partitioned as its hints say."""
    columns = [column for column in table["columns"].values() if "data_type" in column]
    named: Any = table
    partitions = [column["name"] for column in columns if column.get("partition")] + list(named.get(PARTITION_HINT, ()))
    catalog.create_table_if_not_exists(
        identifier,
        pa.schema([arrow_field(column, capabilities) for column in columns]),
        partition_spec=partitions or None,
        properties={**properties, **named.get(PROPERTIES_HINT, {})},
    )


def extend(
    target: Table,
    new: list[TColumnSchema],
    known: dict[str, TColumnSchema],
    capabilities: DestinationCapabilitiesContext,
) -> None:
    """Add new columns, and make columns optional that may be null by now."""
    relaxed = [
        field.name
        for field in target.schema().fields
        if field.required and known.get(field.name, {}).get("nullable", True)
    ]
    if not new and not relaxed:
        return
    with target.update_schema() as update:
        update.union_by_name(pa.schema([arrow_field(column, capabilities, added=True) for column in new]))
        for name in relaxed:
            update.make_column_optional(name)
