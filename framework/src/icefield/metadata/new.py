"""The first metadata of a new table."""

from __future__ import annotations

import time
from collections.abc import Mapping
from uuid import UUID, uuid4

from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.metadata.codecs import PARTITION_SPECS, SCHEMAS, SORT_ORDERS
from icefield.metadata.decode import SUPPORTED_FORMAT_VERSIONS
from icefield.metadata.json_array import JsonArray
from icefield.metadata.properties import FORMAT_VERSION, FrozenDict, check_properties
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.validation import check_location, check_spec
from icefield.partitioning import UNPARTITIONED, UNSORTED, PartitionSpec, SortOrder
from icefield.partitioning.sort_order import order_for_new_table, validate_order
from icefield.partitioning.spec import PARTITION_FIELD_ID_START, spec_for_new_table
from icefield.schema import Schema, assign_fresh_ids, check_schema


def new_table_metadata(
    schema: Schema,
    spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    location: str = "",
    properties: Mapping[str, str] | None = None,
    format_version: int | None = None,
    table_uuid: str | None = None,
    *,
    now_ms: int | None = None,
) -> TableMetadata:
    """The metadata of a new, empty table.

    Column ids are assigned afresh, from 1. The sources of the spec and the sort order are ids of ``schema`` and are
    replaced by the new ids. The format version is ``format_version``, else the property of that name, which is not
    stored, else 2. Raises ``InvalidArgument``, ``InvalidSchema`` or ``UnsupportedFeature``.
    """
    stored = check_properties(properties or {})
    version = _format_version(format_version, stored.pop(FORMAT_VERSION.name, None))
    fresh, ids = assign_fresh_ids(schema.with_schema_id(0))
    check_schema(fresh, version)
    first_spec = spec_for_new_table(spec, ids)
    check_spec(first_spec, fresh, version)
    first_order = order_for_new_table(sort_order, ids)
    validate_order(first_order, fresh)
    return TableMetadata(
        format_version=version,
        table_uuid=_uuid(table_uuid),
        location=check_location(location),
        last_updated_ms=time.time_ns() // 1_000_000 if now_ms is None else now_ms,
        last_column_id=max(fresh.highest_field_id, 0),
        schemas=JsonArray.of(SCHEMAS, [fresh]),
        current_schema_id=fresh.schema_id,
        partition_specs=JsonArray.of(PARTITION_SPECS, [first_spec]),
        default_spec_id=first_spec.spec_id,
        last_partition_id=max(first_spec.last_assigned_field_id, PARTITION_FIELD_ID_START - 1),
        sort_orders=JsonArray.of(SORT_ORDERS, [first_order]),
        default_sort_order_id=first_order.order_id,
        properties=FrozenDict(stored),
    )


def _format_version(given: int | None, stated: str | None) -> int:
    asked = {version for version in (given, None if stated is None else int(stated)) if version is not None}
    if len(asked) > 1:
        raise InvalidArgument(f"format version {given} and the property 'format-version' {stated} disagree")
    version = asked.pop() if asked else int(FORMAT_VERSION.default or 2)
    if not isinstance(version, int) or isinstance(version, bool) or version < SUPPORTED_FORMAT_VERSIONS[0]:
        raise InvalidArgument(f"{version!r} is no format version; versions 1 to 3 are supported")
    if version > SUPPORTED_FORMAT_VERSIONS[-1]:
        raise UnsupportedFeature(f"format version {version} is not supported; versions 1 to 3 are")
    return version


def _uuid(given: str | None) -> str:
    if given is None:
        return str(uuid4())
    try:
        return str(UUID(given))
    except (ValueError, AttributeError, TypeError):
        raise InvalidArgument(f"{given!r} is no uuid") from None
