"""Tables under random changes, beside a naive model of what they hold: every version, read in every way."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import pyarrow as pa
import pytest
from canonical import canonical_rows
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from icefield.errors import InvalidSchema
from icefield.expressions import BooleanExpression
from icefield.scan import TableScan, read_tasks
from icefield.schema import Schema
from icefield.schema_arrow import schema_to_arrow
from icefield.table import Table
from icefield.types import ListType, NestedField, StructType, parse_type
from naive_filters import TRANSFORM_CASES, expressions, naive, one_of, to_batch
from table_model import (
    LIST,
    PROMOTIONS,
    PROMOTIONS_OF_V3,
    Column,
    Columns,
    State,
    changed,
    every,
    kept,
    leaves,
    path_of,
    rows_of,
    without,
)
from tables import again, memory_catalog, new_table

KINDS = ["boolean", "int", "long", "float", "double", "decimal(9,2)", "date", "time", "timestamp", "timestamptz"]
KINDS += ["string", "uuid", "fixed[3]", "binary"]
NAMES = ["a", "Größe", "with space", "_x", "b=c/d"]
SOAK = bool(os.environ.get("ICEFIELD_SOAK"))
PROPERTIES = {
    "commit.manifest.min-count-to-merge": ["1", "2", "100"],
    "write.metadata.metrics.default": ["none", "counts", "truncate(1)", "truncate(16)", "full"],
    "write.parquet.row-group-size-bytes": ["1", "1000000"],
    "write.parquet.row-group-check-min-record-count": ["1"],
    "write.metadata.delete-after-commit.enabled": ["false"],
}


def has_json_form(value: Any) -> bool:
    """Whether a value can be a default: metadata cannot say infinity, nor that something is not a number."""
    return not isinstance(value, float) or isfinite(value)


def of_type(column: Column) -> Any:
    """The column's type as an object."""
    if column.children:
        fields = [NestedField(i, child.name, of_type(child)) for i, child in enumerate(column.children, 1000)]
        return StructType(*fields)
    return ListType(2000, "int") if column.kind == LIST else parse_type(column.kind)


def as_table(rows: list[dict[str, Any]], schema: Schema) -> pa.Table:
    return pa.Table.from_batches([to_batch(rows, schema)])


def pruned(value: Any, kind: Any) -> Any:
    """A value without the fields that a projection leaves out."""
    if value is None or not isinstance(kind, StructType):
        return value
    return {child.name: pruned(value[child.name], child.field_type) for child in kind.fields}


@dataclass(frozen=True)
class Held:
    """A holder of the table that does not refresh, and what it must go on reading."""

    table: Table
    rows: list[dict[str, Any]]


