"""The Python objects of internal values: the inverse of the kernel's conversion of users' values."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from icefield import types as iceberg


def to_python(iceberg_type: iceberg.IcebergType, internal: Any) -> Any:
    """The Python object of an internal value, of a day that Python's calendar has."""
    if internal is None:
        return None
    match iceberg_type:
        case iceberg.DateType():
            return date(1970, 1, 1) + timedelta(days=internal)
        case iceberg.TimeType():
            return (datetime.min + timedelta(microseconds=internal)).time()
        case iceberg.TimestampNanoType() | iceberg.TimestamptzNanoType():
            return np.datetime64(internal, "ns")
        case iceberg.AnyTimestampType():
            return datetime(1970, 1, 1, tzinfo=UTC if iceberg_type.has_zone else None) + timedelta(
                microseconds=internal
            )
        case iceberg.UUIDType():
            return uuid.UUID(bytes=internal)
        case iceberg.StructType():
            pairs = zip(iceberg_type.fields, internal, strict=True)
            return {child.name: to_python(child.field_type, item) for child, item in pairs}
        case iceberg.ListType():
            return [to_python(iceberg_type.element_type, item) for item in internal]
        case iceberg.MapType():
            key, value = iceberg_type.key_type, iceberg_type.value_type
            items = [(to_python(key, k), to_python(value, v)) for k, v in internal]
            return items if key.is_nested else dict(items)
        case iceberg.VariantType():
            return {"metadata": internal[0], "value": internal[1]}
    return internal
