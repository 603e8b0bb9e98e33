"""Changes of columns, partitions, properties and versions, to the table and the model alike."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import (
    precondition,
    rule,
)
from icefield.errors import InvalidSchema
from icefield.types import parse_type
from random_tables import (
    PROMOTIONS,
    PROMOTIONS_OF_V3,
    default_of,
)
from table_model import (
    NESTED,
    arranged,
    as_schema,
    changeable,
    changed,
    in_structs,
    leaves,
    line_to,
    path_of,
    siblings_of,
    without,
)

from table_machine.state import FORMATS, PROPERTIES, TableState


class ShapeRules(TableState):
    """Rules that change the schema, partitioning, sort order, properties, format version or references of a table."""

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
