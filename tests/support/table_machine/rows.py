"""Changes of rows, to the table and the model alike."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import (
    precondition,
    rule,
)
from icefield.errors import ValidationFailed
from naive_filters import naive
from random_tables import (
    rows_of,
)
from table_model import (
    NESTED,
    as_schema,
    kept,
    kept_row,
    seen_row,
)
from tables import again

from table_machine.state import Held, TableState, as_table, same_value


class RowRules(TableState):
    """Each rule changes rows."""

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        branch, rows = self.branch(data), self.rows(data)
        self.table.append(as_table(rows, self.table.schema()), branch=branch)
        self.committed(branch, [*self.state(branch).rows, *kept(self.columns, rows)])

    @rule(data=st.data())
    def append_without_some_columns(self, data: st.DataObject) -> None:
        """Omitted columns are null or have the column's write default, in structs too."""
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
        left, beside = [], False
        for row in state.rows:
            seen = seen_row(row, self.columns)
            same_spec = specs[self.texts([seen])[0]].pop() == current.spec_id
            meant = bool(rows) if current.is_unpartitioned else self.partition_of(seen) in new
            gone = meant and (same_spec or current.is_unpartitioned)
            beside |= meant and not gone
            left += [] if gone else [row]
        try:
            self.table.dynamic_partition_overwrite(as_table(rows, self.table.schema()), branch=branch)
        except ValidationFailed:
            asked = {} if branch == "main" else {"ref": branch}
            held = {task.file.spec_id for task in self.table.scan(**asked).plan_files()}
            assert held - {current.spec_id}, "refused though no file is of another spec"
            return
        assert not beside, "rows of another spec stayed beside the new ones of their partition"
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

    @rule()
    def hold(self) -> None:
        self.held.append(Held(again(self.table), self.state("main").seen(self.columns), self.columns))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), deletes=st.booleans())
    def write_from_what_was_held(self, data: st.DataObject, deletes: bool) -> None:
        """A holder without the latest commits appends under its own columns, or deletes from the current rows."""
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
