"""Metrics as JSON, for formats that store the metrics of a file or of its blocks in the file itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from icefield.errors import IcefieldError
from icefield.metadata.metrics import Metrics
from icefield.schema import Schema
from icefield.types import GeographyType, GeometryType, IcebergType
from icefield.types.values import from_bytes, geo_point_from_bytes, geo_point_to_bytes, to_bytes

_COUNTS: Final = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS: Final = ("lower_bounds", "upper_bounds")


def metrics_to_json(metrics: Metrics, schema: Schema) -> dict[str, Any]:
    """Metrics as a JSON object. Bounds are the hexadecimal digits of their binary form (spec: Appendix D)."""
    written: dict[str, Any] = {"record_count": metrics.record_count}
    for name in _COUNTS:
        written[name] = {str(number): count for number, count in getattr(metrics, name).items()}
    for name in _BOUNDS:
        bounds: Mapping[int, Any] = getattr(metrics, name)
        written[name] = {
            str(number): _to_bytes(schema.find_type(number), bound).hex() for number, bound in bounds.items()
        }
    return written


def metrics_from_json(obj: Any, schema: Schema) -> Metrics:
    """The inverse of ``metrics_to_json``, for untrusted JSON. Raises ``ValueError`` for invalid metrics."""
    try:
        found: dict[str, Any] = {
            name: {int(key): _count(value) for key, value in obj[name].items()} for name in _COUNTS
        }
        for name in _BOUNDS:
            found[name] = {
                int(key): _from_bytes(schema.find_type(int(key)), bytes.fromhex(value))
                for key, value in obj[name].items()
            }
        return Metrics(_count(obj["record_count"]), **found)
    except (IcefieldError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"the metrics are damaged: {error}") from error


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r} is no count")
    return value


def _to_bytes(kind: IcebergType, bound: Any) -> bytes:
    # The bounds of shapes are corners of their box.
    return geo_point_to_bytes(bound) if isinstance(kind, GeometryType | GeographyType) else to_bytes(kind, bound)


def _from_bytes(kind: IcebergType, data: bytes) -> Any:
    return geo_point_from_bytes(data) if isinstance(kind, GeometryType | GeographyType) else from_bytes(kind, data)
