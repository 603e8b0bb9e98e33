"""Evaluates a bound expression on Arrow data, with Arrow's own kernels, and turns it into an Arrow expression.

A row matches if the expression is true; false and unknown (a null was compared) do not. A field inside a null struct
is null. Strings and bytes compare as unsigned bytes, floats as IEEE 754 says: NaN equals nothing, not even itself, is
neither less nor greater than anything, and -0.0 equals 0.0.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import InvalidExpression
from icefield.expressions.bound import BoundPredicate, map_leaves, not_bound
from icefield.expressions.bounds import are_few, is_among
from icefield.expressions.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Op, Or
from icefield.types.arrow.pieces import one_array
from icefield.types.arrow.types import field_id

ArrowRows: TypeAlias = pa.RecordBatch | pa.Table | pa.StructArray

_COMPARE: dict[Op, str] = {
    Op.LT: "less",
    Op.LT_EQ: "less_equal",
    Op.GT: "greater",
    Op.GT_EQ: "greater_equal",
    Op.EQ: "equal",
    Op.NOT_EQ: "not_equal",
}


def evaluate(expression: BooleanExpression, data: ArrowRows) -> pa.BooleanArray:
    """Which rows match: true or false for each, never null. Columns are found by the names of each leaf's path.

    Raises ``InvalidExpression`` for an expression that is not bound or a column that is not in the data.
    """
    count = len(data) if isinstance(data, pa.StructArray) else data.num_rows
    found = _evaluate(expression, _ExtractedColumns(data), count)
    if isinstance(found, bool):
        return pa.repeat(pa.scalar(found), count)
    return pc.fill_null(one_array(found), False)


def _evaluate(expression: BooleanExpression, columns: _ExtractedColumns, count: int) -> pa.BooleanArray | bool:
    """A mask, in which null means unknown; or one answer for all rows."""
    match expression:
        case AlwaysTrue():
            return True
        case AlwaysFalse():
            return False
        case And() | Or():
            return _join(expression, columns, count)
        case BoundPredicate():
            return _leaf(expression, columns[expression.path], count)
    raise not_bound(expression)


def _join(expression: And | Or, columns: _ExtractedColumns, count: int) -> pa.BooleanArray | bool:
    """The mask of ``and`` or ``or``. Evaluation stops once the remaining operands cannot change it."""
    settled = isinstance(expression, Or)
    combine = pc.or_kleene if settled else pc.and_kleene
    mask: pa.BooleanArray | None = None
    for child in expression.children:
        found = _evaluate(child, columns, count)
        if isinstance(found, bool):
            if found is settled:
                return settled
            continue
        mask = found if mask is None else combine(mask, found)
        if not settled and not pc.any(mask).as_py():
            return False
    return mask if mask is not None else not settled


class _ExtractedColumns(dict[tuple[str, ...], Any]):
    """The columns of some rows by path, each extracted once."""

    def __init__(self, data: ArrowRows) -> None:
        self._data = data

    def __missing__(self, path: tuple[str, ...]) -> Any:
        column = self[path] = _plain(self._take(path))
        return column

    def _take(self, path: tuple[str, ...]) -> Any:
        if isinstance(self._data, pa.StructArray):
            return _child(self._data, path)
        index = self._data.schema.get_field_index(path[0])
        if index < 0:
            raise _absent(path)
        column = self._data.column(index)
        return _child(column, path[1:]) if len(path) > 1 else column


def _child(column: Any, path: tuple[str, ...]) -> Any:
    indices, kind = [], column.type
    for name in path:
        index = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        if index < 0:
            raise _absent(path)
        indices.append(index)
        kind = kind.field(index).type
    # Not StructArray.field: this kernel makes the child of a null struct null.
    return pc.struct_field(column, indices)


def _absent(path: tuple[str, ...]) -> InvalidExpression:
    name = ".".join(path)
    return InvalidExpression(f"the data has no column '{name}', or has it twice", field=name)


def _plain(column: Any) -> Any:
    """The column in a form that every kernel knows."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return column.cast(kind.storage_type)
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_decode(column)
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_dictionary(kind) and isinstance(column, pa.ChunkedArray):
        return column.cast(kind.value_type)
    return column


