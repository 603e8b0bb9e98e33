"""A table under random changes and the model of its contents, with the draws and comparisons of the rules."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from canonical import canonical_rows
from catalogs import open_catalog
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
)
from icefield.catalog import Table
from icefield.expressions import AlwaysTrue, And, BooleanExpression, IsNull, NotNull
from icefield.scan import TableScan, read_tasks
from icefield.schema import Schema, schema_to_arrow
from icefield.types import ListType, MapType, StructType
from naive_filters import TRANSFORM_CASES, expressions, naive, to_batch, value_at
from peer_readings import PeerReadings
from random_tables import (
    POOLED,
    column_of,
    rows_of,
)
from table_model import (
    Column,
    Columns,
    Row,
    State,
    as_schema,
    changeable,
    changed,
    every,
    in_structs,
    leaves,
    line_to,
    path_of,
)
from tables import new_table

NAMES = ["a", "Größe", "with space", "_x", "b=c/d"]
FORMATS = ["parquet", "avro", "orc"]
SOAK = bool(os.environ.get("ICEFIELD_SOAK"))
PROPERTIES = {
    "commit.manifest.min-count-to-merge": ["1", "2", "100"],
    "write.metadata.metrics.default": ["none", "counts", "truncate(1)", "truncate(16)", "full"],
    "write.parquet.row-group-size-bytes": ["1", "1000000"],
    "write.parquet.row-group-check-min-record-count": ["1"],
    "write.metadata.delete-after-commit.enabled": ["false"],
}


def as_table(rows: list[dict[str, Any]], schema: Schema) -> pa.Table:
    return pa.Table.from_batches([to_batch(rows, schema)])


def pruned(value: Any, kind: Any) -> Any:
    """A value without the fields that a projection leaves out."""
    if value is None:
        return None
    match kind:
        case StructType():
            return {child.name: pruned(value[child.name], child.field_type) for child in kind.fields}
        case ListType():
            return [pruned(item, kind.element_type) for item in value]
        case MapType():
            return [(key, pruned(item, kind.value_type)) for key, item in value]
    return value


def same_value(column: Column, one: Any, other: Any) -> bool:
    """Whether an upsert leaves a value as it is: NaN is NaN, and no zero differs from the other."""
    if column.kind in ("float", "double"):
        return one == other or (one != one and other != other)
    return repr(one) == repr(other)


@dataclass(frozen=True)
class Held:
    """A table object that is not refreshed, and the rows that it must still read."""

    table: Table
    rows: list[dict[str, Any]]
    columns: Columns


class TableState(RuleBasedStateMachine):
    """A table and its model; rules are added by the classes that follow."""

    format_version = 2
    file_format = "parquet"
    folder: Path
    peers: PeerReadings
    counts: Counter[str]

    table: Table

    @initialize(data=st.data())
    def create(self, data: st.DataObject) -> None:
        self.counts["runs"] += 1
        self.named = 0
        self.freed: list[str] = []
        self.version_of_format = self.format_version
        self.states: dict[int | None, State] = {}
        self.parents: dict[int, int | None] = {}
        self.heads: dict[str, int | None] = {"main": None}
        self.tags: dict[str, int] = {}
        self.held: list[Held] = []
        self.spec: dict[str, int] = {}
        self.ever_in_spec: set[int] = set()
        self.sort: set[int] = set()
        self.identifiers: set[int] = set()
        chance = self.chance(data)
        self.columns: Columns = (
            Column("id", "int", required=chance.random() < 0.5),
            *(column_of(chance, self.format_version, self.new_name) for _ in range(chance.randint(1, 3))),
        )
        self.states[None] = State((), self.columns)
        chosen = {name: chance.choice(values) for name, values in PROPERTIES.items()}
        file_format = chance.choice(FORMATS) if self.file_format == "mixed" else self.file_format
        self.root = self.folder / str(self.counts["runs"])
        catalog = open_catalog("create", self.root)
        catalog.create_namespace("db")
        self.table = new_table(
            catalog=catalog,
            schema=as_schema(self.columns),
            properties={"format-version": str(self.format_version), "write.format.default": file_format, **chosen},
        )

    def chance(self, data: st.DataObject) -> Random:
        """Return a random generator with a drawn seed: many single draws would take Hypothesis too long."""
        return Random(data.draw(st.integers(0, 2**32 - 1)))

    def pick(self, data: st.DataObject, columns: Any) -> Column:
        return columns[data.draw(st.integers(0, len(columns) - 1))]

    def new_name(self) -> str:
        self.named += 1
        return f"{NAMES[self.named % len(NAMES)]}{self.named}"

    def new_column(self, chance: Random, parent: Column | None) -> Column:
        """Return a column to add, often under the former name of a dropped or renamed column."""
        again = bool(self.freed) and chance.random() < 0.4
        name = self.freed.pop(chance.randrange(len(self.freed))) if again else self.new_name()
        return column_of(chance, self.version_of_format, self.new_name, 2, name, new=True, top=parent is None)

    def without_defaults(self, column: Column) -> Column:
        inside = tuple(self.without_defaults(child) for child in column.children)
        return replace(column, initial=None, write=None, children=inside, required=column.required and not column.write)

    def parent_of_new(self, chance: Random) -> Column | None:
        """The struct to which a column is added, or None for the row."""
        structs = [column for column in changeable(self.columns) if column.kind == "struct"]
        return chance.choice([None, *structs])

    def with_column(self, columns: Columns, parent: Column | None, column: Column) -> Columns:
        if parent is None:
            return (*columns, column)
        struct = line_to(columns, parent.key)[-1]
        return changed(columns, parent.key, children=(*struct.children, column))

    def add_to(self, data: st.DataObject, update: Any) -> None:
        chance = self.chance(data)
        parent = self.parent_of_new(chance)
        column = self.new_column(chance, parent)
        path = (*(path_of(self.columns, parent.key) if parent else ()), column.name)
        default = None if column.initial is None else column.initial[1]
        made = as_schema((column,)).fields[0]
        update.add_column(path, made.field_type, required=column.required, default_value=default)
        self.columns = self.with_column(self.columns, parent, column)

    def rename_in(self, data: st.DataObject, update: Any) -> None:
        column, name = self.pick(data, in_structs(self.columns)), self.new_name()
        update.rename_column(path_of(self.columns, column.key), name)
        self.columns = changed(self.columns, column.key, name=name)
        self.freed.append(column.name)

    def fewer(self, chance: Random, columns: Columns) -> Columns:
        """The columns without some that a writer may leave out."""
        kept = []
        for column in columns:
            may = not column.required or column.write is not None
            if may and chance.random() < 0.3:
                continue
            inside = column.children
            if column.kind == "struct":
                inside = self.fewer(chance, inside) or inside
            kept.append(replace(column, children=inside))
        return tuple(kept) or columns

    def transform(self, data: st.DataObject, column: Column) -> str:
        pooled = POOLED.get(column.kind, column.kind)
        return data.draw(st.sampled_from([text for text, kind in TRANSFORM_CASES if kind == pooled and text != "void"]))

    def live_fields(self) -> list[Any]:
        return [field for field in self.table.spec().fields if str(field.transform) != "void"]

    def branch(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.heads, key=lambda name: name != "main")))

    def rows(self, data: st.DataObject) -> list[dict[str, Any]]:
        return rows_of(self.chance(data), self.columns)

    def filter(self, data: st.DataObject, columns: Columns) -> BooleanExpression:
        found = {name: POOLED.get(column.kind, column.kind) for name, column in leaves(columns).items()}
        made = data.draw(expressions(found, leaves=3)) if found else AlwaysTrue()
        if data.draw(st.integers(0, 3)) == 3:
            outside = [c for c in every(columns) if self.outside_of_lists(columns, c)]
            name = ".".join(path_of(columns, self.pick(data, outside).key))
            made = And(made, data.draw(st.sampled_from([IsNull(name), NotNull(name)])))
        return made

    def outside_of_lists(self, columns: Columns, column: Column) -> bool:
        return all(step.kind == "struct" for step in line_to(columns, column.key)[:-1])

    def state(self, branch: str) -> State:
        return self.states[self.heads[branch]]

    def left(self, branch: str, given: BooleanExpression) -> list[Any]:
        state = self.state(branch)
        seen = state.seen(self.columns)
        return [row for row, shown in zip(state.rows, seen, strict=True) if naive(given, shown) is not True]

    def key_of(self, keys: list[Column], row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[column.name] for column in keys)

    def rows_to_upsert(self, chance: Random, keys: list[Column], branch: str) -> tuple[list[Any], list[Any]]:
        """Return rows with distinct keys, many with the key of an existing row; and the existing rows."""
        seen = self.state(branch).seen(self.columns)
        made: dict[Any, dict[str, Any]] = {}
        for number, row in enumerate(rows_of(chance, self.columns)):
            if seen and chance.random() < 0.6:
                old = chance.choice(seen)
                row = old if chance.random() < 0.2 else {**row, **{c.name: old[c.name] for c in keys}}
            key = self.key_of(keys, row)
            made[(number,) if None in key else key] = row
        return list(made.values()), seen

    def specs_of_rows(self, branch: str) -> dict[str, list[int]]:
        """The ids of the specs of the rows' files, by the string of each row."""
        asked = {} if branch == "main" else {"ref": branch}
        found = self.table.scan(selected_fields=("*", "_spec_id"), **asked).to_arrow()
        texts = canonical_rows(found.drop_columns("_spec_id"), self.table.schema())
        specs: dict[str, list[int]] = {}
        for text, spec in zip(texts, found["_spec_id"].to_pylist(), strict=True):
            specs.setdefault(text, []).append(spec)
        return specs

    def partition_of(self, row: dict[str, Any]) -> tuple[str, ...]:
        """The partition of a row, as a tuple of strings: the two zeros differ, and all NaNs are equal."""
        schema = self.table.schema()
        return tuple(
            repr(
                field.transform.apply_value(
                    value_at(row, schema.accessor_path(field.source_id)), schema.find_field(field.source_id).field_type
                )
            )
            for field in self.live_fields()
        )

    def committed(self, branch: str, rows: list[Row], columns: dict[int, Columns] | None = None) -> None:
        """Record the rows that a branch must hold now. An empty change may make no snapshot.

        ``columns``: the columns by the ids of all schemas in a transaction; its last change of rows has one of these.
        """
        before = self.heads[branch]
        snapshot = self.table.snapshot_by_name(branch) if branch in self.table.refs() else None
        head = None if snapshot is None else snapshot.snapshot_id
        made = self.columns if columns is None or snapshot is None else columns.get(snapshot.schema_id, self.columns)
        state = State(tuple(rows), made)
        if head == before:
            old = self.state(branch).seen(self.columns)
            assert sorted(self.texts(state.seen(self.columns))) == sorted(self.texts(old))
            return
        assert head is not None
        assert columns is not None or snapshot.schema_id == self.table.schema().schema_id
        self.states[head], self.parents[head], self.heads[branch] = state, before, head

    def texts(self, rows: list[dict[str, Any]]) -> list[str]:
        schema = self.table.schema()
        return canonical_rows(as_table(rows, schema), schema)

    def version(self, data: st.DataObject) -> tuple[dict[str, Any], list[dict[str, Any]], Columns]:
        """A version to read: the arguments of its scan, its rows and its columns."""
        numbers = [number for number in self.states if number is not None]
        ways: list[tuple[dict[str, Any], int | None, bool]] = [({}, self.heads["main"], True)]
        ways += [({"ref": name}, number, True) for name, number in self.heads.items()]
        ways += [({"ref": name}, number, False) for name, number in self.tags.items()]
        ways += [({"snapshot_id": number}, number, False) for number in numbers]
        asked, number, current = data.draw(st.sampled_from(ways))
        columns = self.columns if current else self.states[number].columns
        return asked, self.states[number].seen(columns), columns

    def read_in_pieces(self, scan: TableScan) -> pa.Table:
        small = replace(scan, options={"split-size": "1"})
        tasks = [task for group in small.plan_tasks() for task in group]
        return pa.Table.from_batches(read_tasks(tasks, small.context), schema_to_arrow(small.projection))

    def same(self, found: pa.Table, wanted: list[dict[str, Any]], projection: Schema) -> None:
        self.counts["scans"] += 1
        kind = projection.as_struct()
        expected = as_table([pruned(row, kind) for row in wanted], projection)
        there, modelled = (Counter(canonical_rows(rows, projection)) for rows in (found, expected))
        assert there == modelled, f"only in the table: {there - modelled}; only in the model: {modelled - there}"
