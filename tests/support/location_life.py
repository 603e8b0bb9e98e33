"""Tables of one catalog that come, move and go at random, and share folders, files and metadata as far as they can.

``location_judge`` says which files and rows each of them may lose.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa
from icefield import Catalog, Table
from icefield.errors import (
    CommitFailed,
    FileMissing,
    IcefieldError,
    InvalidArgument,
    LocationWarning,
    NotSupportedByCatalog,
    TableExists,
    UnsupportedFeature,
)
from location_judge import DAY_MS, Files, LocationJudge, Rows, named_by, stated

SCHEMA = pa.schema([("id", pa.int64())])
REFUSED = (InvalidArgument, TableExists, UnsupportedFeature, NotSupportedByCatalog, CommitFailed)
FREES_OLD_METADATA = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}
MARKS_DELETED_ROWS = {"write.delete.mode": "merge-on-read"}


class Impossible(Exception):
    """A step for which there is no table or file."""


@dataclass(slots=True)
class Step:
    """One step: the table that makes it, the names that it may change, and the rows before and after it."""

    said: str
    actor: str | None = None
    names: list[str] = field(default_factory=list)
    before: Rows = ()
    after: Rows | None = None


class LocationLife:
    """One life: a catalog, its random steps, and the judge."""

    def __init__(self, catalog: Catalog, files: Files, seed: int) -> None:
        self.catalog, self.files, self.random = catalog, files, Random(seed)
        self.done: Counter[str] = Counter()
        """How often each kind of step was done, ``refused`` and ``impossible``."""
        self._steps: list[Step] = []
        self._dropped: list[tuple[str, set[str]]] = []
        """Metadata files of tables that were dropped and not purged, each with the files that it leads to."""
        self._last_row = 0
        self._by_path = catalog.properties.get("type") == "directory"
        namespaces, self._names = ["db", "other"], ["db.a", "db.b", "db.c", "other.a"]
        for namespace in namespaces:
            catalog.create_namespace_if_not_exists(namespace)
        try:
            catalog.create_namespace_if_not_exists("db.a")
        except IcefieldError:  # a catalog without nested namespaces
            pass
        else:  # the default location of ``db.a.data`` is within the data folder of the table ``db.a``
            namespaces.append("db.a")
            self._names.append("db.a.data")
        self.judge = LocationJudge(catalog, files, namespaces)

    def live(self, steps: int) -> LocationLife:
        """Make steps, and judge each."""
        moves: list[Callable[[Step], None]] = [
            *[self._create] * 5, *[self._append] * 3, self._overwrite,
            self._overwrite, self._delete, self._delete, self._rename, self._rename, self._replace, self._register,
            self._register, self._drop, self._purge, self._orphans, self._orphans, self._orphans, self._expire,
            self._expire, self._add_files, self._set_data_path, self._move, self._compact,
        ]  # fmt: skip
        try:
            for number in range(steps):
                self._make(self.random.choice(moves if number > 2 else [self._create, self._append]))
        except Exception as error:  # every error is a finding, and its report needs the steps that lead to it
            raise AssertionError("\n".join([*(each.said for each in self._steps), str(error)])) from error
        return self

    def _make(self, move: Callable[[Step], None]) -> None:
        kind = move.__name__[1:]
        step = Step(kind)
        self._steps.append(step)
        before = self.files.all()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LocationWarning)
            try:
                move(step)
                self.done[kind] += 1
            except Impossible:
                self.done["impossible"] += 1
                return
            except REFUSED as error:
                step.said += f" refused: {error}"
                self.done["refused"] += 1
                step.after = None
            except FileMissing as error:
                if not self.judge.lacks_files(step.actor):
                    raise
                step.said += f" lacks files of another table: {error}"
                self.done["lacking"] += 1
                step.after = None
        self.judge.judge(kind, before, step.actor, step.names, (step.before, step.after))
        self.files.age()

    # -- choices ----------------------------------------------------------------------------------------------------

    def _some(self, step: Step) -> Table:
        """The table that makes a step. The rows of the table stay, unless the step changes them."""
        table = self._one(self.judge.tables())
        step.actor = str(table.metadata.table_uuid)
        step.names.append(".".join(table.name()))
        step.before = step.after = self.judge.rows[table.metadata.current_snapshot_id]
        step.said += f" {step.names[0]} at {table.location()}"
        return table

    def _other(self, table: Table) -> Table:
        return self._one(each for each in self.judge.tables() if each.name() != table.name())

    def _one(self, tables: Iterable[Table]) -> Table:
        found = [*tables]
        if not found:
            raise Impossible
        return self.random.choice(found)

    def _place(self) -> str | None:
        """A location that is free, that is another table's, inside or around one, or shared."""
        tables = [*self.judge.tables()]
        there = self.random.choice(tables).location() if tables else f"{self.files.root}/x"
        around = there.rpartition("/")[0]
        if not around.startswith(self.files.root):  # files are looked for below the root alone
            around = there
        return self.random.choice(
            [
                None, None, None, f"{self.files.root}/loc{self.random.randrange(3)}", there, f"{there}/",
                f"{there}/data", f"{there}/data/inner", f"{there}/inner", f"{there}/metadata", around,
            ]
        )  # fmt: skip

    def _properties(self) -> dict[str, str]:
        shared = f"{self.files.root}/shared"
        if self._by_path:  # such a catalog finds the versions of a table in one folder
            return self.random.choice([{}, {}, {"write.data.path": shared}, MARKS_DELETED_ROWS])
        return self.random.choice(
            [
                {}, {}, {}, {"write.data.path": shared}, {"write.metadata.path": f"{shared}/meta"},
                {"write.data.path": shared, "write.object-storage.enabled": "true"}, FREES_OLD_METADATA,
                MARKS_DELETED_ROWS, {"write.data.path": shared, **MARKS_DELETED_ROWS},
            ]
        )  # fmt: skip

    def _batch(self, rows: int = 1) -> pa.Table:
        first = self._last_row + 1
        self._last_row += rows
        return pa.table({"id": [*range(first, first + rows)]}, schema=SCHEMA)

    # -- the steps --------------------------------------------------------------------------------------------------

    def _create(self, step: Step) -> None:
        name, properties = self.random.choice(self._names), self._properties()
        place = None if self._by_path else self._place()  # such a catalog finds a table by its path
        step.said += f" {name} at {place} with {properties}"
        step.names, step.after = [name], ()
        table = self.catalog.create_table(name, SCHEMA, location=place, properties=properties)
        step.actor = str(table.metadata.table_uuid)

    def _append(self, step: Step) -> None:
        table, batch = self._some(step), self._batch(3)
        step.after = (*step.before, *batch["id"].to_pylist())
        table.append(batch)

    def _overwrite(self, step: Step) -> None:
        table, batch = self._some(step), self._batch(2)
        step.after = tuple(batch["id"].to_pylist())
        table.overwrite(batch)

    def _delete(self, step: Step) -> None:
        table = self._some(step)
        if not step.before:
            raise Impossible
        doomed = self.random.choice(step.before)
        step.said += f" where id = {doomed}"
        step.after = tuple(each for each in step.before if each != doomed)
        table.delete(f"id = {doomed}")

    def _rename(self, step: Step) -> None:
        table, name = self._some(step), self.random.choice(self._names)
        step.said += f" to {name}"
        step.names.append(name)
        self.catalog.rename_table(table.name(), name)

    def _replace(self, step: Step) -> None:
        table, place, batch = self._some(step), self._place(), self._batch()
        step.said += f" to {place}"
        step.after = tuple(batch["id"].to_pylist())
        with self.catalog.replace_table_transaction(table.name(), SCHEMA, location=place) as tx:
            tx.append(batch)

    def _move(self, step: Step) -> None:
        table, place = self._some(step), self._place()
        step.said += f" to {place}"
        with table.transaction() as tx:
            tx.update_location(place or f"{self.files.root}/moved{self.random.randrange(3)}")

    def _set_data_path(self, step: Step) -> None:
        table = self._some(step)
        other = self._other(table)
        path = self.random.choice([f"{self.files.root}/shared", f"{other.location()}/data", other.location()])
        step.said += f" to {path}"
        table.set_properties({"write.data.path": path})

    def _register(self, step: Step) -> None:
        name = self.random.choice(self._names)
        there = self.files.all()
        # A version cannot be restored if the table itself deleted its files later.
        choices = [location for location, named in self._dropped if named <= there]
        choices += [each.metadata_location for each in self.judge.tables()]
        if not choices:
            raise Impossible
        location = self.random.choice(choices)
        step.said += f" {name} from {location}"
        step.names = [name]
        table = self.catalog.register_table(name, location)
        step.actor = str(table.metadata.table_uuid)
        step.after = self.judge.rows[table.metadata.current_snapshot_id]

    def _drop(self, step: Step) -> None:
        table = self._some(step)
        self.catalog.drop_table(table.name())
        self._dropped.append((table.metadata_location, named_by(table)))

    def _purge(self, step: Step) -> None:
        table = self._some(step)
        if self._by_path:
            self.judge.freed = f"{table.location()}/metadata"
        self.catalog.drop_table(table.name(), purge=True)

    def _orphans(self, step: Step) -> None:
        table = self._some(step)
        place = self.random.choice([None, None, f"{self.files.root}/shared", self._place()])
        step.said += f" in {place}"
        now = time.time_ns() // 1_000_000 if self.random.random() < 0.5 else None
        table.maintenance.remove_orphan_files(now, place, allow_recent=now is not None, dry_run=False)

    def _expire(self, step: Step) -> None:
        self._expire_all_but_one(self._some(step))

    def _compact(self, step: Step) -> None:
        table = self._some(step)
        table.maintenance.rewrite_data_files(rewrite_all=True)
        self._expire_all_but_one(table)

    def _expire_all_but_one(self, table: Table) -> None:
        table.maintenance.expire_snapshots(older_than=time.time_ns() // 1_000_000 + DAY_MS, retain_last=1)

    def _add_files(self, step: Step) -> None:
        table = self._some(step)
        other = self._other(table)
        files = [*dict.fromkeys(other.inspect.data_files()["file_path"].to_pylist())]
        step.said += f" of {other.name()}"
        if not files or not {*map(stated, files)} <= self.files.all():
            raise Impossible
        rows = [row for each in files for row in self.files.rows(stated(each))]
        step.after = tuple(sorted([*step.before, *rows]))
        table.add_files(files)
        self.judge.take(str(step.actor), files)
