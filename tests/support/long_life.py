"""The life of one table: processes that change it and keep it up at random, and are killed and begin again.

Each process owns the rows of its name, so that the changes of several commute, and notes its rows before and after each
change in a journal. A process that begins again after a kill checks which of the two states the table has.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from icefield import Table, load_catalog
from icefield.errors import CommitFailed, FileMissing, InvalidArgument
from icefield.types import LongType
from many_writers import RETRIES

NAME = "db.t"
SCHEMA = pa.schema([("owner", pa.string()), ("id", pa.int64()), ("value", pa.int32())])
PROPERTIES = {**RETRIES, "file.sync": "false", "format-version": "2", "commit.manifest.min-count-to-merge": "12"}
MODES = ("copy-on-write", "merge-on-read")
FIELDS = {"owner": ("owner", "identity"), "by_id": ("id", "bucket[3]"), "near": ("id", "truncate[20]")}
"""The partition fields that come and go: of the key, which an equality delete must have."""

MOST_ROWS = 60
KEPT_SNAPSHOTS = 30
"""So many of each branch: a change that others pass by as often may miss the version that it began with."""
SAFE_AGE_MS = 180_000
"""Longer than any change takes."""

Row = tuple[int, int, str | None]
"""The id, the value, and the value in the column of the row's owner."""


@dataclass(frozen=True)
class Owned:
    """The state that a process owns: its rows by their ids, its column, and its tags with hashes of their rows."""

    rows: Mapping[str, tuple[int, str | None]] = field(default_factory=dict)
    column: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    def with_rows(self, new: Mapping[int, tuple[int, str | None]]) -> Owned:
        return replace(self, rows={**self.rows, **{str(number): row for number, row in new.items()}})

    def without(self, numbers: Any) -> Owned:
        gone = {str(number) for number in numbers}
        return replace(self, rows={number: row for number, row in self.rows.items() if number not in gone})

    def listed(self) -> list[Row]:
        return sorted((int(number), value, extra) for number, (value, extra) in self.rows.items())


def shown(table: Table, owner: str, column: str | None) -> list[Row]:
    """The rows of an owner, as the table has them."""
    names = ("id", "value", *([column] if column else []))
    found = table.scan(f"owner = '{owner}'", selected_fields=names).to_arrow().to_pylist()
    return sorted((row["id"], row["value"], row[column] if column else None) for row in found)


