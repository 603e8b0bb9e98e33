"""New values of columns: converts user input to Arrow columns under the table's schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

# Not from pyarrow.acero, which imports pandas if it is installed.
from pyarrow._acero import Declaration, ProjectNodeOptions, TableSourceNodeOptions

from icefield.base import compute as pc
from icefield.errors import InvalidArgument
from icefield.schema import Schema
from icefield.types import NestedField
from icefield.types.arrow.nested import settled
from icefield.types.arrow.pieces import one_array, with_columns
from icefield.types.arrow.types import to_arrow_type
from icefield.types.values import constant_array, to_internal
from icefield.writing.conforming import Conforming

Value: TypeAlias = Any
"""A literal, a ``pyarrow.compute.Expression``, or a function of a record batch that gives an Arrow array."""

Make: TypeAlias = Callable[[pa.RecordBatch], pa.Array]


_Tree = dict[str, Any]
"""New values by the names of columns, and below these of fields: a ``Make``, or another tree for a struct."""


class Assignments:
    """New values for some columns of a table, evaluated on whole batches.

    Every value is computed from the old rows. Fields of structs are named ``"a.b"``; setting a field of a null struct
    makes a struct in which the other fields are null.
    """

    def __init__(self, schema: Schema, values: Mapping[Any, Value], case_sensitive: bool = True) -> None:
        """Resolve the values for a schema.

        Raises ``InvalidArgument`` for a missing column and for a literal that its column cannot hold.
        """
        if not isinstance(values, Mapping) or not values:
            raise InvalidArgument("name the columns to set, and what they are to be: {'column': value}")
        self._made: dict[tuple[str, ...], Make] = {}
        """The new values, by the names from the column to the field."""
        self._tree: _Tree = {}
        leading: dict[tuple[str, ...], tuple[str, ...]] = {}
        """The assigned paths, by each of their prefixes."""
        for name, value in values.items():
            if not isinstance(name, str | tuple):
                raise InvalidArgument(f"a column to set is named by a string, not {name!r}")
            field = schema.find_field(name, case_sensitive)
            path = schema.accessor_path(field.field_id)
            begins = [path[:length] for length in range(1, len(path) + 1)]
            other = leading.get(path) or next((each for each in begins if leading.get(each) == each), None)
            if other is not None:
                raise InvalidArgument(
                    f"column '{'.'.join(path)}' is set twice, once through '{'.'.join(other)}'",
                    column=".".join(path),
                )
            for each in begins:
                leading.setdefault(each, path)
            make = maker(field, ".".join(path), value)
            self._made[path] = make
            inside = self._tree
            for step in path[:-1]:
                inside = inside.setdefault(step, {})
            inside[path[-1]] = make

    def apply(self, rows: pa.RecordBatch, seen: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with the new values, which are computed from ``seen``.

        Raises ``InvalidArgument`` that names the column, for values that it cannot hold.
        """
        changed: dict[int, tuple[pa.Field, pa.Array]] = {}
        schema = rows.schema
        for name, wanted in self._tree.items():
            at = schema.get_field_index(name)
            column = _assigned(rows.column(at), wanted, seen)
            # In a struct that may be null, required fields may be null in Arrow as well.
            changed[at] = pa.field(name, column.type), column
        return with_columns(rows, changed)

    def columns(self, seen: pa.RecordBatch) -> pa.RecordBatch:
        """The new values alone, by the names of columns. Raises ``InvalidArgument`` for a field of a struct."""
        for path in self._made:
            if len(path) > 1:
                name = ".".join(path)
                raise InvalidArgument(f"a new row is given by whole columns; '{name}' is a field of one", column=name)
        return pa.RecordBatch.from_pydict({name: make(seen) for (name,), make in self._made.items()})


def maker(field: NestedField, name: str, value: Value) -> Make:
    """A function that computes the new values of a field for a batch."""
    if isinstance(value, pc.Expression):
        return lambda seen: _conformed(field, name, computed(value, seen, name))
    if callable(value):
        return lambda seen: _conformed(field, name, called(value, seen, name))
    constant = _literal(field, name, value)
    return lambda seen: pc.take(constant, pa.repeat(pa.scalar(0, pa.int64()), seen.num_rows))


def computed(expression: pc.Expression, rows: pa.RecordBatch, name: str) -> pa.Array:
    """The values of an Arrow expression for the rows of a batch, in their order. Raises ``InvalidArgument``."""
    try:
        source = Declaration("table_source", TableSourceNodeOptions(pa.Table.from_batches([rows])))
        project = Declaration("project", ProjectNodeOptions([expression], ["value"]), [source])
        return one_array(project.to_table(use_threads=False).column(0))
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InvalidArgument(f"'{name}' cannot be computed by {expression}: {error}", column=name) from error


def called(function: Callable[[pa.RecordBatch], Any], rows: pa.RecordBatch, name: str) -> pa.Array:
    """The values that a function gives for the rows of a batch. Raises ``InvalidArgument`` for an invalid result."""
    made = function(rows)
    if isinstance(made, pa.ChunkedArray):
        made = one_array(made)
    if not isinstance(made, pa.Array) or len(made) != rows.num_rows:
        given = f"{len(made)} values" if isinstance(made, pa.Array) else type(made).__name__
        raise InvalidArgument(
            f"the function for '{name}' must give an Arrow array with a value for each of {rows.num_rows} rows, "
            f"not {given}",
            column=name,
        )
    return made


def _literal(field: NestedField, name: str, value: Any) -> pa.Array:
    """The literal as an array of one value of the field's type."""
    kind = field.field_type
    if value is None and field.required:
        raise InvalidArgument(f"column '{name}' is required and cannot be set to null", column=name)
    try:
        if kind.is_nested and value is not None:
            plain = value.as_py() if isinstance(value, pa.Scalar) else value
            return _conformed(field, name, pa.array([plain], to_arrow_type(kind)))
        return constant_array(kind, to_internal(kind, value), 1)
    except (InvalidArgument, pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        why = error.message if isinstance(error, InvalidArgument) else str(error)
        raise InvalidArgument(f"column '{name}' cannot be set to {value!r:.200}: {why}", column=name) from error


def _conformed(field: NestedField, name: str, values: pa.Array) -> pa.Array:
    """Values converted to the type of a field."""
    conforming = Conforming(Schema(field), pa.schema([pa.field(field.name, values.type)]))
    batch = pa.RecordBatch.from_arrays([values], names=[field.name])
    return conforming.apply(batch).column(0)


def _assigned(column: pa.Array, wanted: Make | _Tree, seen: pa.RecordBatch) -> pa.Array:
    """A column with other values, or with other fields in its structs."""
    if not isinstance(wanted, dict):
        return wanted(seen)
    kind = column.type
    children = column.flatten()  # fields of a null struct become null
    for name, below in wanted.items():
        at = kind.get_field_index(name)
        children[at] = _assigned(children[at], below, seen)
    fields = [kind.field(place).with_nullable(True) for place in range(kind.num_fields)]
    return settled(pa.StructArray.from_arrays(children, fields=fields))
