"""The type that variants are shredded into, found from the first rows of a file as Iceberg's Java library finds it.

A value gets the type that most of its occurrences have. An object's field gets a column if it occurs in a tenth of the
rows or more. Variants in lists and maps are not shredded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
from icefield.errors import InvalidArgument
from icefield.types import NestedField, StructType, VariantType

from icefield_parquet.variants import cells as kind
from icefield_parquet.variants.cells import Cells, Numbers, Variants
from icefield_parquet.variants.shredding import unscaled_decimals

_RAREST: Final = 0.1
_MOST_FIELDS: Final = 300
_MOST_COLUMNS: Final = 1_000
"""The most columns of one variant: even an empty column takes room in the footer."""
_DEEPEST: Final = 50

_INTEGERS: Final = {kind.INT8: pa.int8(), kind.INT16: pa.int16(), kind.INT32: pa.int32(), kind.INT64: pa.int64()}
_DECIMALS: Final = (kind.DECIMAL4, kind.DECIMAL8, kind.DECIMAL16)
_OTHERS: Final[list[tuple[int, pa.DataType]]] = [
    (kind.FLOAT, pa.float32()), (kind.DOUBLE, pa.float64()), (kind.DECIMAL16, pa.decimal128(38)),
    (kind.DATE, pa.date32()), (kind.TIME, pa.time64("us")), (kind.TIMESTAMPTZ, pa.timestamp("us", "UTC")),
    (kind.TIMESTAMP, pa.timestamp("us")), (kind.BINARY, pa.binary()), (kind.STRING, pa.string()),
    (kind.TIMESTAMPTZ_NANOS, pa.timestamp("ns", "UTC")), (kind.TIMESTAMP_NANOS, pa.timestamp("ns")),
    (kind.UUID, pa.uuid()),
]  # fmt: skip
"""Types other than integers, in the order in which the later one wins where two are as common."""

_MOST_DIGITS: Final = 38

ShreddedTypes = tuple[tuple[int, pa.DataType], ...]
"""The storage types of shredded variants, by field id."""


def has_variants(fields: Iterable[NestedField]) -> bool:
    """Whether there are variants that can be shredded."""
    kinds = [field.field_type for field in fields]
    return any(
        isinstance(each, VariantType) or (isinstance(each, StructType) and has_variants(each.fields)) for each in kinds
    )


def shredded_types(table: pa.Table, fields: tuple[NestedField, ...], rows: int) -> ShreddedTypes:
    """Infer the shredded types of a table's variants from its first ``rows`` rows; omit variants not worth shredding.

    Raises ``InvalidArgument`` for damaged variants, naming the column.
    """
    found: dict[int, pa.DataType] = {}
    for field, column in zip(fields, table.columns, strict=True):
        if has_variants((field,)):
            try:
                _collect(field, pa.concat_arrays(column.slice(0, rows).chunks), found)
            except InvalidArgument as error:
                raise InvalidArgument(f"column '{field.name}': {error}") from error
    return tuple(found.items())


def _collect(field: NestedField, array: pa.StructArray, found: dict[int, pa.DataType]) -> None:
    if isinstance(field.field_type, VariantType):
        typed = typed_value_of(array)
        if typed is not None:
            metadata = pa.field("metadata", pa.binary(), nullable=False)
            found[field.field_id] = pa.struct([metadata, *_group(typed)])
    elif isinstance(field.field_type, StructType) and has_variants((field,)):
        # Flattened, a child is null where the struct is.
        for child, part in zip(field.field_type.fields, array.flatten(), strict=True):
            _collect(child, part, found)


def typed_value_of(array: pa.StructArray) -> pa.DataType | None:
    """The type of ``typed_value`` that fits variants best; None where no type does."""
    variants = Variants(array)
    seen = int((variants.kinds(variants.roots) != kind.NULL).sum())
    return _Search(variants, _RAREST * seen).typed(variants.roots, 0)


def _group(typed: pa.DataType) -> pa.StructType:
    return pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", typed)])


class _Search:
    def __init__(self, variants: Variants, least: float) -> None:
        self._variants = variants
        self._least = least
        self._columns = _MOST_COLUMNS

    def typed(self, cells: Cells, depth: int) -> pa.DataType | None:
        """Infer the shredded type of some cells; None where shredding is not worth it."""
        kinds = self._variants.kinds(cells)
        common, plain = _most_common(kinds)
        if common == kind.OBJECT:
            return self._object(cells.take(kinds == kind.OBJECT), depth) if depth < _DEEPEST else None
        if common == kind.ARRAY:
            return self._list(cells.take(kinds == kind.ARRAY), depth) if depth < _DEEPEST else None
        if self._columns <= 0 or plain is None:
            return None
        self._columns -= 1
        return _decimal(self._variants, cells, kinds) if pa.types.is_decimal(plain) else plain

    def _object(self, cells: Cells, depth: int) -> pa.DataType | None:
        inside = self._variants.inside(cells)
        stated = self._variants.kinds(inside.cells) != kind.NULL
        counts = np.bincount(inside.names[stated], minlength=len(self._variants.names)).tolist()
        names = self._variants.names
        commonest = sorted((-count, names[at], at) for at, count in enumerate(counts) if count >= max(1, self._least))
        fields = []
        for name, at in sorted(_stated_apart((name, at) for _, name, at in commonest)[:_MOST_FIELDS]):
            typed = self.typed(inside.cells.take(inside.names == at), depth + 1)
            if typed is not None:
                fields.append(pa.field(name, _group(typed), nullable=False))
        return pa.struct(fields) if fields else None

    def _list(self, cells: Cells, depth: int) -> pa.DataType | None:
        typed = self.typed(self._variants.inside(cells).cells, depth + 1)
        return None if typed is None else pa.list_(pa.field("element", _group(typed), nullable=False))


def _stated_apart(named: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Drop names that some readers mistake: empty, with a NUL, or different from an earlier name in case only.

    DuckDB renames the second of ``a`` and ``A``. A field that stays encoded next to the columns keeps its name.
    """
    found: dict[str, tuple[str, int]] = {}
    for name, at in named:
        if name and "\0" not in name:
            found.setdefault(name.lower(), (name, at))
    return list(found.values())


