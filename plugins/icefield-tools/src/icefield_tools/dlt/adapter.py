"""Hints for resources of dlt: the partitioning and the properties of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dlt.destinations.utils import get_resource_for_adapter
from dlt.extract import DltResource

PARTITION_HINT: Final = "x-icefield-partition"
PROPERTIES_HINT: Final = "x-icefield-properties"


def icefield_adapter(
    data: Any,
    *,
    partition_spec: str | Sequence[str] | None = None,
    properties: Mapping[str, Any] | None = None,
) -> DltResource:
    """Give a resource the partitioning and the properties that its table gets when it is created.

    Args:
        data: A resource, or data that becomes one.
        partition_spec: Columns and transforms, such as ``["day(created_at)", "bucket[16](id)"]``.
        properties: Properties of the table.

    Returns:
        The resource.
    """
    resource = get_resource_for_adapter(data)
    hints: dict[str, Any] = {}
    if partition_spec is not None:
        hints[PARTITION_HINT] = [partition_spec] if isinstance(partition_spec, str) else list(partition_spec)
    if properties is not None:
        hints[PROPERTIES_HINT] = {key: str(value) for key, value in properties.items()}
    resource.apply_hints(additional_table_hints=hints)
    return resource
