"""Changelogs of tables under random changes, next to lists of rows: both modes, all versions, evolved columns, specs.

The model keeps the rows of each snapshot; the changes between two snapshots are the difference of their lists as
multisets. The scan must give the same changes for any part of the history, and its changes must turn the rows of the
beginning into the rows of the end.
"""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from icefield.metadata.snapshots import Operation
from icefield.scan import IncrementalChangelogScan, read_changes
from icefield.schema import Schema, schema_to_arrow
from icefield.types import ListType, LongType, NestedField, StructType, parse_type
from icefield.writing import write_batches
from tables import new_table

SOAK = bool(os.environ.get("ICEFIELD_SOAK"))
MODES = ["copy-on-write", "merge-on-read"]
FORMATS = ["parquet", "parquet", "avro", "orc"]
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "k", parse_type("string")),
    NestedField(3, "v", parse_type("double")),
    NestedField(4, "s", StructType(NestedField(5, "x", parse_type("int")), NestedField(6, "y", parse_type("string")))),
    NestedField(7, "l", ListType(8, parse_type("int"))),
)
FILTERS: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("id = 3", lambda row: row["id"] == 3),
    ("id in (1, 4, 7)", lambda row: row["id"] in (1, 4, 7)),
    ("id >= 9", lambda row: row["id"] >= 9),
    ("k is null", lambda row: row["k"] is None),
    ("k = 'a'", lambda row: row["k"] == "a"),
    ("k = 'b' and id < 8", lambda row: row["k"] == "b" and row["id"] < 8),
]
Row = dict[str, Any]
Rows = list[Row]