class TableMachine(RuleBasedStateMachine):
    """Each rule changes the table and the model alike; ``scan`` compares."""

    format_version = 2
    file_format = "parquet"

    table: Table

    @initialize(data=st.data())
    def create(self, data: st.DataObject) -> None:
        self.named = 0
        self.states: dict[int | None, State] = {}
        self.parents: dict[int, int | None] = {}
        self.heads: dict[str, int | None] = {"main": None}
        self.tags: dict[str, int] = {}
        self.held: list[Held] = []
        self.spec: dict[str, int] = {}
        self.ever_in_spec: set[int] = set()
        struct = Column("s", "struct", (self.new_column(data), self.new_column(data)))
        self.columns: Columns = (Column("id", "int"), struct, self.new_column(data), Column("l", LIST))
        self.states[None] = State((), self.columns)
        chosen = {name: data.draw(st.sampled_from(values), label=name) for name, values in PROPERTIES.items()}
        schema = Schema(*(NestedField(10 + i, c.name, of_type(c)) for i, c in enumerate(self.columns)))
        self.table = new_table(
            catalog=memory_catalog(),
            schema=schema,
            properties={"format-version": str(self.format_version), "write.format.default": self.file_format, **chosen},
        )

    # -- rows ---------------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        branch, rows = self.branch(data), self.rows(data)
        self.table.append(as_table(rows, self.table.schema()), branch=branch)
        self.committed(branch, [*self.state(branch).rows, *kept(self.columns, rows)])

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        branch, given = self.branch(data), self.filter(data, self.columns)
        self.table.delete(given, branch=branch)
        self.committed(branch, self.left(branch, given))

    @rule(data=st.data())
    def overwrite(self, data: st.DataObject) -> None:
        branch, given, rows = self.branch(data), self.filter(data, self.columns), self.rows(data)
        self.table.overwrite(as_table(rows, self.table.schema()), given, branch=branch)
        self.committed(branch, [*self.left(branch, given), *kept(self.columns, rows)])

    @rule(data=st.data())
    def several_changes_in_one(self, data: st.DataObject) -> None:
        given, column = self.filter(data, self.columns), self.new_column(data)
        with self.table.transaction() as tx:
            with tx.update_schema() as update:
                update.add_column(column.name, of_type(column))
            tx.delete(given)
            left = self.left("main", given)
            self.columns = (*self.columns, column)
            rows = self.rows(data)
            tx.append(as_table(rows, tx.shape.schema()))
        self.committed("main", [*left, *kept(self.columns, rows)])

    # -- columns ------------------------------------------------------------------------------------------------------

    @rule(data=st.data(), nested=st.booleans())
    def add_column(self, data: st.DataObject, nested: bool) -> None:
        column = self.new_column(data, default=self.format_version >= 3 and data.draw(st.booleans()))
        structs = [c for c in self.columns if c.children]
        default = None if column.default is None else column.default[1]
        if nested and structs:
            struct = data.draw(st.sampled_from(structs))
            path: Any = (struct.name, column.name)
            self.columns = changed(self.columns, struct.key, children=(*struct.children, column))
        else:
            path, self.columns = (column.name,), (*self.columns, column)
        with self.table.update_schema() as update:
            update.add_column(path, of_type(column), default_value=default)

    @rule(data=st.data())
    def rename_column(self, data: st.DataObject) -> None:
        column, name = data.draw(st.sampled_from(every(self.columns))), self.new_name(data)
        with self.table.update_schema() as update:
            update.rename_column(path_of(self.columns, column.key), name)
        self.columns = changed(self.columns, column.key, name=name)

    @rule(data=st.data())
    def delete_column(self, data: st.DataObject) -> None:
        only = {c.children[0].key for c in self.columns if len(c.children) == 1}
        may = [c for c in every(self.columns) if c.key not in only and c.name != "id"]
        if len(self.columns) < 3 or not may:
            return
        column = data.draw(st.sampled_from(may))
        try:
            with self.table.update_schema() as update:
                update.delete_column(path_of(self.columns, column.key))
        except InvalidSchema:
            assert self.ever_in_spec.intersection(inner.key for inner in column.walk())
        else:
            self.columns = without(self.columns, column.key)

    @rule(data=st.data())
    def promote_column(self, data: st.DataObject) -> None:
        wider = PROMOTIONS_OF_V3 if self.format_version >= 3 else PROMOTIONS
        may = [column for column in every(self.columns) if column.kind in wider]
        if not may:
            return
        column = data.draw(st.sampled_from(may))
        kind = wider[column.kind]
        try:
            with self.table.update_schema() as update:
                update.update_column(path_of(self.columns, column.key), parse_type(kind))
        except InvalidSchema:
            assert column.kind == "date"
            assert column.key in self.ever_in_spec
        else:
            self.columns = changed(self.columns, column.key, kind=kind)

    @rule(data=st.data())
    def move_column(self, data: st.DataObject) -> None:
        column = data.draw(st.sampled_from(self.columns))
        with self.table.update_schema() as update:
            update.move_first((column.name,))
        self.columns = (column, *(other for other in self.columns if other is not column))

    # -- partitions ---------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def add_partition_field(self, data: st.DataObject) -> None:
        column = data.draw(st.sampled_from([c for c in every(self.columns) if not c.children and c.kind != LIST]))
        pooled = leaves((column,))[column.name]
        transforms = [text for text, kind in TRANSFORM_CASES if kind == pooled and text != "void"]
        self.named += 1
        name = f"p{self.named}"
        before = self.table.metadata
        try:
            with self.table.update_spec() as update:
                update.add_field(path_of(self.columns, column.key), data.draw(st.sampled_from(transforms)), name)
        except InvalidSchema:
            assert self.table.metadata is before
            assert column.key in self.ever_in_spec
        else:
            self.ever_in_spec.add(column.key)

    @precondition(lambda self: any(str(f.transform) != "void" for f in self.table.spec().fields))
    @rule(data=st.data())
    def remove_partition_field(self, data: st.DataObject) -> None:
        names = [field.name for field in self.table.spec().fields if str(field.transform) != "void"]
        with self.table.update_spec() as update:
            update.remove_field(data.draw(st.sampled_from(names)))

    # -- versions -----------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.heads["main"] is not None)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        line = [self.heads["main"]]
        while (parent := self.parents[line[-1]]) is not None:
            line.append(parent)
        target = data.draw(st.sampled_from(line))
        self.table.manage_snapshots().rollback_to_snapshot(target).commit()
        self.heads["main"] = target

    @precondition(lambda self: len(self.states) > 1)
    @rule(data=st.data())
    def name_a_snapshot(self, data: st.DataObject) -> None:
        target = data.draw(st.sampled_from([number for number in self.states if number is not None]))
        self.named += 1
        if data.draw(st.booleans()):
            self.table.manage_snapshots().create_branch(target, f"b{self.named}").commit()
            self.heads[f"b{self.named}"] = target
        else:
            self.table.manage_snapshots().create_tag(target, f"t{self.named}").commit()
            self.tags[f"t{self.named}"] = target

    @rule()
    def hold(self) -> None:
        self.held.append(Held(again(self.table), self.state("main").seen(self.columns)))

    # -- comparing ----------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def scan(self, data: st.DataObject) -> None:
        version, rows, columns = self.version(data)
        given = self.filter(data, columns)
        names = tuple(data.draw(st.lists(st.sampled_from(sorted({*leaves(columns), *(c.name for c in columns)})))))
        scan = self.table.scan(given, selected_fields=names or ("*",), **version)
        wanted = [row for row in rows if naive(given, row) is True]
        self.same(scan.to_arrow(), wanted, scan.projection)
        assert scan.count() == len(wanted)
        limit = data.draw(st.integers(0, 3))
        assert self.table.scan(given, limit=limit, **version).to_arrow().num_rows == min(limit, len(wanted))
        assert self.table.scan(given, limit=limit, **version).count() == min(limit, len(wanted))
        self.same(self.read_in_pieces(scan), wanted, scan.projection)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def read_what_was_held(self, data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(self.held))
        self.same(held.table.scan().to_arrow(), held.rows, held.table.schema())

    @invariant()
    def the_columns_are_those_of_the_model(self) -> None:
        def shown(columns: Columns) -> list[Any]:
            return [(c.name, shown(c.children) if c.children else c.kind) for c in columns]

        def told(fields: Any) -> list[Any]:
            return [
                (
                    f.name,
                    told(f.field_type.fields)
                    if isinstance(f.field_type, StructType)
                    else str(f.field_type).replace(" ", ""),
                )
                for f in fields
            ]

        assert told(self.table.schema().fields) == shown(self.columns)

    def teardown(self) -> None:
        if not hasattr(self, "table"):
            return
        for number, state in self.states.items():
            if number is not None:
                scan = self.table.scan(snapshot_id=number)
                self.same(scan.to_arrow(), state.seen(), scan.projection)

    # -- helpers ------------------------------------------------------------------------------------------------------

    def new_name(self, data: st.DataObject) -> str:
        self.named += 1
        return f"{data.draw(st.sampled_from(NAMES))}{self.named}"

    def new_column(self, data: st.DataObject, default: bool = False) -> Column:
        kind = data.draw(st.sampled_from(KINDS))
        value = (kind, data.draw(one_of(kind).filter(has_json_form))) if default else None
        return Column(self.new_name(data), kind, default=value)

    def branch(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.heads, key=lambda name: name != "main")))

    def rows(self, data: st.DataObject) -> list[dict[str, Any]]:
        return data.draw(rows_of(self.columns))

    def filter(self, data: st.DataObject, columns: Columns) -> BooleanExpression:
        return data.draw(expressions(leaves(columns), leaves=3))

    def state(self, branch: str) -> State:
        return self.states[self.heads[branch]]

    def left(self, branch: str, given: BooleanExpression) -> list[Any]:
        state = self.state(branch)
        seen = state.seen(self.columns)
        return [row for row, shown in zip(state.rows, seen, strict=True) if naive(given, shown) is not True]

    def committed(self, branch: str, rows: list[Any]) -> None:
        """Take over what a branch must hold now. A change of nothing may leave it where it was."""
        before = self.heads[branch]
        snapshot = self.table.snapshot_by_name(branch) if branch in self.table.refs() else None
        head = None if snapshot is None else snapshot.snapshot_id
        state = State(tuple(rows), self.columns)
        if head == before:
            old = self.state(branch).seen(self.columns)
            assert self.texts(state.seen()) == self.texts(old)
            return
        assert head is not None
        self.states[head], self.parents[head], self.heads[branch] = state, before, head

    def texts(self, rows: list[dict[str, Any]]) -> list[str]:
        schema = self.table.schema()
        return sorted(canonical_rows(as_table(rows, schema), schema))

    def version(self, data: st.DataObject) -> tuple[dict[str, Any], list[dict[str, Any]], Columns]:
        """A version to read: how it is asked for, its rows and its columns."""
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
        kind = projection.as_struct()
        expected = as_table([pruned(row, kind) for row in wanted], projection)
        assert sorted(canonical_rows(found, projection)) == sorted(canonical_rows(expected, projection))


@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
@pytest.mark.parametrize("format_version", [1, 2, 3])
@pytest.mark.spec("SCAN-43", "SCAN-60", "META-26", "SCH-30", "SCAN-62", "SCAN-63", "SCH-03", "PART-07", "COMMIT-10")
def test_any_changes_leave_the_rows_that_a_naive_model_has(format_version, file_format):
    machine = type("Machine", (TableMachine,), {"format_version": format_version, "file_format": file_format})
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    examples, steps = (300, 50) if SOAK else (12, 25)
    # To shrink a run of many steps takes minutes; `make soak` has them.
    phases = [phase for phase in Phase if SOAK or phase is not Phase.shrink]
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=phases,
        deadline=None,
        suppress_health_check=checks,
    )
    run_state_machine_as_test(machine, settings=chosen)
