"""Chains of random changes of nested schemas over files of all formats, compared with a naive model of the rows."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from canonical import canonical_rows
from foreign_files import FORMATS
from format_strategies import numbered
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icefield.catalog import Table
from icefield.scan import TableScan, read_tasks
from icefield.schema import Schema, schema_to_arrow
from icefield.types import IcebergType, ListType, MapType, NestedField, StructType, parse_type
from tables import memory_catalog, new_table

SOAK = bool(os.environ.get("ICEFIELD_SOAK"))
PROMOTIONS = {"int": "long", "float": "double", "decimal(9,2)": "decimal(25,2)"}
PROMOTIONS_OF_3 = {**PROMOTIONS, "date": "timestamp"}
POOLS: dict[str, list[Any]] = {
    "int": [0, -1, 5, 2**31 - 1, -(2**31)],
    "long": [0, 7, 2**62, -(2**62)],
    "float": [0.5, -1.5, 0.0],
    "double": [0.1, -1e300],
    "decimal(9,2)": [Decimal("0.01"), Decimal("-1234567.89")],
    "decimal(25,2)": [Decimal("0.00"), Decimal("12345678901234567890123.45")],
    "date": [dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    "timestamp": [dt.datetime(1969, 12, 31, 23, 59, 58, 999_999), dt.datetime(2024, 2, 29, 1)],
    "string": ["", "a", "ü"],
    "boolean": [True, False],
}
KEYS = ["string", "int", "date"]
Path = tuple[str, ...]


def kinds(depth: int) -> st.SearchStrategy[IcebergType]:
    """Types of some depth, before field ids are assigned."""
    leaf = st.sampled_from([*PROMOTIONS, "date", "string", "boolean"]).map(parse_type)
    if not depth:
        return leaf
    inner = kinds(depth - 1)
    fields = st.lists(st.tuples(inner, st.integers(0, 3)), min_size=1, max_size=3)
    structs = fields.map(
        lambda made: StructType(*(NestedField(0, f"f{at}", kind, odds == 0) for at, (kind, odds) in enumerate(made)))
    )
    lists = st.builds(ListType, st.just(0), inner, st.booleans())
    keys = st.sampled_from(KEYS).map(parse_type)
    return leaf | structs | lists | st.builds(MapType, st.just(0), keys, st.just(0), inner, st.booleans())


def values(kind: IcebergType, required: bool) -> st.SearchStrategy[Any]:
    """Values of a type as Arrow takes them."""
    match kind:
        case StructType():
            made: Any = st.fixed_dictionaries({f.name: values(f.field_type, f.required) for f in kind.fields})
        case ListType():
            made = st.lists(values(kind.element_type, kind.element_required), max_size=3)
        case MapType():
            entries = st.dictionaries(
                values(kind.key_type, True), values(kind.value_type, kind.value_required), max_size=2
            )
            made = entries.map(lambda held: list(held.items()))
        case _:
            made = st.sampled_from(POOLS[str(kind)])
    return made if required else st.none() | made


def keyed(value: Any, kind: IcebergType) -> Any:
    """A value with field ids in place of names, which no later change of the schema can affect."""
    if value is None:
        return None
    match kind:
        case StructType():
            return {f.field_id: keyed(value[f.name], f.field_type) for f in kind.fields}
        case ListType():
            return [keyed(item, kind.element_type) for item in value]
        case MapType():
            return [(keyed(key, kind.key_type), keyed(item, kind.value_type)) for key, item in value]
    return value


def seen(value: Any, kind: IcebergType, defaults: dict[int, Any]) -> Any:
    """The value that a reader returns for such a value under a later type."""
    if value is None:
        return None
    match kind:
        case StructType():
            return {
                f.name: seen(value[f.field_id], f.field_type, defaults) if f.field_id in value
                else defaults.get(f.field_id)
                for f in kind.fields
            }  # fmt: skip
        case ListType():
            return [seen(item, kind.element_type, defaults) for item in value]
        case MapType():
            return [(seen(key, kind.key_type, {}), seen(item, kind.value_type, defaults)) for key, item in value]
    if str(kind) == "timestamp" and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value


def structs(kind: IcebergType, path: Path = ()) -> Iterator[tuple[Path, StructType]]:
    """The structs of a type that may change, with their paths: those inside keys never do."""
    match kind:
        case StructType():
            yield path, kind
            for field in kind.fields:
                yield from structs(field.field_type, (*path, field.name))
        case ListType():
            yield from structs(kind.element_type, (*path, "element"))
        case MapType():
            yield from structs(kind.value_type, (*path, "value"))


def leaves(kind: IcebergType, path: Path = ()) -> Iterator[tuple[Path, IcebergType]]:
    """The types without parts that may change."""
    match kind:
        case StructType():
            for field in kind.fields:
                yield from leaves(field.field_type, (*path, field.name))
        case ListType():
            yield from leaves(kind.element_type, (*path, "element"))
        case MapType():
            yield from leaves(kind.value_type, (*path, "value"))
        case _:
            yield path, kind


class Chain:
    """A table and its model."""

    def __init__(self, data: st.DataObject, version: int) -> None:
        self.draw = data.draw
        self.promotions = PROMOTIONS_OF_3 if version == 3 else PROMOTIONS
        self.version = version
        self.names = count()
        self.rows: list[Any] = []
        self.defaults: dict[int, Any] = {}
        columns = self.draw(st.lists(st.tuples(kinds(2), st.booleans()), min_size=1, max_size=3))
        fields = (NestedField(0, f"c{at}", kind, required) for at, (kind, required) in enumerate(columns))
        struct = numbered(StructType(NestedField(0, "id", "int"), *fields), count(1).__next__)
        properties = {"format-version": str(version)}
        self.table: Table = new_table(catalog=memory_catalog(), schema=Schema(*struct.fields), properties=properties)

    @property
    def kind(self) -> StructType:
        return self.table.schema().as_struct()

    def append(self, file_format: str) -> None:
        with self.table.transaction() as change:
            change.set_properties({"write.format.default": file_format})
        rows = self.draw(st.lists(values(self.kind, True), min_size=1, max_size=4))
        self.table.append(pa.Table.from_pylist(rows, schema=schema_to_arrow(self.table.schema())))
        self.rows += [keyed(row, self.kind) for row in rows]

    def change(self) -> None:
        change = self.draw(st.sampled_from([self.rename, self.drop, self.add, self.promote, self.move, self.relax]))
        change()

    def field(self) -> tuple[Path, StructType, NestedField]:
        path, struct = self.draw(st.sampled_from(list(structs(self.kind))))
        return path, struct, self.draw(st.sampled_from(struct.fields))

    def rename(self) -> None:
        path, _, field = self.field()
        with self.table.update_schema() as update:
            update.rename_column((*path, field.name), f"n{next(self.names)}")

    def drop(self) -> None:
        path, struct, field = self.field()
        if len(struct.fields) > 1:
            with self.table.update_schema() as update:
                update.delete_column((*path, field.name))

    def add(self) -> None:
        """Add a field, often under a name that was in use before."""
        path, struct, _ = self.field()
        name = self.draw(st.sampled_from(["f0", "f1", "c0", "id"]))
        if any(field.name == name for field in struct.fields):
            return
        kind = self.draw(kinds(1))
        default = None
        if self.version == 3 and str(kind) in POOLS:
            default = self.draw(st.none() | st.sampled_from(POOLS[str(kind)]))
        before = self.table.metadata.last_column_id
        with self.table.update_schema() as update:
            update.add_column((*path, name), numbered(kind, count(1).__next__), default_value=default)
        added = self.table.schema().find_field((*path, name)) if path else self.table.schema().find_field(name)
        assert added.field_id > before
        self.defaults[added.field_id] = default

    def promote(self) -> None:
        found = [(path, kind) for path, kind in leaves(self.kind) if str(kind) in self.promotions]
        if found:
            path, kind = self.draw(st.sampled_from(found))
            with self.table.update_schema() as update:
                update.update_column(path, self.promotions[str(kind)])
            field = self.table.schema().find_field(path)
            default = self.defaults.get(field.field_id)
            self.defaults[field.field_id] = seen(default, field.field_type, {})

    def move(self) -> None:
        path, _, field = self.field()
        with self.table.update_schema() as update:
            update.move_first((*path, field.name))

    def relax(self) -> None:
        path, _, field = self.field()
        with self.table.update_schema() as update:
            update.make_column_optional((*path, field.name))

    def check(self) -> None:
        schema = self.table.schema()
        expected = [seen(row, self.kind, self.defaults) for row in self.rows]
        self.same(self.table.scan(), expected)
        pieces = replace(self.table.scan(), options={"split-size": "1"})
        tasks = [task for group in pieces.plan_tasks() for task in group]
        found = pa.Table.from_batches(read_tasks(tasks, pieces.context), schema_to_arrow(schema))
        assert self.texts(found, schema) == self.texts(self.arrow(expected, schema), schema)
        for path, kind in leaves(self.kind):
            if "element" not in path and "value" not in path:
                self.check_filters(path, str(kind), expected)

    def check_filters(self, path: Path, kind: str, expected: list[Any]) -> None:
        def held(row: Any) -> Any:
            for name in path:
                row = None if row is None else row[name]
            return row

        name = ".".join(path)
        self.same(self.table.scan(f"{name} is null"), [row for row in expected if held(row) is None])
        value = self.draw(st.sampled_from(POOLS[kind]))
        shown = f"'{value.isoformat() if isinstance(value, dt.date) else value}'" if kind in QUOTED else str(value)
        matching = [row for row in expected if held(row) is not None and held(row) == value]
        self.same(self.table.scan(f"{name} = {shown}"), matching)
        if kind != "boolean":
            smaller = [row for row in expected if held(row) is not None and held(row) < value]
            self.same(self.table.scan(f"{name} < {shown}"), smaller)

    def same(self, scan: TableScan, expected: list[Any]) -> None:
        schema = self.table.schema()
        assert self.texts(scan.to_arrow(), schema) == self.texts(self.arrow(expected, schema), schema)

    def arrow(self, rows: list[Any], schema: Schema) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=schema_to_arrow(schema))

    def texts(self, table: pa.Table, schema: Schema) -> list[str]:
        return sorted(canonical_rows(table.combine_chunks(), schema))


QUOTED = {"date", "timestamp", "string"}


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("PRJ-01", "PRJ-03", "PRJ-16", "SCH-03", "SCH-06", "SCH-07", "SCH-09", "SCH-10", "SCH-11", "SCH-12",
                  "TYP-29", "DEF-02", "DEF-08")  # fmt: skip
@settings(
    max_examples=1_000 if SOAK else 30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(data=st.data())
def test_rows_of_any_format_go_through_any_chain_of_changes(version, data):
    chain = Chain(data, version)
    for _ in range(data.draw(st.integers(1, 4))):
        chain.append(data.draw(st.sampled_from(FORMATS)))
        for _ in range(data.draw(st.integers(1, 4))):
            chain.change()
    chain.check()


@pytest.mark.slow
@pytest.mark.spec("PRJ-01", "TYP-29")
@settings(max_examples=500 if SOAK else 15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_same_rows_in_each_format_stay_the_same(data):
    chain = Chain(data, 3)
    for file_format in FORMATS:
        with chain.table.transaction() as change:
            change.set_properties({"write.format.default": file_format})
        if file_format == FORMATS[0]:
            rows = data.draw(st.lists(values(chain.kind, True), min_size=1, max_size=4))
        chain.table.append(pa.Table.from_pylist(rows, schema=schema_to_arrow(chain.table.schema())))
    for _ in range(data.draw(st.integers(1, 5))):
        chain.change()
    schema = chain.table.schema()
    found = []
    for task in chain.table.scan().plan_files():
        batches = read_tasks([task], chain.table.scan().context)
        found.append(chain.texts(pa.Table.from_batches(batches, schema_to_arrow(schema)), schema))
    assert len(found) == 3
    assert found[0] == found[1] == found[2]