class History:
    """A table, and the rows that each of its snapshots should hold, under the first names of their columns."""

    def __init__(self, chance: Random, version: int) -> None:
        self.chance = chance
        self.version = version
        self.names = {field.name: field.name for field in SCHEMA.fields}
        self.numbered = 0
        spec = chance.choice([None, [("k", "identity")], [("id", "bucket[3]")]])
        self.table = new_table(
            spec,
            schema=SCHEMA,
            properties={"format-version": str(version), "commit.manifest.min-count-to-merge": "2"},
        )
        self.rows: Rows = []
        self.states: list[tuple[int, Rows]] = []

    def step(self) -> None:
        chance = self.chance
        steps = [self.append, self.delete, self.update, self.upsert, self.overwrite, self.replace_partitions]
        rare = [self.properties, self.columns, self.spec, self.rewrite]
        specs = self.table.specs()
        if self.version > 1 and len(specs) == 1 and all(each.source_id == 1 for each in specs[0].fields):
            steps += [self.by_equality, self.by_equality_and_insert]
        if self.version < 3:
            rare.append(self.upgrade)
        chance.choice(steps * 3 + rare)()
        self.note()

    def note(self) -> None:
        current = self.table.current_snapshot()
        known = {snapshot_id for snapshot_id, _ in self.states}
        if current is None or current.snapshot_id in known:
            return
        self.states.append((current.snapshot_id, list(self.rows)))

    # -- changes of rows ----------------------------------------------------------------------------------------------

    def row(self, id_: int) -> Row:
        chance = self.chance
        values = {
            "id": id_,
            "k": chance.choice(["a", "b", None]),
            "v": chance.choice([0.0, -0.0, float("nan"), 1.5, None]),
            "s": chance.choice([None, {"x": 1, "y": None}, {"x": None, "y": "t"}]),
            "l": chance.choice([None, [], [1], [1, None]]),
        }
        return {name: values.get(name, chance.choice([1, None])) for name in self.names}

    def arrow(self, rows: Rows) -> pa.Table:
        schema = schema_to_arrow(self.table.schema())
        return pa.Table.from_pylist([{self.names[name]: row[name] for name in row} for row in rows], schema=schema)

    def fresh(self, most: int = 5) -> Rows:
        taken = {row["id"] for row in self.rows}
        free = [id_ for id_ in range(20) if id_ not in taken]
        return [self.row(id_) for id_ in self.chance.sample(free, min(len(free), self.chance.randint(1, most)))]

    def append(self) -> None:
        rows = self.fresh()
        if rows:
            self.table.append(self.arrow(rows))
            self.rows = [*self.rows, *rows]

    def delete(self) -> None:
        text, matches = self.chance.choice(FILTERS)
        self.table.delete(text)
        self.rows = [row for row in self.rows if not matches(row)]

    def update(self) -> None:
        text, matches = self.chance.choice(FILTERS)
        kind = self.chance.choice(["a", "c", None])
        self.table.update(text, {"k": kind})
        self.rows = [{**row, "k": kind} if matches(row) else row for row in self.rows]

    def upsert(self) -> None:
        given = {row["id"]: row for row in (self.row(self.chance.randrange(20)) for _ in range(4))}
        self.table.upsert(self.arrow([*given.values()]), ["id"])
        kept = [given.pop(row["id"], row) for row in self.rows]
        self.rows = [*kept, *given.values()]

    def overwrite(self) -> None:
        text, matches = self.chance.choice(FILTERS)
        kept = [row for row in self.rows if not matches(row)]
        gone = [row for row in self.rows if matches(row)]
        again = self.chance.sample(gone, len(gone) // 2)  # some with the values that they had
        self.table.overwrite(self.arrow(again), text)
        self.rows = [*kept, *again]

    def replace_partitions(self) -> None:
        spec = self.table.spec()
        if len(spec.fields) != 1 or spec.fields[0].source_id != 2 or len(self.table.specs()) > 1:
            return
        rows = self.fresh(2)
        if rows:
            self.table.dynamic_partition_overwrite(self.arrow(rows))
            kinds = {row["k"] for row in rows}
            self.rows = [*(row for row in self.rows if row["k"] not in kinds), *rows]

    def by_equality(self) -> None:
        wanted = [self.chance.randrange(20) for _ in range(3)]
        self.table.delete_by_equality(pa.table({"id": wanted}), ["id"])
        self.rows = [row for row in self.rows if row["id"] not in wanted]

    def by_equality_and_insert(self) -> None:
        rows = [self.row(id_) for id_ in self.chance.sample(range(20), 3)]
        self.table.apply_changes([("UPDATE_AFTER", self.arrow(rows))], ["id"], upsert=True)
        wanted = {row["id"] for row in rows}
        self.rows = [*(row for row in self.rows if row["id"] not in wanted), *rows]

    # -- changes of the table -----------------------------------------------------------------------------------------

    def properties(self) -> None:
        chance = self.chance
        modes = MODES if self.version > 1 else MODES[:1]
        given = {f"write.{each}.mode": chance.choice(modes) for each in ("delete", "update", "merge")}
        given["write.delete.granularity"] = chance.choice(["file", "partition"])
        given["write.format.default"] = chance.choice(FORMATS)
        self.table.set_properties(given)

    def columns(self) -> None:
        extra = [name for name in self.names if name.startswith("c")]
        with self.table.update_schema() as update:
            self.numbered += 1
            if not extra or self.chance.random() < 0.5:
                name = f"c{self.numbered}"
                update.add_column(name, parse_type("int"))
                self.names[name] = name
            elif self.chance.random() < 0.5:
                name = self.chance.choice(extra)
                update.rename_column(self.names[name], f"r{self.numbered}")
                self.names[name] = f"r{self.numbered}"
            else:
                update.delete_column(self.names.pop(self.chance.choice(extra)))
        self.rows = [{name: row.get(name) for name in self.names} for row in self.rows]

    def spec(self) -> None:
        with self.table.update_spec() as update:
            if self.table.spec().fields:
                update.remove_field(self.chance.choice(self.table.spec().fields).name)
            else:
                update.add_identity("k")

    def rewrite(self) -> None:
        """Data files without deletes put into others, as a compaction does."""
        tasks = [task for task in self.table.scan().plan_files() if not task.delete_files]
        if not tasks or self.table.spec().fields or len(self.table.specs()) > 1 or self.version > 2:
            return
        chosen = [task.file for task in self.chance.sample(tasks, min(2, len(tasks)))]
        paths = {file.file_path for file in chosen}
        found = self.table.scan(selected_fields=("*", "_file")).to_arrow()
        mask = pa.array([path in paths for path in found["_file"].to_pylist()])
        rows = found.filter(mask).drop_columns(["_file"])
        written = write_batches(self.table.write_context(), rows)
        with self.table.update_snapshot().rewrite() as rewriting:
            for file in chosen:
                rewriting.delete_file(file)
            for file in written:
                rewriting.add_file(file)

    def upgrade(self) -> None:
        self.version += 1
        self.table.transaction().upgrade_table_version(self.version).commit_transaction()

    # -- the expected changes -----------------------------------------------------------------------------------------

    def between(self, begin: int, end: int) -> list[tuple[int, Rows, Rows]]:
        """The snapshots that changed rows in a part of the history, with the rows before and after each."""
        found = []
        for place in range(begin + 1, end + 1):
            number, after = self.states[place]
            snapshot = self.table.metadata.snapshot_by_id(number)
            assert snapshot is not None
            if snapshot.operation is not Operation.REPLACE:
                found.append((number, self.states[place - 1][1] if place else [], after))
        return found

    def shown(self, row: Row) -> str:
        return repr([row.get(name) for name in self.names])

    def counted(self, rows: Rows) -> Counter[str]:
        return Counter(map(self.shown, rows))

    def of_scan(self, row: Row) -> str:
        return repr([row[name] for name in self.names.values()])


def scan_of(history: History, begin: int, end: int, **given: Any) -> IncrementalChangelogScan:
    ids = [number for number, _ in history.states]
    bounds = {"from_snapshot_id_exclusive": ids[begin]} if begin >= 0 else {}
    return history.table.incremental_changelog_scan(to_snapshot_id_inclusive=ids[end], **bounds, **given)


def check(history: History, begin: int, end: int, chance: Random) -> None:
    text, matches = chance.choice([("true", lambda row: True), *FILTERS])
    steps = history.between(begin, end)
    expected: Counter[tuple[int, int, str, str]] = Counter()
    for ordinal, (number, before, after) in enumerate(steps):
        old, new = (history.counted([row for row in rows if matches(row)]) for rows in (before, after))
        for kind, rows in (("DELETE", old - new), ("INSERT", new - old)):
            expected.update({(ordinal, number, kind, row): count for row, count in rows.items()})
    scan = scan_of(history, begin, end, row_filter=text)
    found = scan.to_arrow()
    assert stated(history, found) == expected
    assert scan.count() == expected.total()
    tasks = pickle.loads(pickle.dumps([*scan.plan_files()]))
    context = pickle.loads(pickle.dumps(scan.changelog_context))
    there = pa.Table.from_batches(read_changes(tasks, context, workers=1), schema=found.schema)
    assert stated(history, there) == expected

    first, last = (history.states[place][1] if place >= 0 else [] for place in (begin, end))
    old, new = (history.counted([row for row in rows if matches(row)]) for rows in (first, last))
    replayed = Counter(old)
    for row in found.to_pylist():
        sign = 1 if row["_change_type"] == "INSERT" else -1
        replayed[history.of_scan(row)] += sign
        assert replayed[history.of_scan(row)] >= 0
    assert +replayed == new

    net = Counter(
        {key[2:]: count for key, count in stated(history, replace(scan, net_changes=True).to_arrow()).items()}
    )
    assert net == Counter({("DELETE", row): n for row, n in (old - new).items()}) + Counter(
        {("INSERT", row): n for row, n in (new - old).items()}
    )
    check_updates(history, begin, end, steps)


def check_updates(history: History, begin: int, end: int, steps: list[tuple[int, Rows, Rows]]) -> None:
    expected: Counter[tuple[int, int, str, str]] = Counter()
    for ordinal, (number, before, after) in enumerate(steps):
        old, new = ({row["id"]: history.shown(row) for row in rows} for rows in (before, after))
        for id_ in old.keys() | new.keys():
            one, other = old.get(id_), new.get(id_)
            if one == other:
                continue
            kinds = ("UPDATE_BEFORE", "UPDATE_AFTER") if one and other else ("DELETE", "INSERT")
            for kind, row in zip(kinds, (one, other), strict=True):
                if row:
                    expected[ordinal, number, kind, row] += 1
    found = scan_of(history, begin, end, identifier_columns=["id"]).to_arrow()
    assert stated(history, found) == expected
    types, ids = found["_change_type"].to_pylist(), found["id"].to_pylist()
    for place, kind in enumerate(types):
        if kind == "UPDATE_BEFORE":
            assert (types[place + 1], ids[place + 1]) == ("UPDATE_AFTER", ids[place])


def stated(history: History, found: pa.Table) -> Counter[tuple[int, int, str, str]]:
    changes = ("_change_ordinal", "_commit_snapshot_id", "_change_type")
    return Counter((*(row[name] for name in changes), history.of_scan(row)) for row in found.to_pylist())


@pytest.mark.slow
@pytest.mark.counted
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.spec("SCAN-52", "SCAN-43")
def test_a_changelog_says_what_lists_of_rows_say(version: int) -> None:
    for seed in range(25 if SOAK else 2):
        chance = Random(f"{version} {seed}")
        history = History(chance, version)
        for _ in range(30 if SOAK else 12):
            history.step()
        count = len(history.states)
        for _ in range(20 if SOAK else 4):
            begin = chance.randrange(-1, count)
            check(history, begin, chance.randrange(max(begin, 0), count), chance)
        check(history, -1, count - 1, chance)