def _most_common(kinds: Numbers) -> tuple[int, pa.DataType | None]:
    """The most common kind of the cells, except null, and its type; integers count as one kind, and so do decimals."""
    counts: list[int] = np.bincount(kinds, minlength=kind.ARRAY + 1).tolist()
    integers = [each for each in _INTEGERS if counts[each]]
    candidates: list[tuple[int, int, pa.DataType | None]] = [
        (counts[kind.ARRAY], kind.ARRAY, None),
        (counts[kind.OBJECT], kind.OBJECT, None),
        (counts[kind.TRUE] + counts[kind.FALSE], kind.TRUE, pa.bool_()),
    ]
    if integers:
        candidates.append((sum(counts[each] for each in integers), integers[-1], _INTEGERS[integers[-1]]))
    for each, plain in _OTHERS:
        total = sum(counts[one] for one in _DECIMALS) if each in _DECIMALS else counts[each]
        candidates.append((total, each, plain))
    most = max(count for count, _, _ in candidates)
    if not most:
        return kind.NULL, None
    return next((each, plain) for count, each, plain in reversed(candidates) if count == most)


def _decimal(variants: Variants, cells: Cells, kinds: Numbers) -> pa.DataType | None:
    """Return the decimal type of the most common scale (the larger one of a tie), with enough digits for its values."""
    scales, unscaled = unscaled_decimals(variants, cells, kinds)
    held = scales[scales >= 0]
    if not len(held):
        return None
    counts = np.bincount(held)
    scale = int(len(counts) - 1 - np.argmax(counts[::-1]))
    digits = max(len(str(abs(_whole(*each)))) for each in unscaled[scales == scale].tolist())
    return pa.decimal128(min(_MOST_DIGITS, max(digits, scale, 1)), scale)


def _whole(low: int, high: int) -> int:
    return (high << 64) + (low & 0xFFFF_FFFF_FFFF_FFFF)


def is_shredded(wanted: Any) -> bool:
    """Whether the storage type of a variant is a shredded one."""
    return bool(pa.types.is_struct(wanted) and wanted.get_field_index("typed_value") >= 0)
