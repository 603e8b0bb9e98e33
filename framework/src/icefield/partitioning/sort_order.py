"""Sort orders: how the rows inside a file follow one another (spec: "Sorting")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import InvalidArgument, InvalidMetadata, InvalidSchema, UnsupportedFeature, printable
from icefield.partitioning.sources import (
    check_source,
    int_from_json,
    source_column,
    source_ids_from_json,
    source_ids_to_json,
    transform_from_json,
)
from icefield.partitioning.transforms import Transform, parse_transform
from icefield.schema import Schema

Choice = TypeVar("Choice", bound=Enum)

UNSORTED_ORDER_ID: Final = 0
INITIAL_ORDER_ID: Final = 1


class SortDirection(Enum):
    """Which values come first."""

    ASC = "asc"
    DESC = "desc"

    def __str__(self) -> str:
        return self.value


class NullOrder(Enum):
    """The position of nulls, independent of the direction."""

    NULLS_FIRST = "nulls-first"
    NULLS_LAST = "nulls-last"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class SortField:
    """One key of a sort order: a transform of a column, a direction and the null order.

    Transform, direction and null order may be given as a string. Without a null order, nulls come first when ascending
    and last when descending. Raises ``InvalidArgument``.
    """

    source_id: int
    transform: Transform = "identity"  # type: ignore[assignment]
    direction: SortDirection = SortDirection.ASC
    null_order: NullOrder = None  # type: ignore[assignment]
    source_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "transform", parse_transform(self.transform))
        set_(self, "direction", _choice(SortDirection, self.direction, "a sort direction"))
        usual = NullOrder.NULLS_FIRST if self.direction is SortDirection.ASC else NullOrder.NULLS_LAST
        null_order = usual if self.null_order is None else self.null_order
        set_(self, "null_order", _choice(NullOrder, null_order, "a null order"))
        set_(self, "source_ids", tuple(self.source_ids) or (self.source_id,))
        set_(self, "source_id", self.source_ids[0])

    @property
    def is_known(self) -> bool:
        """Whether this version can compute the key."""
        return self.transform.is_known and len(self.source_ids) == 1

    def __str__(self) -> str:
        sources = ", ".join(map(str, self.source_ids))
        return printable(f"{self.transform}({sources}) {self.direction} {self.null_order}")


@dataclass(frozen=True, slots=True, init=False)
class SortOrder:
    """The keys of a sort order: ``SortOrder(SortField(...), ..., order_id=1)``. No keys, id 0: unsorted.

    Raises ``InvalidArgument`` for id 0 with keys.
    """

    fields: tuple[SortField, ...]
    order_id: int

    def __init__(self, *fields: SortField, order_id: int | None = None) -> None:
        if order_id is None:
            order_id = INITIAL_ORDER_ID if fields else UNSORTED_ORDER_ID
        if order_id == UNSORTED_ORDER_ID and fields:
            raise InvalidArgument("sort order id 0 is kept for the unsorted order, which has no fields")
        object.__setattr__(self, "fields", tuple(fields))
        object.__setattr__(self, "order_id", order_id)

    @property
    def is_unsorted(self) -> bool:
        """Whether the order has no keys."""
        return not self.fields

    @property
    def ordered_ids(self) -> list[int]:
        """The ids of the columns whose own order the keys keep: not those of a bucket."""
        return [each.source_id for each in self.fields if each.transform.preserves_order]

    def same_as(self, other: SortOrder) -> bool:
        """Whether both orders sort rows in the same way; order ids do not matter."""
        return self.fields == other.fields

    def __len__(self) -> int:
        return len(self.fields)

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.fields))}]"

    def __repr__(self) -> str:
        return f"SortOrder({self}, order_id={self.order_id})"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(SortOrder, order_id=self.order_id), self.fields


UNSORTED: Final = SortOrder(order_id=UNSORTED_ORDER_ID)


def _choice(kind: type[Choice], given: Any, what: str) -> Choice:
    try:
        return given if isinstance(given, kind) else kind(given.lower())
    except (ValueError, AttributeError):
        raise InvalidArgument(f"{what} is {' or '.join(map(str, kind))}, not {given!r:.40}") from None


def validate_order(order: SortOrder, schema: Schema) -> None:
    """Check a sort order that is to be added to a table.

    Raises ``InvalidSchema`` for a source that is missing, not primitive, inside a list or map, or not fit for the
    transform; ``UnsupportedFeature`` for a transform that this version cannot compute.
    """
    for field in order.fields:
        _check_known(field)
        check_source(field.source_id, field.transform, schema, f"sort field {field}")


def order_for_new_table(order: SortOrder, source_ids: Mapping[int, int]) -> SortOrder:
    """The order as the first one of a new table, with id 1 and new source ids, by a mapping from the old ids.

    Raises ``InvalidSchema`` for an unknown source.
    """
    fields = []
    for field in order.fields:
        missing = [old for old in field.source_ids if old not in source_ids]
        if missing:
            raise InvalidSchema(f"the schema lacks column {missing[0]}, the source of sort field {field}")
        fields.append(replace(field, source_ids=tuple(source_ids[old] for old in field.source_ids)))
    return SortOrder(*fields)


def sort_order_to_json(order: SortOrder) -> dict[str, Any]:
    """The JSON object of a sort order."""
    return {
        "order-id": order.order_id,
        "fields": [
            {
                "transform": str(field.transform),
                **source_ids_to_json(field.source_ids),
                "direction": str(field.direction),
                "null-order": str(field.null_order),
            }
            for field in order.fields
        ],
    }


def sort_order_from_json(obj: Any) -> SortOrder:
    """The sort order of a JSON object. Raises ``InvalidMetadata`` for any other value."""
    if not isinstance(obj, dict):
        raise InvalidMetadata("a sort order is not a JSON object")
    order_id = int_from_json(obj, "order-id", "a sort order")
    fields = obj.get("fields")
    if not isinstance(fields, list) or not all(isinstance(item, dict) for item in fields):
        raise InvalidMetadata("the fields of a sort order are not a JSON array of objects")
    try:
        return SortOrder(*map(_field_from_json, fields), order_id=order_id)
    except InvalidArgument as error:
        raise InvalidMetadata(f"sort order {order_id}: {error}") from None


def _field_from_json(item: dict[str, Any]) -> SortField:
    sources = source_ids_from_json(item, "a sort field")
    for key in ("direction", "null-order"):
        if not isinstance(item.get(key), str):
            raise InvalidMetadata(f"a sort field has no {key}")
    return SortField(
        source_id=sources[0],
        transform=transform_from_json(item, sources, "a sort field"),
        direction=item["direction"],
        null_order=item["null-order"],
        source_ids=sources,
    )


def sort_table(order: SortOrder, schema: Schema, table: pa.Table) -> pa.Table:
    """The rows of a table or record batch in that order; rows with equal keys stay as they were.

    Floats follow IEEE's total order: -NaN, -infinity, ..., -0.0, 0.0, ..., infinity, NaN. Columns are found by
    their names in ``schema``. Raises ``InvalidArgument`` for a column that the data lacks, ``UnsupportedFeature``
    for a transform that this version cannot compute.
    """
    return table if order.is_unsorted or table.num_rows < 2 else table.take(sort_indices(order, schema, table))


def sort_indices(order: SortOrder, schema: Schema, table: pa.Table) -> pa.Array:
    """The positions of the rows of a table or record batch in that order, as ``sort_table`` takes them."""
    keys, directions = sort_keys(order, schema, table)
    return pc.sort_indices(keys, sort_keys=directions)


def sort_keys(
    order: SortOrder, schema: Schema, table: pa.Table, *, comparable: bool = False
) -> tuple[pa.Table, list[tuple[str, str]]]:
    """Columns by which Arrow brings rows into that order, and the direction of each.

    With ``comparable`` they are the same columns for every table of a schema, so that rows of several tables can be
    compared.
    """
    columns: list[Any] = []
    directions: list[str] = []
    for field in order.fields:
        key = _key(field, schema, table)
        if key.null_count or comparable:
            # A separate key, since Arrow has a single null placement for all keys.
            nulls = pc.is_valid(key) if field.null_order is NullOrder.NULLS_FIRST else pc.is_null(key)
            columns.append(nulls.cast(pa.int8()))
            directions.append("ascending")
        columns.append(key)
        directions.append("ascending" if field.direction is SortDirection.ASC else "descending")
    names = [str(i) for i in range(len(columns))]
    return pa.table(columns, names), list(zip(names, directions, strict=True))


def _key(field: SortField, schema: Schema, table: pa.Table) -> Any:
    _check_known(field)
    source = schema.id_to_field.get(field.source_id)
    if source is None:
        raise InvalidArgument(f"the schema lacks column {field.source_id}, the source of sort field {field}")
    key = field.transform.apply(source_column(schema, field.source_id, table), source.field_type)
    if pa.types.is_null(key.type):
        return pa.nulls(len(key), pa.int8())
    if isinstance(key.type, pa.BaseExtensionType):  # Arrow sorts the bytes of a uuid, and no uuid
        key = key.cast(key.type.storage_type)
    if not pa.types.is_floating(key.type):
        return key
    chunks = key.chunks if isinstance(key, pa.ChunkedArray) else [key]
    return pa.chunked_array([_total_order(chunk) for chunk in chunks], _bits_type(key.type))


def _bits_type(arrow_type: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_float32(arrow_type) else pa.int64()


def _total_order(array: pa.Array) -> pa.Array:
    """Integers with the order of the floats: for negative floats, all bits but the sign are inverted."""
    bits = array.view(_bits_type(array.type))
    values = bits.fill_null(0).to_numpy(zero_copy_only=False)
    ordered = values ^ ((values >> (8 * values.itemsize - 1)) & np.iinfo(values.dtype).max)
    mask = bits.is_null().to_numpy(zero_copy_only=False) if bits.null_count else None
    return pa.array(ordered, bits.type, mask=mask)


def _check_known(field: SortField) -> None:
    if not field.is_known:
        raise UnsupportedFeature(f"sort field {field} has a transform that this version cannot compute")
