"""JSON of filters, as the REST protocol has it, and of metrics, for formats that store them in the file itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from icefield.errors import IcefieldError
from icefield.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, BoundPredicate, Op
from icefield.metadata.metrics import Metrics
from icefield.schema import Schema
from icefield.toolkit.filters import translate_filter
from icefield.types import GeographyType, GeometryType, IcebergType
from icefield.types.values import (
    geo_point_from_bytes,
    geo_point_to_bytes,
    value_from_bytes,
    value_to_bytes,
    value_to_json,
)

_NAMES: Final = {
    Op.IS_NULL: "is-null",
    Op.NOT_NULL: "not-null",
    Op.IS_NAN: "is-nan",
    Op.NOT_NAN: "not-nan",
    Op.LT: "lt",
    Op.LT_EQ: "lt-eq",
    Op.GT: "gt",
    Op.GT_EQ: "gt-eq",
    Op.EQ: "eq",
    Op.NOT_EQ: "not-eq",
    Op.STARTS_WITH: "starts-with",
    Op.NOT_STARTS_WITH: "not-starts-with",
    Op.IN: "in",
    Op.NOT_IN: "not-in",
}
_SETS: Final = (Op.IN, Op.NOT_IN)
_UNARY: Final = (Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN)
_COUNTS: Final = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS: Final = ("lower_bounds", "upper_bounds")


def filter_to_json(expression: BooleanExpression, *, values: bool = True) -> Any:
    """A bound filter as JSON, in the form that older programs can read, too.

    If ``values`` is false, the types replace the values, so that the JSON reveals no data. Raises ``InvalidArgument``
    for a filter with a value that JSON cannot hold, such as infinity.
    """
    if isinstance(expression, AlwaysTrue | AlwaysFalse):
        return isinstance(expression, AlwaysTrue)

    def leaf(predicate: BoundPredicate) -> Any:
        kind = predicate.field.field_type
        made: dict[str, Any] = {"type": _NAMES[predicate.op], "term": ".".join(predicate.path)}
        if predicate.op in _SETS:
            made["values"] = [value_to_json(kind, value) for value in predicate.value] if values else [f"({kind})"]
        elif predicate.op not in _UNARY:
            made["value"] = value_to_json(kind, predicate.value) if values else f"({kind})"
        return made

    return translate_filter(expression, leaf, lambda parts: _joined("and", parts), lambda parts: _joined("or", parts))


def _joined(kind: str, parts: list[Any]) -> Any:
    """Join parts as a balanced tree of pairs, so that many parts are not nested deep."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return {"type": kind, "left": _joined(kind, parts[:middle]), "right": _joined(kind, parts[middle:])}


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
    return geo_point_to_bytes(bound) if isinstance(kind, GeometryType | GeographyType) else value_to_bytes(kind, bound)


def _from_bytes(kind: IcebergType, data: bytes) -> Any:
    return (
        geo_point_from_bytes(data) if isinstance(kind, GeometryType | GeographyType) else value_from_bytes(kind, data)
    )
