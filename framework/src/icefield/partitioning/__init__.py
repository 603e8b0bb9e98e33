"""Partition specs, sort orders and transforms."""

from icefield.partitioning.sort_order import (
    UNSORTED,
    NullOrder,
    SortDirection,
    SortField,
    SortOrder,
    sort_order_from_json,
    sort_order_to_json,
)
from icefield.partitioning.spec import UNPARTITIONED, PartitionField, PartitionSpec, spec_from_json, spec_to_json

__all__ = [
    "UNPARTITIONED",
    "UNSORTED",
    "NullOrder",
    "PartitionField",
    "PartitionSpec",
    "SortDirection",
    "SortField",
    "SortOrder",
    "sort_order_from_json",
    "sort_order_to_json",
    "spec_from_json",
    "spec_to_json",
]
