"""Rows as Python values, for formats that are written row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from icefield.toolkit.batches import bare_batch
from icefield.types.arrow.nested import times_as_numbers
from icefield.types.arrow.types import child_fields, is_list_like

Convert: TypeAlias = Callable[[Any], Any]
Conversions: TypeAlias = Callable[[pa.DataType], Convert | None]
"""For the type of a leaf, the function that converts a value other than null; None if values stay as they are."""


def to_rows(batch: pa.RecordBatch, conversions: Conversions | None = None) -> list[dict[str, Any]]:
    """The rows of a batch, each a dictionary by column name, without loss.

    A date is its days, a time its microseconds, a timestamp its micro- or nanoseconds from the epoch: Python's times
    are less precise and have less range than Arrow's. A uuid and a fixed are bytes; a struct is a dictionary, a list a
    list, a map a list of pairs. ``conversions`` turns leaves into values that the format can hold.
    """
    if not batch.num_columns:
        return [{} for _ in range(batch.num_rows)]
    columns = []
    for field, array in zip(batch.schema, batch.columns, strict=True):
        values = times_as_numbers(array).to_pylist()
        convert = _tree(field.type, conversions or _as_it_is)
        columns.append(values if convert is None else [None if value is None else convert(value) for value in values])
    names = batch.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _as_it_is(kind: pa.DataType) -> None:
    """No conversion."""


def from_rows(
    rows: Iterable[Mapping[str, Any]], columns: pa.Schema, conversions: Conversions | None = None
) -> pa.RecordBatch:
    """A batch of exactly ``columns`` from rows in the form of ``to_rows``; the inverse of it.

    Other keys of a row are ignored, and missing keys are null. Maps may be lists of lists. ``conversions`` turns
    leaves back. Raises ``ValueError`` for a value that is not of its column's type.
    """
    rows = rows if isinstance(rows, list) else list(rows)
    if not len(columns):
        return bare_batch(len(rows))
    return pa.RecordBatch.from_arrays([_column(rows, field, conversions) for field in columns], schema=columns)


def _column(rows: list[Mapping[str, Any]], field: pa.Field, conversions: Conversions | None) -> pa.Array:
    convert = _tree(field.type, partial(_checked, conversions or _as_it_is))
    try:
        values = [row.get(field.name) for row in rows]
        if convert is not None:
            values = [None if value is None else convert(value) for value in values]
        return pa.array(values, field.type)
    except (TypeError, AttributeError, LookupError, ArithmeticError, pa.ArrowException) as error:
        raise ValueError(f"a value of column '{field.name}' is no {field.type}: {error}") from error


def _checked(conversions: Conversions, kind: pa.DataType) -> Convert | None:
    """The conversion of a leaf, and for numbers a check: Arrow makes 1 of 1.5 in silence."""
    convert = conversions(kind)
    if not (pa.types.is_integer(kind) or pa.types.is_temporal(kind)):
        return convert
    return _whole if convert is None else lambda value: _whole(convert(value))


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{type(value).__name__} where a whole number is due")
    return value


def _tree(kind: pa.DataType, conversions: Conversions) -> Convert | None:
    """The conversion of a value of a type and its nested values; None if none is needed."""
    if pa.types.is_struct(kind):
        inner = {field.name: _tree(field.type, conversions) for field in child_fields(kind)}
        found = {name: convert for name, convert in inner.items() if convert is not None}
        return partial(_struct, found) if found else None
    if pa.types.is_map(kind):
        key, value = (_tree(field.type, conversions) for field in child_fields(kind))
        return partial(_pairs, key, value)
    if is_list_like(kind):
        element = _tree(kind.value_type, conversions)
        return partial(_items, element) if element is not None else None
    return conversions(kind)


def _struct(inner: Mapping[str, Convert], value: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(value)
    for name, convert in inner.items():
        if made.get(name) is not None:
            made[name] = convert(made[name])
    return made


def _items(element: Convert, values: Iterable[Any]) -> list[Any]:
    return [None if value is None else element(value) for value in values]


def _pairs(of_key: Convert | None, of_value: Convert | None, pairs: Iterable[Any]) -> list[tuple[Any, Any]]:
    """The entries of a map as tuples, which is how Arrow takes them."""
    return [
        (key if of_key is None else of_key(key), item if of_value is None or item is None else of_value(item))
        for key, item in pairs
    ]
