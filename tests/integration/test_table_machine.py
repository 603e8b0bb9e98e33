"""Tables under random changes, beside a naive model of what they hold: every version, read in every way.

Columns are random and nested. What the model says is compared with what the table gives, and, where they can read the
table, with what DuckDB and PyIceberg give. A failure prints the steps, and what Hypothesis needs to run them again.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from canonical import canonical_rows
from catalogs import open_catalog
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
from icefield.catalog import Table
from icefield.errors import InvalidSchema
from icefield.expressions import AlwaysTrue, And, BooleanExpression, IsNull, NotNull
from icefield.scan import TableScan, read_tasks
from icefield.schema import Schema, schema_to_arrow
from icefield.types import ListType, MapType, StructType, parse_type
from naive_filters import TRANSFORM_CASES, expressions, naive, to_batch, value_at
from peer_readings import PeerReadings
from random_tables import (
    POOLED,
    PROMOTIONS,
    PROMOTIONS_OF_V3,
    column_of,
    default_of,
    rows_of,
)
from table_model import (
    NESTED,
    Column,
    Columns,
    Row,
    State,
    arranged,
    as_schema,
    changeable,
    changed,
    every,
    in_structs,
    kept,
    kept_row,
    leaves,
    line_to,
    path_of,
    seen_row,
    shape_of,
    shapes,
    siblings_of,
    without,
)
from tables import again, new_table

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
    """A holder of the table that does not refresh, and what it must go on reading."""

    table: Table
    rows: list[dict[str, Any]]
    columns: Columns


class TableMachine(RuleBasedStateMachine):
    """Each rule changes the table and the model alike; ``scan`` compares."""

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

    # -- rows ---------------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        branch, rows = self.branch(data), self.rows(data)
        self.table.append(as_table(rows, self.table.schema()), branch=branch)
        self.committed(branch, [*self.state(branch).rows, *kept(self.columns, rows)])

    @rule(data=st.data())
    def append_without_some_columns(self, data: st.DataObject) -> None:
        """What is not given is null or the column's write default, in structs too."""
        chance = self.chance(data)
        less = self.fewer(chance, self.columns)
        rows = rows_of(chance, less)
        self.table.append(as_table(rows, as_schema(less, defaults=False)))
        self.committed("main", [*self.state("main").rows, *kept(self.columns, rows)])

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
    def overwrite_partitions(self, data: st.DataObject) -> None:
        branch, rows = self.branch(data), self.rows(data)
        specs = self.specs_of_rows(branch)
        current, state = self.table.spec(), self.state(branch)
        new = {self.partition_of(row) for row in rows}
        left = []
        for row in state.rows:
            seen = seen_row(row, self.columns)
            same_spec = specs[self.texts([seen])[0]].pop() == current.spec_id
            gone = bool(rows) if current.is_unpartitioned else same_spec and self.partition_of(seen) in new
            left += [] if gone else [row]
        self.table.dynamic_partition_overwrite(as_table(rows, self.table.schema()), branch=branch)
        self.committed(branch, [*left, *kept(self.columns, rows)])

    @rule(data=st.data(), update=st.booleans(), insert=st.booleans())
    def upsert(self, data: st.DataObject, update: bool, insert: bool) -> None:
        branch, chance = self.branch(data), self.chance(data)
        insert = insert or not update
        usable = [c for c in self.columns if c.kind not in (*NESTED, "float", "double", "unknown", "variant")]
        if not usable:
            return
        top = {c.key for c in self.columns}
        by_identifier = bool(self.identifiers) and self.identifiers <= top and chance.random() < 0.7
        keys = [c for c in usable if c.key in self.identifiers] if by_identifier else chance.sample(usable, 1)
        rows, seen = self.rows_to_upsert(chance, keys, branch)
        given = {self.key_of(keys, row): row for row in rows if None not in self.key_of(keys, row)}
        met, result = set(), []
        for row, shown in zip(self.state(branch).rows, seen, strict=True):
            new = given.get(self.key_of(keys, shown))
            met.add(self.key_of(keys, shown))
            differs = new and any(not same_value(c, new[c.name], shown[c.name]) for c in self.columns)
            result.append(kept_row(self.columns, new) if new and differs and update else row)
        if insert:
            met = {key for key in met if None not in key}
            result += [kept_row(self.columns, row) for row in rows if self.key_of(keys, row) not in met]
        names = None if by_identifier else [column.name for column in keys]
        self.table.upsert(as_table(rows, self.table.schema()), names, update, insert, branch=branch)
        self.committed(branch, result)

    @rule(
        data=st.data(),
        steps=st.lists(st.sampled_from(["add", "rename", "delete", "append", "overwrite"]), min_size=2, max_size=5),
    )
    def several_changes_in_one(self, data: st.DataObject, steps: list[str]) -> None:
        rows = list(self.state("main").rows)
        columns = {self.table.schema().schema_id: self.columns}
        with self.table.transaction() as tx:
            for step in steps:
                if step in ("add", "rename"):
                    with tx.update_schema() as update:
                        (self.add_to if step == "add" else self.rename_in)(data, update)
                    columns[tx.shape.current_schema_id] = self.columns
                if step in ("delete", "overwrite"):
                    given = self.filter(data, self.columns)
                    rows = [row for row in rows if naive(given, seen_row(row, self.columns)) is not True]
                if step in ("append", "overwrite"):
                    new = self.rows(data)
                    rows += kept(self.columns, new)
                    table = as_table(new, tx.shape.schema())
                if step == "delete":
                    tx.delete(given)
                elif step == "append":
                    tx.append(table)
                elif step == "overwrite":
                    tx.overwrite(table, given)
        self.committed("main", rows, columns)

    # -- columns ------------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def add_column(self, data: st.DataObject) -> None:
        with self.table.update_schema() as update:
            self.add_to(data, update)

    @rule(data=st.data())
    def rename_column(self, data: st.DataObject) -> None:
        with self.table.update_schema() as update:
            self.rename_in(data, update)

    @rule(data=st.data())
    def delete_column(self, data: st.DataObject) -> None:
        may = [c for c in in_structs(self.columns) if len(siblings_of(self.columns, c.key)) > 1]
        known = [c for c in self.columns if c.kind != "unknown"]
        if len(known) < 3:
            may = [c for c in may if c not in known]
        if not may:
            return
        column = self.pick(data, may)
        used = {*self.spec.values(), *self.sort, *self.identifiers}.intersection(c.key for c in column.walk())
        try:
            with self.table.update_schema() as update:
                update.delete_column(path_of(self.columns, column.key))
        except InvalidSchema:
            assert used
        else:
            assert not used
            self.columns = without(self.columns, column.key)
            self.freed.append(column.name)

    @rule(data=st.data())
    def promote_column(self, data: st.DataObject) -> None:
        wider = PROMOTIONS_OF_V3 if self.version_of_format >= 3 else PROMOTIONS
        may = [column for column in changeable(self.columns) if column.kind in wider]
        if not may:
            return
        column = self.pick(data, may)
        kind = data.draw(st.sampled_from(wider[column.kind]))
        refused = column.kind == "date" and column.key in self.ever_in_spec
        try:
            with self.table.update_schema() as update:
                update.update_column(path_of(self.columns, column.key), parse_type(kind))
        except InvalidSchema:
            assert refused
        else:
            assert not refused
            self.columns = changed(self.columns, column.key, kind=kind)

    @rule(data=st.data())
    def make_column_optional(self, data: st.DataObject) -> None:
        may = [column for column in changeable(self.columns) if column.required]
        if not may:
            return
        column = self.pick(data, may)
        refused = self.identifiers.intersection(inner.key for inner in column.walk())
        try:
            with self.table.update_schema() as update:
                update.make_column_optional(path_of(self.columns, column.key))
        except InvalidSchema:
            assert refused
        else:
            assert not refused
            self.columns = changed(self.columns, column.key, required=False)

    @rule(data=st.data(), way=st.sampled_from(["first", "before", "after"]))
    def move_column(self, data: st.DataObject, way: str) -> None:
        column = self.pick(data, in_structs(self.columns))
        path = path_of(self.columns, column.key)
        others = [c for c in siblings_of(self.columns, column.key) if c.key != column.key]
        if not others:
            return
        other = self.pick(data, others)
        with self.table.update_schema() as update:
            if way == "first":
                update.move_first(path)
            else:
                move = update.move_before if way == "before" else update.move_after
                move(path, (*path[:-1], other.name))
        at = 0 if way == "first" else others.index(other) + (way == "after")
        self.columns = arranged(self.columns, (*others[:at], column, *others[at:]))

    @precondition(lambda self: self.version_of_format >= 3)
    @rule(data=st.data())
    def set_default(self, data: st.DataObject) -> None:
        may = [c for c in in_structs(self.columns) if c.kind not in (*NESTED, "unknown", "variant")]
        if not may:
            return
        column = self.pick(data, may)
        value = default_of(self.chance(data), column.kind)
        with self.table.update_schema() as update:
            update.set_default_value(path_of(self.columns, column.key), value)
        self.columns = changed(self.columns, column.key, write=(column.kind, value))

    @rule(data=st.data())
    def union_by_name(self, data: st.DataObject) -> None:
        """Another schema with one more column somewhere, and wider types."""
        chance = self.chance(data)
        after = self.columns
        for column in changeable(self.columns):
            if column.kind in PROMOTIONS and chance.random() < 0.3:
                after = changed(after, column.key, kind=PROMOTIONS[column.kind][0])
        parent = self.parent_of_new(chance)
        column = self.without_defaults(self.new_column(chance, parent))
        after = self.with_column(after, parent, column)
        with self.table.update_schema() as update:
            update.union_by_name(as_schema(after, defaults=False))
        self.columns = after

    @rule(data=st.data())
    def set_identifier_fields(self, data: st.DataObject) -> None:
        may = [
            column
            for column in leaves(self.columns).values()
            if column.kind not in ("float", "double")
            and all(step.required for step in line_to(self.columns, column.key))
        ]
        chosen = self.chance(data).sample(may, min(len(may), data.draw(st.integers(0, 2))))
        with self.table.update_schema() as update:
            update.set_identifier_fields(*(path_of(self.columns, column.key) for column in chosen))
        self.identifiers = {column.key for column in chosen}

    # -- partitions, order, properties --------------------------------------------------------------------------------

    @rule(data=st.data())
    def add_partition_field(self, data: st.DataObject) -> None:
        may = list(leaves(self.columns).values())
        if not may:
            return
        column = self.pick(data, may)
        self.named += 1
        name = f"p{self.named}"
        before = self.table.metadata
        try:
            with self.table.update_spec() as update:
                update.add_field(path_of(self.columns, column.key), self.transform(data, column), name)
        except InvalidSchema:
            assert self.table.metadata is before
            assert column.key in self.ever_in_spec
        else:
            self.ever_in_spec.add(column.key)
            (new,) = {field.name for field in self.live_fields()} - set(self.spec)
            self.spec[new] = column.key

    @precondition(lambda self: self.spec)
    @rule(data=st.data())
    def remove_partition_field(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.spec)))
        with self.table.update_spec() as update:
            update.remove_field(name)
        del self.spec[name]

    @rule(data=st.data())
    def sort_by(self, data: st.DataObject) -> None:
        may = list(leaves(self.columns).values())
        chosen = self.chance(data).sample(may, min(len(may), data.draw(st.integers(0, 2))))
        with self.table.update_sort_order() as update:
            for column in chosen:
                way = data.draw(st.sampled_from([update.asc, update.desc]))
                way(path_of(self.columns, column.key), self.transform(data, column))
        self.sort = {column.key for column in chosen}

    @rule(data=st.data())
    def set_a_property(self, data: st.DataObject) -> None:
        may = dict(PROPERTIES)
        if self.file_format == "mixed":
            may["write.format.default"] = FORMATS
        name = data.draw(st.sampled_from(sorted(may, reverse=True)))
        self.table.set_properties({name: data.draw(st.sampled_from(may[name]))})

    @precondition(lambda self: self.version_of_format < 3)
    @rule()
    def upgrade(self) -> None:
        self.version_of_format += 1
        with self.table.transaction() as tx:
            tx.upgrade_table_version(self.version_of_format)

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
        self.held.append(Held(again(self.table), self.state("main").seen(self.columns), self.columns))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), deletes=st.booleans())
    def write_from_what_was_held(self, data: st.DataObject, deletes: bool) -> None:
        """A holder that knows nothing of later commits appends under its own columns, or deletes from what is there."""
        held = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        rows = list(self.state("main").rows)
        if deletes and held.columns == self.columns:
            given = self.filter(data, self.columns)
            held.table.delete(given)
            rows = self.left("main", given)
        else:
            new = rows_of(self.chance(data), held.columns)
            held.table.append(as_table(new, as_schema(held.columns, defaults=False)))
            rows += kept(held.columns, new)
        self.table.refresh()
        self.committed("main", rows)

    # -- comparing ----------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def scan(self, data: st.DataObject) -> None:
        asked, rows, columns = self.version(data)
        given = self.filter(data, columns)
        chance = self.chance(data)
        paths = [".".join(path_of(columns, column.key)) for column in every(columns)]
        names = tuple(chance.sample(paths, chance.randint(0, min(4, len(paths)))))
        scan = self.table.scan(given, selected_fields=names or ("*",), **asked)
        wanted = [row for row in rows if naive(given, row) is True]
        self.same(scan.to_arrow(), wanted, scan.projection)
        assert scan.count() == len(wanted)
        limit = data.draw(st.integers(0, 3))
        assert self.table.scan(given, limit=limit, **asked).to_arrow().num_rows == min(limit, len(wanted))
        assert self.table.scan(given, limit=limit, **asked).count() == min(limit, len(wanted))
        self.same(self.read_in_pieces(scan), wanted, scan.projection)
        places = self.table.scan(given, selected_fields=("_pos", "_file"), **asked).to_arrow().to_pylist()
        assert len({(place["_file"], place["_pos"]) for place in places}) == len(places) == len(wanted)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def read_what_was_held(self, data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(self.held))
        self.same(held.table.scan().to_arrow(), held.rows, held.table.schema())

    @precondition(lambda self: self.heads["main"] is not None)
    @rule()
    def peers_read_the_same(self) -> None:
        rows = self.state("main").seen(self.columns)
        self.peers.compare(self.table, as_table(rows, self.table.schema()))

    @invariant()
    def the_columns_are_those_of_the_model(self) -> None:
        self.counts["steps"] += 1
        assert [shape_of(field) for field in self.table.schema().fields] == shapes(self.columns)
        names = {".".join(path_of(self.columns, key)) for key in self.identifiers}
        assert self.table.schema().identifier_field_names() == names

    def teardown(self) -> None:
        if not hasattr(self, "table"):
            return
        for number, state in self.states.items():
            if number is not None:
                scan = self.table.scan(snapshot_id=number)
                self.same(scan.to_arrow(), state.seen(), scan.projection)
        if self.heads["main"] is not None:
            self.peers_read_the_same()
        shutil.rmtree(self.root)

    # -- helpers ------------------------------------------------------------------------------------------------------

    def chance(self, data: st.DataObject) -> Random:
        """Chances that one number says: what is made of many draws would take Hypothesis too long."""
        return Random(data.draw(st.integers(0, 2**32 - 1)))

    def pick(self, data: st.DataObject, columns: Any) -> Column:
        return columns[data.draw(st.integers(0, len(columns) - 1))]

    def new_name(self) -> str:
        self.named += 1
        return f"{NAMES[self.named % len(NAMES)]}{self.named}"

    def new_column(self, chance: Random, parent: Column | None) -> Column:
        """A column to be added, often under the name of one that was dropped or renamed."""
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
        """Rows of which no two have the same key, many with the key of a row that is there; and the rows there."""
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
        """The ids of the specs under which the rows lie, by the text of the rows."""
        asked = {} if branch == "main" else {"ref": branch}
        found = self.table.scan(selected_fields=("*", "_spec_id"), **asked).to_arrow()
        texts = canonical_rows(found.drop_columns("_spec_id"), self.table.schema())
        specs: dict[str, list[int]] = {}
        for text, spec in zip(texts, found["_spec_id"].to_pylist(), strict=True):
            specs.setdefault(text, []).append(spec)
        return specs

    def partition_of(self, row: dict[str, Any]) -> tuple[str, ...]:
        """The partition of a row, as text: zeros of both signs lie apart, and all that is not a number together."""
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
        """Take over what a branch must hold now. A change of nothing may leave it where it was.

        ``columns``: those of the schemas that a transaction went through, of which the last change of rows has one.
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
        self.counts["scans"] += 1
        kind = projection.as_struct()
        expected = as_table([pruned(row, kind) for row in wanted], projection)
        there, modelled = (Counter(canonical_rows(rows, projection)) for rows in (found, expected))
        assert there == modelled, f"only in the table: {there - modelled}; only in the model: {modelled - there}"


@pytest.fixture(scope="module")
def peers() -> Iterator[PeerReadings]:
    with PeerReadings.opened() as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("file_format", [*FORMATS, "mixed"])
@pytest.mark.parametrize("format_version", [1, 2, 3])
@pytest.mark.spec("SCAN-43", "SCAN-60", "META-26", "SCH-30", "SCAN-62", "SCAN-63", "SCH-03", "PART-07", "COMMIT-10")
def test_any_changes_leave_the_rows_that_a_naive_model_has(format_version, file_format, tmp_path, peers, capsys):
    peers.start()
    counts: Counter[str] = Counter()
    given = {"format_version": format_version, "file_format": file_format, "folder": tmp_path}
    machine = type("Machine", (TableMachine,), {**given, "peers": peers, "counts": counts})
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    examples, steps = (40, 40) if SOAK else (3, 12)
    # To shrink a run of many steps takes minutes; `make soak` has them.
    phases = [phase for phase in Phase if SOAK or phase is not Phase.shrink]
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=phases,
        deadline=None,
        print_blob=True,
        suppress_health_check=checks,
    )
    run_state_machine_as_test(machine, settings=chosen)
    with capsys.disabled():
        if SOAK:
            print(f"\nversion {format_version}, {file_format}: {dict(counts)}, {peers.told()}")
    peers.check(file_format)