class Journal:
    """A journal with a line for each beginning and each end of a change."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def last(self) -> tuple[Owned, Owned | None]:
        """Return the last known state, and the state after an unfinished change, which may be there instead."""
        known, pending = Owned(), None
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            try:
                noted = json.loads(line)
            except ValueError:
                continue  # the process died as it wrote
            if noted["kind"] == "begin":
                pending = _owned(noted["state"])
            else:
                known, pending = _owned(noted["state"]), None
        return known, pending

    def note(self, kind: str, state: Owned, what: str = "", seconds: float = 0) -> None:
        line = {"kind": kind, "what": what, "seconds": seconds, "state": asdict(state)}
        with self.path.open("a") as file:
            file.write(f"\n{json.dumps(line)}\n")

    def counts(self) -> Counter[str]:
        """The number of finished changes of each kind."""
        lines = [json.loads(line) for line in self.path.read_text().splitlines() if line.endswith("}")]
        return Counter(line["what"] for line in lines if line["kind"] != "begin" and line["what"])


def _owned(state: Mapping[str, Any]) -> Owned:
    rows = {number: (value, extra) for number, (value, extra) in state["rows"].items()}
    return Owned(rows, state["column"], state["tags"])


class Life:
    """One process."""

    def __init__(self, given: Mapping[str, str], owner: str, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.catalog, self.owner = load_catalog("test", **given), owner
        self.journal = Journal(folder / f"{owner}.journal")
        self.known = Owned()

    @property
    def mine(self) -> str:
        return f"owner = '{self.owner}'"

    def opened(self) -> Table:
        return self.catalog.load_table(NAME)

    def begin(self) -> None:
        """Find out the outcome of the change during which the previous process died."""
        before, after = self.journal.last()
        self.known = before
        if after is None:
            return
        table = self.opened()
        for state in (before, after):
            there = self._columns(table)
            if there == ({state.column} if state.column else set()) and (
                shown(table, self.owner, state.column) == state.listed()
            ):
                tags = {name: rows for name, rows in state.tags.items() if name in table.refs()}
                self.known = replace(state, tags=tags)
                self.journal.note("found", self.known)
                return
        raise AssertionError(f"{self.owner} has neither what was before a kill nor what was to be after it")

    def _columns(self, table: Table) -> set[str]:
        return {each.name for each in table.schema().fields if each.name.startswith(f"{self.owner}_")}

    def live(self, until: float, steps: int, changes: Mapping[str, int]) -> None:
        """Change the table at random until a time and that many steps; ``changes`` are the weights of operations."""
        names, weights = zip(*changes.items(), strict=True)
        done = sum(self.journal.counts().values()) if self.journal.path.exists() else 0
        while time.time() < until or done < steps:
            (name,) = self.chance.choices(names, weights)
            self.step(name)
            done += 1

    def step(self, name: str) -> None:
        """Make one change, and write its beginning and end into the journal."""
        table = self.opened()
        after, run = OPERATIONS[name](self, table)
        began = time.monotonic()
        self.journal.note("begin", after, name)
        try:
            run()
        except CommitFailed:
            after, name = self.known, f"{name} refused"
        except (FileMissing, InvalidArgument) as error:
            if not self._is_excused(table, error):
                raise
            after, name = self.known, f"{name} overtaken"
        self.known = after
        self.journal.note("end", after, name, time.monotonic() - began)

    def _is_excused(self, table: Table, error: Exception) -> bool:
        """Whether others have changed the state on which the change was based."""
        now, head = self.opened(), table.current_snapshot()
        if isinstance(error, FileMissing):
            return head is not None and now.snapshot_by_id(head.snapshot_id) is None
        return now.spec() != table.spec() or now.schema() != table.schema() or now.sort_order() != table.sort_order()

    def rows(self, table: Table, numbers: Any) -> tuple[dict[int, tuple[int, str | None]], pa.Table]:
        """New values for the rows with these numbers, in the form of the model and in the form of the table."""
        column = self.known.column
        new = {
            number: (self.chance.randrange(1000), self.chance.choice("xyz") if column else None) for number in numbers
        }
        return new, self.as_table(table, new)

    def as_table(self, table: Table, new: Mapping[int, tuple[int, str | None]]) -> pa.Table:
        columns = {"owner": [self.owner] * len(new), "id": [*new], "value": [value for value, _ in new.values()]}
        schema = SCHEMA
        if isinstance(table.schema().find_field("value").field_type, LongType):
            schema = schema.set(2, pa.field("value", pa.int64()))
        if self.known.column:
            columns[self.known.column] = [extra for _, extra in new.values()]
            schema = schema.append(pa.field(self.known.column, pa.string()))
        return pa.table(columns, schema=schema)

    def fresh(self) -> list[int]:
        """Unused numbers for new rows, up to the largest number of rows."""
        first = 1 + max(map(int, self.known.rows), default=0)
        room = MOST_ROWS - len(self.known.rows)
        return [*range(first, first + min(room, self.chance.randint(1, 8)))]

    def some(self) -> list[int]:
        """Numbers of some rows."""
        there = sorted(map(int, self.known.rows))
        return self.chance.sample(there, min(len(there), self.chance.randint(1, 6)))


Operation = Callable[[Life, Table], tuple[Owned, Callable[[], Any]]]
"""Returns the state that the process will own, and the change that leads to it."""


def _in(numbers: list[int]) -> str:
    return f"id in ({', '.join(map(str, numbers or [0]))})"


def append(life: Life, table: Table) -> tuple[Owned, Callable[[], Any]]:
    new, given = life.rows(table, life.fresh())
    return life.known.with_rows(new), lambda: table.append(given)


def delete(life: Life, table: Table) -> tuple[Owned, Callable[[], Any]]:
    gone = life.some()
    return life.known.without(gone), lambda: table.delete(f"{life.mine} and {_in(gone)}")


def delete_by_equality(life: Life, table: Table) -> tuple[Owned, Callable[[], Any]]:
    gone = life.some()
    keys = pa.table({"owner": [life.owner] * len(gone), "id": gone}, schema=pa.schema([*SCHEMA][:2]))
    return life.known.without(gone), lambda: table.delete_by_equality(keys, ["owner", "id"])


def upsert(life: Life, table: Table) -> tuple[Owned, Callable[[], Any]]:
    new, given = life.rows(table, [*life.some(), *life.fresh()])
    return life.known.with_rows(new), lambda: table.upsert(given, ["owner", "id"])


def apply_changes(life: Life, table: Table) -> tuple[Owned, Callable[[], Any]]:
    new, given = life.rows(table, [*life.some(), *life.fresh()])
    changes = given.append_column("_change_type", pa.array(["insert"] * len(given)))
    return life.known.with_rows(new), lambda: table.apply_changes(changes, ["owner", "id"], upsert=True)


def update(life: Life, table: Table) -> tuple[Owned, Callable[[], Any]]:
    numbers, value = life.some(), life.chance.randrange(1000)
    new = {number: (value, life.known.rows[str(number)][1]) for number in numbers}
    return life.known.with_rows(new), lambda: table.update(f"{life.mine} and {_in(numbers)}", {"value": value})


def overwrite(life: Life, table: Table) -> tuple[Owned, Callable[[], Any]]:
    gone = life.some()
    new, given = life.rows(table, gone[: len(gone) // 2])
    return life.known.without(gone).with_rows(new), lambda: table.overwrite(given, f"{life.mine} and {_in(gone)}")


def publish(life: Life, table: Table) -> tuple[Owned, Callable[[], Any]]:
    """Append to a branch, and take the change over from it."""
    new, given = life.rows(table, life.fresh())
    branch = f"{life.owner}-{life.chance.randrange(10**9)}"

    def run() -> None:
        if table.current_snapshot() is None or not new:
            table.append(given)
            return
        table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, branch).commit()  # type: ignore[union-attr]
        table.append(given, branch=branch)
        staged = table.refs()[branch].snapshot_id
        table.manage_snapshots().cherry_pick(staged).commit()
        table.manage_snapshots().remove_branch(branch).commit()

    return life.known.with_rows(new), run


def tag(life: Life, table: Table) -> tuple[Owned, Callable[[], Any]]:
    """Tag a version, and remember the digest of its rows."""
    name, head = f"{life.owner}-t{life.chance.randrange(10**9)}", table.current_snapshot()
    if head is None or len(life.known.tags) > 5:
        return life.known, lambda: None
    tags = {**life.known.tags, name: digest(table)}
    return replace(life.known, tags=tags), lambda: table.manage_snapshots().create_tag(head.snapshot_id, name).commit()


def untag(life: Life, table: Table) -> tuple[Owned, Callable[[], Any]]:
    if not life.known.tags:
        return life.known, lambda: None
    name = life.chance.choice(sorted(life.known.tags))
    tags = {each: rows for each, rows in life.known.tags.items() if each != name}
    return replace(life.known, tags=tags), lambda: table.manage_snapshots().remove_tag(name).commit()


def read(life: Life, table: Table) -> tuple[Owned, Callable[[], Any]]:
    """Compare the table with the process's own rows, and with the digests of its tags."""

    def run() -> None:
        assert shown(table, life.owner, life.known.column) == life.known.listed()
        for name, shown_then in life.known.tags.items():
            assert digest(table, name) == shown_then, name

    return life.known, run


