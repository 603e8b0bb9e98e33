"""Tables under random changes of rows from two writers, next to a list of rows: both modes, all versions and formats.

The writers do not refresh, so a writer makes its change without the other's last commit, and makes some changes while
the other commits. After each step the rows are compared. In version 3 row ids are unique and stay with their rows, and
only changed rows have another last change. At the end DuckDB and PyIceberg, where they can read the table, read the
same rows.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
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
from icefield.schema import Schema, schema_to_arrow
from icefield.types import LongType, NestedField, StructType, parse_type
from peer_readings import PeerReadings
from tables import again, meddled, new_table, orphans

SOAK = bool(os.environ.get("ICEFIELD_SOAK"))
FORMATS = ["parquet", "avro", "orc"]
MODES = ["copy-on-write", "merge-on-read"]
SCHEMA = Schema(
    NestedField(1, "id", LongType(), True),
    NestedField(2, "k", parse_type("string")),
    NestedField(3, "v", parse_type("double")),
    NestedField(4, "n", parse_type("int")),
    NestedField(5, "s", StructType(NestedField(6, "x", parse_type("int")), NestedField(7, "y", parse_type("string")))),
)

Values = dict[str, Any]
Test = Callable[[Values], bool]


@dataclass(frozen=True)
class Row:
    """A row of the model: its values by the first names of their columns, its id, and the commit that last changed it.

    Ids and commits are None until they are read; a row that changes has no last change until the next look.
    """

    values: Values
    row_id: int | None = None
    changed_in: int | None = None

    def become(self, **values: Any) -> Row:
        """The same row with changed values, and without a known last change."""
        return replace(self, values={**self.values, **values}, changed_in=None)


@dataclass(frozen=True)
class Change:
    """A change of rows: the call on a table or transaction, and its effect on a list of rows."""

    name: str
    ask: Callable[[Any], Any]
    effect: Callable[[list[Row]], list[Row]]


FILTERS: list[tuple[str, Test]] = [
    ("id = 3", lambda row: row["id"] == 3),
    ("id in (1, 4, 7)", lambda row: row["id"] in (1, 4, 7)),
    ("id >= 5", lambda row: row["id"] >= 5),
    ("v > 1.0", lambda row: row["v"] is not None and row["v"] > 1.0),
    ("k is null", lambda row: row["k"] is None),
    ("k = 'a'", lambda row: row["k"] == "a"),
    ("k != 'a'", lambda row: row["k"] is not None and row["k"] != "a"),
    ("k = 'b' and v <= 1.0", lambda row: row["k"] == "b" and row["v"] is not None and row["v"] <= 1.0),
    ("s.x = 1 or n is not null", lambda row: (row["s"] or {}).get("x") == 1 or row["n"] is not None),
    ("id >= 0", lambda row: True),
]
SETS: list[tuple[dict[str, Any], Callable[[Row], Row]]] = [
    ({"v": 5.0}, lambda row: row.become(v=5.0)),
    ({"v": pc.field("v") + 1}, lambda row: row.become(v=None if row.values["v"] is None else row.values["v"] + 1)),
    ({"k": "c"}, lambda row: row.become(k="c")),
    ({"k": None, "n": 4}, lambda row: row.become(k=None, n=4)),
    ({"s.x": 1}, lambda row: row.become(s={"x": 1, "y": (row.values["s"] or {}).get("y")})),
    ({"id": lambda batch: pc.add(batch["id"], 1)}, lambda row: row.become(id=row.values["id"] + 1)),
]


class RowLevelMachine(RuleBasedStateMachine):
    """Each rule changes the table and the model alike."""

    format_version = 2
    file_format = "parquet"
    folder: Path
    peers: PeerReadings
    counts: Counter[str]

    @initialize(seed=st.integers(0, 2**32))
    def create(self, seed: int) -> None:
        self.counts["runs"] += 1
        self.chance = Random(seed)
        self.version = self.format_version
        self.names = {field.name: field.name for field in SCHEMA.fields}
        """What each column is called now, by what it was called first."""
        self.numbered = 0
        given = {"format-version": str(self.version), "write.format.default": self.next_format()}
        self.root = self.folder / str(self.counts["runs"])
        catalog = open_catalog("create", self.root)
        catalog.create_namespace("db")
        self.table = new_table(catalog=catalog, schema=SCHEMA, properties=given)
        self.writers = [self.table, again(self.table)]
        self.rows: list[Row] = []
        self.states: dict[int, list[Row]] = {}

    # -- what is drawn ------------------------------------------------------------------------------------------------

    def next_format(self) -> str:
        return self.chance.choice(FORMATS) if self.file_format == "mixed" else self.file_format

    def row(self) -> Values:
        chance = self.chance
        found: Values = {
            "id": chance.randint(0, 9),
            "k": chance.choice(["a", "b", "c", None]),
            "v": chance.choice([0.0, 1.0, 2.0, None]),
            "n": chance.choice([1, None]),
            "s": chance.choice([None, {"x": 1, "y": None}, {"x": None, "y": "t"}]),
        }
        return {name: found[name] if name in found else chance.choice([1, 2, None]) for name in self.names}

    def some_rows(self, *, distinct: bool = False) -> list[Values]:
        rows = [self.row() for _ in range(self.chance.choice([0, 1, 3, 8]))]
        return list({row["id"]: row for row in rows}.values()) if distinct else rows

    def as_table(self, rows: list[Values]) -> pa.Table:
        schema = schema_to_arrow(self.table.schema())
        return pa.Table.from_pylist([{self.names[name]: row[name] for name in row} for row in rows], schema=schema)

    def change(self) -> Change:
        kinds = [self.an_append, self.a_delete, self.an_overwrite, self.an_update, self.an_upsert, self.a_merge]
        return self.chance.choice([*kinds, self.a_delete, self.an_update])()

    def an_append(self) -> Change:
        rows = self.some_rows()
        data = self.as_table(rows)
        return Change("append", lambda table: table.append(data), lambda old: [*old, *map(Row, rows)])

    def a_delete(self) -> Change:
        text, matches = self.chance.choice(FILTERS)
        return Change(
            f"delete {text}",
            lambda table: table.delete(text),
            lambda old: [row for row in old if not matches(row.values)],
        )

    def an_overwrite(self) -> Change:
        text, matches = self.chance.choice(FILTERS)
        rows = self.some_rows()
        data = self.as_table(rows)
        return Change(
            f"overwrite {text}",
            lambda table: table.overwrite(data, text),
            lambda old: [*(row for row in old if not matches(row.values)), *map(Row, rows)],
        )

    def an_update(self) -> Change:
        text, matches = self.chance.choice(FILTERS)
        values, become = self.chance.choice(SETS)
        return Change(
            f"update {text} set {[*values]}",
            lambda table: table.update(text, values),
            lambda old: [become(row) if matches(row.values) else row for row in old],
        )

    def an_upsert(self) -> Change:
        rows = self.some_rows(distinct=True)
        data, given = self.as_table(rows), {row["id"]: row for row in rows}

        def effect(old: list[Row]) -> list[Row]:
            there = {row.values["id"] for row in old}
            made = []
            for row in old:
                new = given.get(row.values["id"], row.values)
                made.append(row if shown(new, self.names) == shown(row.values, self.names) else row.become(**new))
            return made + [Row(row) for row in rows if row["id"] not in there]

        return Change("upsert", lambda table: table.upsert(data, ["id"]), effect)

    def a_merge(self) -> Change:
        rows = self.some_rows(distinct=True)
        data, given, chance = self.as_table(rows), {row["id"]: row for row in rows}, self.chance
        removes, updates, inserts = chance.random() < 0.4, chance.choice(["all", "v", None]), chance.random() < 0.6
        alone = chance.choice([None, "update", "delete"])
        text, matches = chance.choice(FILTERS)
        inserts = inserts or not (removes or updates or alone)

        def ask(table: Any) -> None:
            merge = table.merge(data, "id")
            if removes:
                merge.when_matched_delete("source.v > 1.0")
            if updates == "all":
                merge.when_matched_update_all()
            elif updates == "v":
                merge.when_matched_update({"v": pc.field("source", "v")}, "k is not null")
            if inserts:
                merge.when_not_matched_insert_all("source.k is not null")
            if alone == "update":
                merge.when_not_matched_by_source_update({"n": 9}, text)
            elif alone == "delete":
                merge.when_not_matched_by_source_delete(text)
            merge.commit()

        def effect(old: list[Row]) -> list[Row]:
            made: list[Row] = []
            for row in old:
                new = given.get(row.values["id"])
                if new is None:
                    concerned = alone is not None and matches(row.values)
                    made += [row] if not concerned else [row.become(n=9)] if alone == "update" else []
                elif removes and new["v"] is not None and new["v"] > 1.0:
                    pass
                elif updates == "all":
                    made.append(row.become(**new))
                elif updates == "v" and row.values["k"] is not None:
                    made.append(row.become(v=new["v"]))
                else:
                    made.append(row)
            there = {row.values["id"] for row in old}
            return made + [Row(row) for row in rows if inserts and row["k"] is not None and row["id"] not in there]

        return Change(f"merge {removes} {updates} {inserts} {alone} {text}", ask, effect)

    # -- rules --------------------------------------------------------------------------------------------------------

    @rule(writer=st.sampled_from([0, 1]))
    def change_rows(self, writer: int) -> None:
        """Change rows by a writer that may not have loaded the last commits."""
        change = self.change()
        self.told(change.name)
        change.ask(self.writers[writer])
        self.rows = change.effect(self.rows)

    @rule(writer=st.sampled_from([0, 1]))
    def change_rows_while_another_commits(self, writer: int) -> None:
        first, second = self.change(), self.change()
        self.told(f"{first.name} while {second.name}")
        done: list[int] = []

        def meddle(other: Any) -> None:
            second.ask(other)
            done.append(len(self.rows))
            self.rows = second.effect(self.rows)

        holder = meddled(self.writers[writer], meddle)
        first.ask(holder)
        self.rows = first.effect(self.rows)
        self.counts["races"] += len(done)

    @rule(writer=st.sampled_from([0, 1]))
    def change_rows_several_times_in_one_commit(self, writer: int) -> None:
        changes = [self.change() for _ in range(self.chance.choice([2, 3]))]
        self.told(" and ".join(change.name for change in changes))
        with self.writers[writer].transaction() as tx:
            for change in changes:
                change.ask(tx)
        for change in changes:
            self.rows = change.effect(self.rows)

    @rule()
    def change_modes(self) -> None:
        chance = self.chance
        modes = MODES if self.version > 1 else MODES[:1]
        given = {f"write.{each}.mode": chance.choice(modes) for each in ("delete", "update", "merge")}
        given["write.delete.granularity"] = chance.choice(["file", "partition"])
        given["write.delete.format.default"] = self.next_format()
        given["write.format.default"] = self.next_format()
        given["commit.manifest.min-count-to-merge"] = chance.choice(["1", "2", "100"])
        self.told(str(given))
        self.refreshed().set_properties(given)

    @rule()
    def change_partitions(self) -> None:
        table = self.refreshed()
        self.told("change partitions")
        with table.update_spec() as update:
            if table.spec().fields:
                update.remove_field(self.chance.choice(table.spec().fields).name)
            elif self.chance.random() < 0.5:
                update.add_identity("k")
            else:
                update.add_field("id", "bucket[3]")
        again_at_head(self)

    @rule()
    def change_columns(self) -> None:
        table = self.refreshed()
        extra = [name for name in self.names if name.startswith("c")]
        with table.update_schema() as update:
            if not extra or self.chance.random() < 0.4:
                self.numbered += 1
                name = f"c{self.numbered}"
                update.add_column(name, parse_type("int"))
                self.names[name] = name
                self.rows = [replace(row, values={**row.values, name: None}) for row in self.rows]
            elif self.chance.random() < 0.5:
                name = self.chance.choice(extra)
                self.numbered += 1
                update.rename_column(self.names[name], f"r{self.numbered}")
                self.names[name] = f"r{self.numbered}"
            else:
                name = self.chance.choice(extra)
                update.delete_column(self.names.pop(name))
        self.told(f"change columns: {self.names}")
        again_at_head(self)

    @precondition(lambda self: self.version < 3)
    @rule()
    def upgrade(self) -> None:
        self.told("upgrade")
        self.version += 1
        self.refreshed().transaction().upgrade_table_version(self.version).commit_transaction()
        again_at_head(self)

    @precondition(lambda self: len(self.states) > 1)
    @rule()
    def roll_back(self) -> None:
        table = self.refreshed()
        line, current = [], table.current_snapshot()
        while current is not None:
            line.append(current.snapshot_id)
            current = table.snapshot_by_id(current.parent_snapshot_id or -1)
        target = self.chance.choice([each for each in line if each in self.states] or line[:1])
        if target not in self.states:
            return
        self.told(f"roll back to {target}")
        table.manage_snapshots().rollback_to_snapshot(target).commit()
        names = self.names
        self.rows = [replace(row, values={name: row.values.get(name) for name in names}) for row in self.states[target]]
        again_at_head(self)

    # -- the comparison -----------------------------------------------------------------------------------------------

    @invariant()
    def the_table_holds_the_rows_of_the_model(self) -> None:
        table = again(self.table).refresh()
        columns = list(self.names.values())
        found = table.scan(selected_fields=(*columns, "_row_id", "_last_updated_sequence_number")).to_arrow()
        there: dict[str, list[tuple[int | None, int | None]]] = defaultdict(list)
        back = {now: first for first, now in self.names.items()}
        for row in found.to_pylist():
            row_id, changed_in = row.pop("_row_id"), row.pop("_last_updated_sequence_number")
            there[shown({back[name]: value for name, value in row.items()}, self.names)].append((row_id, changed_in))
        modelled = Counter(shown(row.values, self.names) for row in self.rows)
        assert Counter({key: len(each) for key, each in there.items()}) == modelled
        assert table.scan().count() == len(self.rows)
        ids = [row_id for each in there.values() for row_id, _ in each if row_id is not None]
        assert len(ids) == len(set(ids)), "a row id comes twice"
        self.rows = self.seen(there)
        snapshot = table.current_snapshot()
        if snapshot is not None:
            self.states[snapshot.snapshot_id] = self.rows
        self.counts["looks"] += 1

    def seen(self, there: dict[str, list[tuple[int | None, int | None]]]) -> list[Row]:
        """The rows with ids and last changes: known ids stay with their rows, the other rows take the remaining ids."""
        made: list[Row] = []
        for known in (True, False):
            for row in self.rows:
                if (row.row_id is not None) is not known:
                    continue
                left = there[shown(row.values, self.names)]
                places = [at for at, (row_id, _) in enumerate(left) if not known or row_id == row.row_id]
                assert places, f"row {row} has another id: {left}"
                row_id, changed_in = left.pop(places[0])
                if row.changed_in is not None:
                    assert changed_in == row.changed_in, f"{row} was last changed by {changed_in}"
                made.append(replace(row, row_id=row_id, changed_in=changed_in))
        return made

    def teardown(self) -> None:
        if not hasattr(self, "table"):
            return
        assert orphans(self.table) == set()
        if self.table.current_snapshot() is not None:
            rows = [{name: row.values.get(name) for name in self.names} for row in self.rows]
            self.peers.compare(self.table, self.as_table(rows))
        shutil.rmtree(self.root)

    def refreshed(self) -> Any:
        return self.table.refresh()

    def told(self, what: str) -> None:
        self.counts[what.split()[0]] += 1


def again_at_head(machine: RowLevelMachine) -> None:
    """Refresh the writers, because a writer with an old schema would write under that schema."""
    for writer in machine.writers:
        writer.refresh()


def shown(values: Values, names: dict[str, str]) -> str:
    """Values to be compared."""
    return repr([values.get(name) for name in names])


@pytest.fixture(scope="module")
def peers() -> Iterator[PeerReadings]:
    with PeerReadings.opened() as opened:
        yield opened


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("file_format", [*FORMATS, "mixed"])
@pytest.mark.parametrize("format_version", [1, 2, 3])
@pytest.mark.spec("ROW-13", "DEL-32")
def test_changes_of_rows_leave_what_a_list_of_rows_says(
    format_version: int, file_format: str, tmp_path: Path, peers: PeerReadings, capsys: Any
) -> None:
    peers.start()
    counts: Counter[str] = Counter()
    given = {"format_version": format_version, "file_format": file_format, "folder": tmp_path}
    machine = type("Machine", (RowLevelMachine,), {**given, "peers": peers, "counts": counts})
    examples, steps = (60, 40) if SOAK else (4, 14)
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=[phase for phase in Phase if SOAK or phase is not Phase.shrink],
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    run_state_machine_as_test(machine, settings=chosen)
    with capsys.disabled():
        if SOAK:
            print(f"\nversion {format_version}, {file_format}: {dict(counts)}, {peers.told()}")
    peers.check(file_format)
