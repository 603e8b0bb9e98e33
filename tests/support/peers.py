"""Other implementations as independent checks: PyIceberg, DuckDB and ClickHouse (chdb) read a table.

Each gives its rows under the table's own Arrow types, so that they can be compared as strings (``canonical``), and
answers the same filters: a filter is a column, an operator and a value as ISO string, number or bytes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import icefield.expressions as our_expressions
import pyarrow as pa
import pyarrow.compute as pc
from canonical import canonical_rows
from engines import ClickHouseEngine, DuckDBEngine
from icefield.catalog import Table
from icefield.schema import Schema
from icefield.types import IcebergType, ListType, MapType, StructType, TimeType, UUIDType
from icefield.types.arrow.nested import map_entries
from icefield.types.arrow.types import to_arrow_type


class Filter(NamedTuple):
    """A filter in a neutral form. ``value`` is None for ``IsNull`` and similar filters, and a list for ``In``."""

    column: str
    op: str
    value: Any = None

    def for_python(self, module: Any) -> Any:
        """The filter as an expression of Icefield or PyIceberg, whose classes have the same names."""
        kind = getattr(module, self.op)
        return kind(self.column) if self.value is None else kind(self.column, self.value)

    def for_sql(self, literal: Callable[[Any], str]) -> str:
        """As a condition in SQL."""
        if self.op in _SQL_NULLS:
            return f"{self.column} {_SQL_NULLS[self.op]}"
        if self.op in ("In", "NotIn"):
            values = ", ".join(map(literal, self.value))
            return f"{self.column} {'NOT ' if self.op == 'NotIn' else ''}IN ({values})"
        if self.op in ("StartsWith", "NotStartsWith"):
            return f"{self.column} {'NOT ' if self.op == 'NotStartsWith' else ''}LIKE '{self.value}%'"
        return f"{self.column} {_SQL_COMPARISONS[self.op]} {literal(self.value)}"


_SQL_NULLS = {"IsNull": "IS NULL", "NotNull": "IS NOT NULL"}
_SQL_COMPARISONS = {
    "EqualTo": "=",
    "NotEqualTo": "<>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}


# -- rows that can be compared --------------------------------------------------------------------------------------


def sorted_rows(table: pa.Table, schema: Schema) -> list[str]:
    """The rows of a peer, or our own, as sorted text."""
    return sorted(canonical_rows(fitted(table, schema), schema))


def fitted(table: pa.Table, schema: Schema) -> pa.Table:
    """A peer's rows under the Arrow types of the schema; fails where a value does not fit."""
    columns = [_fitted(table.column(field.name), field.field_type) for field in schema.fields]
    return pa.table(columns, names=[field.name for field in schema.fields])


def _fitted(column: pa.ChunkedArray, kind: IcebergType) -> pa.ChunkedArray:
    chunks = [_fitted_array(chunk, kind) for chunk in column.chunks]
    return pa.chunked_array(chunks or [pa.array([], to_arrow_type(kind))])


def _fitted_array(array: pa.Array, kind: IcebergType) -> pa.Array:
    """Cast an array to the Arrow type of a type, except for the nullability of nested fields."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), to_arrow_type(kind))
    match kind:
        case StructType():
            held = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
            children = [_fitted_array(held[field.name], field.field_type) for field in kind.fields]
            return pa.StructArray.from_arrays(children, [field.name for field in kind.fields], mask=array.is_null())
        case ListType():
            offsets, elements = _pieces(array)
            return pa.ListArray.from_arrays(offsets, _fitted_array(elements, kind.element_type), mask=array.is_null())
        case MapType():
            offsets, entries = _pieces(map_entries(array))
            keys, items = (
                _fitted_array(part, child.field_type)
                for part, child in zip(entries.flatten(), kind.children, strict=True)
            )
            return pa.MapArray.from_arrays(offsets, keys, items, mask=array.is_null())
        case UUIDType() if pa.types.is_string(array.type):
            return pa.array([text and uuid.UUID(text).bytes for text in array.to_pylist()], pa.binary(16))
        case TimeType() if pa.types.is_int64(array.type):
            array = pc.multiply(array, 1_000_000)
    return array.cast(to_arrow_type(kind))


def _pieces(lists: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return offsets, and the elements of all non-null lists; Arrow cannot flatten lists of extension types."""
    lengths = [length or 0 for length in pc.list_value_length(lists).to_pylist()]
    starts = lists.offsets.to_pylist()
    wanted = [start + step for start, length in zip(starts, lengths, strict=False) for step in range(length)]
    return pa.array([0, *accumulate(lengths)], pa.int32()), lists.values.take(pa.array(wanted, pa.int64()))