def all_rows(table: Table, ref: str | None = None) -> list[tuple[str, int, int]]:
    """The rows of every owner, in the columns that are always there."""
    scan = table.scan(selected_fields=("owner", "id", "value"), ref=ref)
    return sorted((row["owner"], row["id"], row["value"]) for row in scan.to_arrow().to_pylist())


def digest(table: Table, ref: str | None = None) -> str:
    """A hash of all rows."""
    return hashlib.sha256(repr(all_rows(table, ref)).encode()).hexdigest()


def evolve(life: Life, table: Table) -> tuple[Owned, Callable[[], Any]]:
    """Add, rename or drop the column of the owner, or promote the column of values."""
    column, draw = life.known.column, life.chance.random()
    if draw < 0.2:
        return life.known, lambda: table.update_schema().update_column("value", "long").commit()
    if column is None:
        name = f"{life.owner}_{life.chance.choice('ab')}"
        return replace(life.known, column=name), lambda: table.update_schema().add_column(name, "string").commit()
    if draw < 0.6:
        name = f"{life.owner}_{life.chance.choice('cd')}"
        if name == column:
            return life.known, lambda: None
        return replace(life.known, column=name), lambda: table.update_schema().rename_column(column, name).commit()
    rows = {number: (value, None) for number, (value, _) in life.known.rows.items()}
    return replace(life.known, rows=rows, column=None), lambda: table.update_schema().delete_column(column).commit()