def _leaf(leaf: BoundPredicate, column: Any, count: int) -> pa.BooleanArray | bool:
    if leaf.op is Op.IS_NULL:
        return pc.is_null(column)
    if leaf.op is Op.NOT_NULL:
        return pc.is_valid(column)
    if pa.types.is_null(column.type):
        return leaf.op is Op.NOT_NAN
    if pa.types.is_dictionary(column.type):
        # Test each distinct value once. A null index gives null, which only NOT_NAN takes for a match.
        found = _test(leaf, _plain(column.dictionary)).take(column.indices)
        return pc.fill_null(found, True) if leaf.op is Op.NOT_NAN else found
    return _test(leaf, column)


def _test(leaf: BoundPredicate, column: Any) -> Any:
    compare = _COMPARE.get(leaf.op)
    if compare is not None:
        return getattr(pc, compare)(column, leaf.arrow)
    match leaf.op:
        case Op.IN:
            return _among(leaf, column)
        case Op.NOT_IN:
            return pc.and_not(pc.is_valid(column), _among(leaf, column))
        case Op.STARTS_WITH:
            return pc.starts_with(column, leaf.value)
        case Op.NOT_STARTS_WITH:
            return pc.invert(pc.starts_with(column, leaf.value))
        case Op.IS_NAN:
            return pc.is_nan(column)
    return pc.invert(pc.fill_null(pc.is_nan(column), False))


def _among(leaf: BoundPredicate, column: Any) -> Any:
    if leaf.arrow.type == column.type and are_few(column, leaf.arrow):
        # Arrow's kernel would build a set of all values for each batch of rows, so at least once for each file.
        return pa.array(is_among(leaf.arrow, one_array(column)))
    values = _value_set(leaf)
    if values.type != column.type:
        try:
            values = values.cast(column.type)
        except pa.ArrowInvalid:
            column = column.cast(values.type)
    return pc.is_in(column, value_set=values)


def _value_set(leaf: BoundPredicate) -> pa.Array:
    """The values of IN and NOT_IN. Arrow distinguishes -0.0 from 0.0 in a set, so the set gets both."""
    values = leaf.arrow
    if leaf.is_floating and 0.0 in leaf.value:
        values = pa.concat_arrays([values, pa.array([0.0, -0.0], values.type)])
    return values


def to_arrow(expression: BooleanExpression, schema: pa.Schema | None = None) -> pc.Expression:
    """The expression for Arrow's datasets, which keep rows for which it is true.

    With ``schema``, fields are looked up in it by id. A test of an absent field counts as a match (see ``relocate``).
    """
    if schema is not None:
        expression = relocate(expression, schema)
    match expression:
        case AlwaysTrue() | AlwaysFalse():
            return pc.scalar(isinstance(expression, AlwaysTrue))
        case And():
            return reduce(lambda a, b: a & b, map(to_arrow, expression.children))
        case Or():
            return reduce(lambda a, b: a | b, map(to_arrow, expression.children))
        case BoundPredicate():
            return _leaf_expression(expression)
    raise not_bound(expression)


def _leaf_expression(leaf: BoundPredicate) -> pc.Expression:
    field = pc.field(*leaf.path) if len(leaf.path) > 1 else pc.field(leaf.path[0])
    match leaf.op:
        case Op.IS_NULL:
            return field.is_null()
        case Op.NOT_NULL:
            return field.is_valid()
        case Op.NOT_NAN:
            return field.is_null() | ~pc.is_nan(field)
        case Op.IN | Op.NOT_IN:
            among = field.isin(_value_set(leaf))
            return among if leaf.op is Op.IN else field.is_valid() & ~among
    return _test(leaf, field)


def relocate(expression: BooleanExpression, schema: pa.Schema) -> BooleanExpression:
    """A bound expression for data of another schema, say that of a file: paths are found anew by field id.

    A field that the schema lacks becomes AlwaysTrue, so the result never rejects a row that the expression keeps.
    """
    paths: dict[int, tuple[str, ...]] = {}
    _collect_paths(list(schema), (), paths)

    def moved(leaf: BoundPredicate) -> BooleanExpression:
        path = paths.get(leaf.field.field_id)
        return AlwaysTrue() if path is None else leaf.at(path)

    return map_leaves(expression, moved)


def _collect_paths(fields: list[pa.Field], above: tuple[str, ...], paths: dict[int, tuple[str, ...]]) -> None:
    for field in fields:
        path = (*above, field.name)
        id_ = field_id(field)
        if id_ is not None:
            paths[id_] = path
        if pa.types.is_struct(field.type):
            _collect_paths([field.type.field(i) for i in range(field.type.num_fields)], path, paths)
