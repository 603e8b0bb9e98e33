"""The bounds that a foreign file's footer states, as values of the table's types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from icefield.errors import IcefieldError
from icefield.metadata.metrics import Metrics
from icefield.scan.conversions import IncompatibleType, conversion
from icefield.schema import Schema
from icefield.types import IcebergType
from icefield.types.arrow.types import child_fields, field_id, from_arrow_type, to_arrow_type
from icefield.types.values import constant_array, from_arrow_scalar


def in_table_types(metrics: Metrics, file_schema: pa.Schema, schema: Schema) -> Metrics:
    """Metrics with bounds as values of the table's types.

    A file may hold a type that the table's type was promoted from, or another unit of time: a number of days bounds no
    microseconds. Bounds that do not convert are left out.
    """
    held = dict(_types_by_id(file_schema))
    lower, upper = dict(metrics.lower_bounds), dict(metrics.upper_bounds)
    for id_ in metrics.lower_bounds.keys() | metrics.upper_bounds.keys():
        field = schema.id_to_field.get(id_)
        if field is None or id_ not in held:
            continue
        try:
            kind = from_arrow_type(held[id_])
            if kind == field.field_type:
                continue
            bounds = [_converted(kind, field.field_type, each.get(id_)) for each in (lower, upper)]
        except (IcefieldError, IncompatibleType, pa.ArrowException):
            bounds = [None, None]
        for each, bound in zip((lower, upper), bounds, strict=True):
            each[id_] = bound
    return replace(metrics, lower_bounds=_present(lower), upper_bounds=_present(upper))


def _types_by_id(fields: Iterable[pa.Field]) -> Iterator[tuple[int, pa.DataType]]:
    """The Arrow types of a file's columns and of the fields of its structs."""
    for field in fields:
        id_ = field_id(field)
        if pa.types.is_struct(field.type):
            yield from _types_by_id(child_fields(field.type))
        elif id_ is not None:
            yield id_, field.type


def _converted(kind: IcebergType, wanted: IcebergType, value: Any) -> Any:
    convert = conversion(wanted, to_arrow_type(kind))
    array = constant_array(kind, value, 1)
    return from_arrow_scalar(wanted, (array if convert is None else convert(array))[0])


def _present(bounds: dict[int, Any]) -> dict[int, Any]:
    return {id_: bound for id_, bound in bounds.items() if bound is not None}