def partition(life: Life, table: Table) -> tuple[Owned, Callable[[], Any]]:
    """Partition new files by one more field, or by one field less."""
    name, (source, transform) = life.chance.choice([*FIELDS.items()])
    update = table.update_spec()
    if name in {each.name for each in table.spec().fields}:
        return life.known, update.remove_field(name).commit
    return life.known, update.add_field(source, transform, name).commit


def settings(life: Life, table: Table) -> tuple[Owned, Callable[[], Any]]:
    """Set other modes of deletion and another sort order, and sometimes upgrade the format version."""
    modes = {f"write.{change}.mode": life.chance.choice(MODES) for change in ("delete", "update", "merge")}
    if life.chance.random() < 0.15:
        modes["format-version"] = "3"

    def run() -> None:
        table.set_properties(modes)
        with table.update_sort_order() as order:
            order.asc(life.chance.choice(["id", "value"]))

    return life.known, run


def _maintenance(run: Callable[[Table], Any]) -> Operation:
    return lambda life, table: (life.known, lambda: run(table))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


OPERATIONS: dict[str, Operation] = {
    "append": append,
    "delete": delete,
    "delete by equality": delete_by_equality,
    "upsert": upsert,
    "apply changes": apply_changes,
    "update": update,
    "overwrite": overwrite,
    "publish": publish,
    "tag": tag,
    "untag": untag,
    "read": read,
    "evolve": evolve,
    "partition": partition,
    "settings": settings,
    "compact": _maintenance(
        lambda table: table.maintenance.rewrite_data_files(min_input_files=3, delete_file_threshold=2)
    ),
    "sort": _maintenance(
        lambda table: table.maintenance.rewrite_data_files(
            "sort", ["id"], min_input_files=2, partial_progress=True, remove_dangling_deletes=True
        )
    ),
    "rewrite manifests": _maintenance(lambda table: table.maintenance.rewrite_manifests()),
    "rewrite deletes": _maintenance(lambda table: table.maintenance.rewrite_position_delete_files(min_input_files=2)),
    "convert": _maintenance(lambda table: table.maintenance.convert_equality_deletes()),
    "remove dangling": _maintenance(lambda table: table.maintenance.remove_dangling_deletes()),
    "table stats": _maintenance(lambda table: table.maintenance.compute_table_stats(["owner", "id"])),
    "partition stats": _maintenance(lambda table: table.maintenance.compute_partition_stats()),
    "expire": _maintenance(lambda table: table.maintenance.expire_snapshots(_now_ms(), retain_last=KEPT_SNAPSHOTS)),
    "orphans": _maintenance(
        lambda table: table.maintenance.remove_orphan_files(_now_ms() - SAFE_AGE_MS, dry_run=False, allow_recent=True)
    ),
}
_RARE = {"untag": 2, "evolve": 3, "partition": 2, "settings": 2, "sort": 2, "table stats": 1, "partition stats": 1}
_OFTEN = {"append": 16, "delete": 8, "upsert": 8, "update": 6, "read": 8, "expire": 4}
WEIGHTS = {name: _OFTEN.get(name, _RARE.get(name, 3)) for name in OPERATIONS}
WRITES = {name: weight for name, weight in WEIGHTS.items() if OPERATIONS[name].__qualname__ == name.replace(" ", "_")}
"""The operations that write and read, without maintenance."""


def lead(
    given: dict[str, str],
    owner: str,
    folder: str,
    seed: int,
    until: float,
    steps: int,
    changes: Mapping[str, int] = WEIGHTS,
) -> None:
    """Live one life: the main function of a process."""
    life = Life(given, owner, Path(folder), seed)
    life.begin()
    life.live(until, steps, changes)
