"""Values as people read them: sizes with units, times in UTC, partitions and specs by the names of columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from icefield import toolkit

if TYPE_CHECKING:
    import pyarrow as pa
    from icefield import Table
    from icefield.partitioning import PartitionField, SortField
    from icefield.types import IcebergType

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024
_MOST_BEFORE_POINT = 100
_AGES = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))

_Shown = tuple[str, "PartitionField", "IcebergType"]
"""A partition field under the name by which it is shown, and the type of its values."""


def size(number: int | None) -> str | None:
    """A number of bytes with a unit: ``1.2 GiB``."""
    if number is None:
        return None
    amount, unit = float(number), 0
    while amount >= _STEP - 0.5 and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit and amount < _MOST_BEFORE_POINT else f"{amount:.0f} {_UNITS[unit]}"


def number(value: int | str | None) -> str | None:
    """A count with thousands separators; a value that is not a number stays unchanged."""
    return f"{int(value):,}" if value is not None and str(value).isascii() and str(value).isdigit() else value  # type: ignore[return-value]


def utc(given: str | int | None) -> str | None:
    """A time in UTC in ISO form, from milliseconds since 1970, or from the string of an Arrow timestamp."""
    if isinstance(given, int):
        seconds, milliseconds = divmod(given, 1_000)
        try:
            return f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}Z"
        except (ValueError, OverflowError, OSError):  # a time that Python does not know
            return str(given)
    return None if given is None else given.removesuffix("+00:00").removesuffix("Z") + "Z"


def age(milliseconds: int | None) -> str | None:
    """A span of time in the largest unit that divides it, as options take spans: ``7d``."""
    if milliseconds is None:
        return None
    count, unit = next((milliseconds // each, name) for name, each in _AGES if milliseconds % each == 0)
    return f"{count}{unit}"


def seconds(given: str) -> str:
    """``utc`` of the string of an Arrow timestamp, to the second."""
    return given.partition(".")[0].removesuffix("+00:00").removesuffix("Z") + "Z"


def partitions_of(
    table: Table, partition: pa.StructType
) -> Callable[[Mapping[str, Any] | None, int | None], str | None]:
    """A function that shows a partition, given the struct of its fields and its spec id: ``ts_month=2013-01``.

    ``partition``: the type of the structs. Ids distinguish its fields, since a spec may reuse the name of an earlier
    field; the function shows the names in the spec itself.
    """
    schema, schemas = table.schema(), list(table.schemas().values())
    columns = {toolkit.field_id(column): column.name for column in partition}
    specs: dict[int, dict[str, _Shown]] = {}
    every: dict[str, _Shown] = {}
    for spec in table.metadata.partition_specs:
        kinds = spec.partition_type(schema, schemas).fields
        known = specs[spec.spec_id] = {}
        for field, kind in zip(spec.fields, kinds, strict=True):
            name = columns.get(field.field_id)
            if name is not None:
                known[name] = (field.name, field, kind.field_type)
                every[name] = (name, field, kind.field_type)

    def show(values: Mapping[str, Any] | None, spec_id: int | None) -> str | None:
        if values is None:
            return None
        known = every if spec_id is None else specs.get(spec_id, every)
        texts = []
        for column, value in values.items():
            if column in known:
                name, field, kind = known[column]
                # Values that Arrow made strings, such as dates, are readable already.
                shown = field.transform.to_display(kind, value) if type(value) is int else _plain(value)
                texts.append(f"{name}={shown}")
        return ", ".join(texts) or None

    return show


def _plain(value: Any) -> str:
    return "null" if value is None else value.hex() if isinstance(value, bytes) else str(value)


def partition_field(table: Table, field: PartitionField) -> str:
    """The transform of a partition field with its columns' names: ``month(time_hour)``."""
    return _of_columns(table, str(field.transform), field.source_ids)


def sort_field(table: Table, field: SortField) -> str:
    """The transform, direction and null order of a sort field: ``day(ts) desc nulls last``."""
    direction, nulls = str(field.direction).lower(), str(field.null_order).lower().replace("-", " ")
    return f"{_of_columns(table, str(field.transform), field.source_ids)} {direction} {nulls}"


def _of_columns(table: Table, transform: str, ids: tuple[int, ...]) -> str:
    names = ", ".join(_column(table, each) for each in ids)
    return names if transform == "identity" else f"{transform}({names})"


def _column(table: Table, column_id: int) -> str:
    """The name of a column; a dropped column has its name in an earlier schema."""
    for schema in (table.schema(), *table.schemas().values()):
        name = schema.find_column_name(column_id)
        if name is not None:
            return name
    return f"column {column_id}"