def altered(table: pa.Table, schema: Schema, change: Callable[[IcebergType, Any], Any]) -> pa.Table:
    """Change each value of our rows, from the leaves up, so that values that a peer does not distinguish are equal."""

    def value(kind: IcebergType, given: Any) -> Any:
        if given is not None:
            match kind:
                case StructType():
                    given = {field.name: value(field.field_type, given[field.name]) for field in kind.fields}
                case ListType():
                    given = [value(kind.element_type, item) for item in given]
                case MapType():
                    given = [(key, value(kind.value_type, item)) for key, item in given]
        return change(kind, given)

    columns = []
    for field, column in zip(schema.fields, fitted(table, schema).columns, strict=True):
        changed = [value(field.field_type, given) for given in column.to_pylist()]
        columns.append(pa.array(changed, to_arrow_type(field.field_type)))
    return pa.table(columns, names=[field.name for field in schema.fields])


# -- PyIceberg ------------------------------------------------------------------------------------------------------


@contextmanager
def pyiceberg_catalog(folder: Path | str, name: str = "test") -> Iterator[Any]:
    """PyIceberg's catalog over the database and the warehouse of ``catalogs.open_catalog("sql", folder)``."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog(name, uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    try:
        yield catalog
    finally:
        catalog.close()


def as_pyiceberg_reads(kind: IcebergType, value: Any) -> Any:
    """PyIceberg 0.12 reads a null list of structs, or map to structs, as an empty one, in its own tables too."""
    inner = kind.element_type if isinstance(kind, ListType) else kind.value_type if isinstance(kind, MapType) else None
    return [] if value is None and isinstance(inner, StructType) else value


def pyiceberg_filter(given: Filter) -> Any:
    """A filter as PyIceberg's expression. PyIceberg's ``NotIn`` matches nulls, unlike SQL's."""
    import pyiceberg.expressions as theirs

    made = given.for_python(theirs)
    return theirs.And(made, theirs.NotNull(given.column)) if given.op == "NotIn" else made


def our_filter(given: Filter) -> our_expressions.BooleanExpression:
    """A filter as our expression."""
    return given.for_python(our_expressions)


# -- DuckDB ---------------------------------------------------------------------------------------------------------


def duckdb_rows(
    engine: DuckDBEngine, table: Table, columns: Sequence[str] = ("*",), given: Filter | None = None, **options: Any
) -> pa.Table:
    """The rows that DuckDB reads from the metadata file; ``options`` go to ``iceberg_scan``."""
    more = "".join(f", {name} => {value}" for name, value in options.items())
    condition = "" if given is None else f" WHERE {given.for_sql(_duckdb_literal)}"
    query = f"SELECT {', '.join(columns)} FROM iceberg_scan('{table.metadata_location}'{more}){condition}"
    return engine.execute(query).to_arrow_table()


def _duckdb_literal(value: Any) -> str:
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
    return _sql_literal(value)


def _sql_literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


# -- ClickHouse -----------------------------------------------------------------------------------------------------

_ARROW = "output_format_arrow_string_as_string = 0, output_format_arrow_fixed_string_as_fixed_byte_array = 1"


def chdb_rows(
    engine: ClickHouseEngine, table: Table, columns: Sequence[str] = ("*",), given: Filter | None = None, **options: Any
) -> pa.Table:
    """The rows that ClickHouse reads from the metadata file; ``options`` are settings of the query."""
    folder = table.location().removeprefix("file://")
    file = table.metadata_location.removeprefix("file://").removeprefix(folder + "/")
    settings = ", ".join([_ARROW, *(f"{name} = {value}" for name, value in options.items())])
    condition = ""
    if given is not None:
        kind = str(table.schema().find_field(given.column).field_type)
        condition = f" WHERE {given.for_sql(partial(_chdb_literal, kind))}"
    source = f"icebergLocal('{folder}', SETTINGS iceberg_metadata_file_path = '{file}')"
    return engine.arrow(f"SELECT {', '.join(columns)} FROM {source}{condition} SETTINGS {settings}")


_CHDB_LITERALS = {
    "date": "toDate32({})",
    "timestamp": "toDateTime64({}, 6, 'UTC')",
    "timestamptz": "toDateTime64({}, 6, 'UTC')",
    "uuid": "toUUID({})",
}


def _chdb_literal(kind: str, value: Any) -> str:
    if isinstance(value, bytes):
        return f"unhex('{value.hex()}')"
    if kind.startswith("decimal"):
        return f"toDecimal128('{value}', {kind[8:-1].split(',')[1]})"
    return _CHDB_LITERALS.get(kind, "{}").format(_sql_literal(str(value)[:26] if kind == "timestamptz" else value))


def as_chdb_reads(kind: IcebergType, value: Any) -> Any:
    """ClickHouse has no null lists, maps and structs, and gives times of day in seconds."""
    if isinstance(kind, TimeType) and value is not None:
        return value.replace(microsecond=0)
    if value is None and isinstance(kind, StructType):
        return {field.name: as_chdb_reads(field.field_type, None) for field in kind.fields}
    return [] if value is None and isinstance(kind, ListType | MapType) else value
