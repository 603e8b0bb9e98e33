"""One process reads tables through all caches, and again without a cache: rows, plans and metadata tables are equal.

The reader keeps its table objects and its caches for a whole run, while others change the tables in every way, drop
them, and create or register other tables at the same places. Caches of any size evict values at any step, decoded
manifests of every size are on disk, and files there vanish or move to other names.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from catalogs import properties_of
from delete_files import commit, data_files, deletion_vectors, equality_deletes, position_deletes
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from icefield import Catalog, Table, load_catalog
from icefield.errors import IcefieldError
from icefield.manifest import clear_caches, decoded, resize_caches
from icefield.manifest.disk_cache import CACHE_FOLDER
from icefield.schema import schema_to_arrow
from icefield.types import LongType
from tables import EAGER

SOAK = bool(os.environ.get("ICEFIELD_SOAK"))
SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string()), ("value", pa.float32()), ("day", pa.date32())])
NAMES = ["db.a", "db.b"]
TRANSFORMS = [("id", "identity"), ("id", "bucket[3]"), ("name", "truncate[1]"), ("day", "month"), ("name", "identity")]
FILTERS = [
    "true",
    "id = 3",
    "id > 5 and name = 'b'",
    "name is null",
    "value <= 2.0 or day > '2001-06-01'",
    "id in (1,8)",
]
METADATA_TABLES = [
    "snapshots",
    "history",
    "refs",
    "manifests",
    "all_manifests",
    "entries",
    "all_entries",
    "files",
    "delete_files",
    "all_files",
    "partitions",
    "position_deletes",
]


def canonical(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def plan_of(scan: Any) -> list[str]:
    tasks = scan.plan_files(include_stats=True)
    return sorted(repr((one.file, one.residual, sorted(map(repr, one.delete_files)))) for one in tasks)


def questions(table: Table, chance: Random) -> list[tuple[str, dict[str, Any]]]:
    """Some reads of a table, each a kind and its arguments."""
    snapshots = [snapshot.snapshot_id for snapshot in table.snapshots()]
    versions: list[dict[str, Any]] = [{}, *({"ref": name} for name in table.refs())]
    versions += [{"snapshot_id": each} for each in chance.sample(snapshots, min(2, len(snapshots)))]
    asked: list[tuple[str, dict[str, Any]]] = []
    for version in versions:
        for given in chance.sample(FILTERS, 3):
            asked += [(kind, {"row_filter": given, **version}) for kind in chance.sample(["rows", "count", "plan"], 2)]
    asked += [(kind, {}) for kind in chance.sample(METADATA_TABLES, 5)]
    asked += [(kind, {"snapshot_id": each}) for each in snapshots[-1:] for kind in ("files", "entries")]
    chance.shuffle(asked)
    return asked


def answer(table: Table, kind: str, given: dict[str, Any]) -> Any:
    """The answer to a question, or its error."""
    try:
        match kind:
            case "rows":
                return canonical(table.scan(**given).to_arrow())
            case "count":
                return table.scan(**given).count()
            case "plan":
                return plan_of(table.scan(**given))
        return canonical(getattr(table.inspect, kind)(**given))
    except IcefieldError as error:
        return type(error)


class CachedReads(RuleBasedStateMachine):
    """Each rule changes tables by a catalog of its own; after it, two readers answer the same questions."""

    format_version = 2
    kind = "create"
    folder: Path
    counts: Counter[str]

    @initialize(seed=st.integers(0, 2**32), budget=st.sampled_from([0, 1_000, 20_000, 200_000, 1 << 30]))
    def begin(self, seed: int, budget: int) -> None:
        clear_caches()
        self.chance = Random(seed)
        self.counts["runs"] += 1
        self.root = self.folder / str(self.counts["runs"])
        self.root.mkdir()
        resize_caches(budget)
        properties = properties_of(self.kind, self.root)
        self.disk = self.root / "cache"
        self.cached = load_catalog("test", **properties, **{CACHE_FOLDER: str(self.disk)})
        self.uncached = {"io.manifest.cache-enabled": "false", **properties}
        self.warehouse = self.root / "warehouse"
        self.made = 0
        self.held: dict[str, Table] = {}
        self.writer.create_namespace("db")
        self.create(NAMES[0])

    @property
    def writer(self) -> Catalog:
        """A catalog without caches, as of another process, or the reader's own."""
        return self.cached if self.chance.random() < 0.5 else load_catalog("test", **self.uncached)

    def names(self) -> list[str]:
        return [name for name in NAMES if self.cached.table_exists(name)]

    def table(self) -> Table:
        """A table to change, as a writer of its own sees it."""
        if not self.names():
            self.create(NAMES[0])
        return self.writer.load_table(self.chance.choice(self.names()))

    def create(self, name: str) -> None:
        modes = {f"write.{each}.mode": self.chance.choice(["copy-on-write", "merge-on-read"]) for each in ("delete",)}
        merge = {"commit.manifest.min-count-to-merge": self.chance.choice(["1", "2", "100"])}
        given = {**EAGER, **merge, "format-version": str(self.format_version)}
        given |= modes if self.format_version > 1 else {}
        given |= {"write.metadata.metrics.default": self.chance.choice(["none", "counts", "truncate(1)", "full"])}
        location = {} if self.kind == "create" else {"location": f"file://{self.warehouse}/db/{name[-1]}"}
        self.writer.create_table(name, SCHEMA, properties=given, **location)

    def rows(self, table: Table, count: int | None = None) -> pa.Table:
        chance = self.chance
        count = chance.choice([0, 1, 3, 9]) if count is None else count
        values: dict[str, list[Any]] = {
            "id": [chance.randint(0, 9) for _ in range(count)],
            "name": [chance.choice(["a", "bb", "b", None]) for _ in range(count)],
            "value": [chance.choice([1.0, 2.5, float("nan"), None]) for _ in range(count)],
            "day": [chance.choice([1, 400, 11_400, None]) for _ in range(count)],
        }
        schema = schema_to_arrow(table.schema())
        found = {}
        for field in schema:
            kind = pa.string() if pa.types.is_string(field.type) else pa.int32()
            given = values.get(field.name, [chance.choice([None, 5, 6]) for _ in range(count)])
            plain = pa.array([str(each) if each is not None and kind == pa.string() else each for each in given])
            found[field.name] = (
                plain.cast(pa.int32()).cast(field.type) if field.name == "day" else plain.cast(field.type)
            )
        return pa.table(found, schema=pa.schema([field.with_nullable(True) for field in schema]))

    # -- changes of rows ----------------------------------------------------------------------------------------------

    @rule(many=st.integers(1, 4))
    def append(self, many: int) -> None:
        table = self.table()
        branches = [name for name, ref in table.refs().items() if str(ref.type) == "branch"] or ["main"]
        for _ in range(many):
            table.append(self.rows(table), branch=self.chance.choice(branches))

    @rule()
    def delete(self) -> None:
        self.table().delete(self.chance.choice(FILTERS[1:]))

    @rule()
    def overwrite(self) -> None:
        table = self.table()
        table.overwrite(self.rows(table), self.chance.choice(FILTERS[1:]))

    @rule()
    def upsert(self) -> None:
        table = self.table()
        one = self.rows(table, 1)
        table.upsert(one, ["id"])

    @rule(kind=st.sampled_from(["equality", "position", "vector"]))
    def foreign_deletes(self, kind: str) -> None:
        """Delete rows as other engines do."""
        table = self.table()
        files = data_files(table) if table.current_snapshot() is not None else []
        if self.format_version == 1 or not files:
            return
        like = self.chance.choice(files)
        if kind == "equality":
            made = [equality_deletes(table, ["id"], [{"id": self.chance.randint(0, 9)}], like=like)]
        elif kind == "position" and self.format_version == 2:
            made = [position_deletes(table, [(like.file_path, 0)], like=like)]
        elif self.format_version == 3 and not table.inspect.delete_files().num_rows:
            made = deletion_vectors(table, {like: [0]})
        else:
            return
        commit(table, *made)

    # -- changes of the shape -----------------------------------------------------------------------------------------

    @rule(what=st.sampled_from(["add", "rename", "drop", "again", "promote"]))
    def change_columns(self, what: str) -> None:
        table, chance = self.table(), self.chance
        used = {table.schema().find_column_name(field.source_id) for field in table.spec().fields}
        names = [name for name in table.schema().column_names if name not in ("id", "name", "value", "day", *used)]
        self.made += 1
        with table.update_schema() as update:
            if what == "promote":
                for name, old, new in (("id", "int", "long"), ("value", "float", "double")):
                    if str(table.schema().find_field(name).field_type) == old and chance.random() < 0.5:
                        update.update_column(name, new)
            elif what == "add" or not names:
                update.add_column(f"c{self.made}", chance.choice(["int", "string"]))
            elif what == "rename":
                update.rename_column(chance.choice(names), f"r{self.made}")
            else:
                update.delete_column(name := chance.choice(names))
        if what == "again" and names:  # another column of the same name
            with table.update_schema() as update:
                update.add_column(name, LongType())

    @rule()
    def change_partitions(self) -> None:
        table = self.table()
        with table.update_spec() as update:
            if table.spec().fields:
                update.remove_field(self.chance.choice(table.spec().fields).name)
            else:
                update.add_field(*self.chance.choice(TRANSFORMS))

    # -- history ------------------------------------------------------------------------------------------------------

    @rule(kind=st.sampled_from(["branch", "tag", "roll back", "fast-forward", "remove"]))
    def change_refs(self, kind: str) -> None:
        table, chance = self.table(), self.chance
        if table.current_snapshot() is None:
            return
        self.made += 1
        target = chance.choice(table.snapshots()).snapshot_id
        refs = [name for name in table.refs() if name != "main"]
        change = table.manage_snapshots()
        if kind == "branch":
            change.create_branch(target, f"b{self.made}")
        elif kind == "tag":
            change.create_tag(target, f"t{self.made}")
        elif kind == "roll back":
            change.set_current_snapshot(target)
        elif refs:
            name = chance.choice(refs)
            (change.remove_branch if name.startswith("b") else change.remove_tag)(name)
        else:
            return
        change.commit()

    @rule(what=st.sampled_from(["manifests", "data", "expire", "equality", "positions", "dangling", "statistics"]))
    def maintain(self, what: str) -> None:
        table = self.table()
        if table.current_snapshot() is None:
            return
        maintenance = table.maintenance
        match what:
            case "manifests":
                maintenance.rewrite_manifests()
            case "data":
                maintenance.rewrite_data_files(rewrite_all=True)
            case "expire":
                maintenance.expire_snapshots(older_than=2**50, retain_last=self.chance.randint(1, 3))
            case "equality":
                maintenance.convert_equality_deletes()
            case "positions":
                maintenance.rewrite_position_delete_files(rewrite_all=True)
            case "dangling":
                maintenance.remove_dangling_deletes()
            case "statistics":
                maintenance.compute_partition_stats()

    # -- other tables at the same places ------------------------------------------------------------------------------

    @rule(name=st.sampled_from(NAMES), how=st.sampled_from(["drop", "purge", "vanish"]))
    def replace(self, name: str, how: str) -> None:
        """Another table takes the place of a table: with its versions after those of the old one, or from the first."""
        writer = self.writer
        if writer.table_exists(name):
            writer.drop_table(name, purge=how == "purge")
        if how == "vanish":
            shutil.rmtree(self.warehouse / "db" / name[-1], ignore_errors=True)
        self.create(name)

    @rule(name=st.sampled_from(NAMES))
    def restore(self, name: str) -> None:
        """The files of a table are replaced by an older copy of them, or copied for later."""
        place, copy = self.warehouse / "db" / name[-1], self.root / f"copy-{name}"
        if self.kind != "create":
            return
        if copy.exists():
            shutil.rmtree(place, ignore_errors=True)
            copy.rename(place)
        elif place.exists():
            shutil.copytree(place, copy)

    @rule(name=st.sampled_from(NAMES))
    def register(self, name: str) -> None:
        """An older version of a table becomes the table."""
        writer = self.writer
        if self.kind == "create" or not writer.table_exists(name):
            return
        table = writer.load_table(name)
        chosen = self.chance.choice([table.metadata_location, *(e.metadata_file for e in table.metadata.metadata_log)])
        writer.drop_table(name)
        try:
            writer.register_table(name, chosen)
        except IcefieldError:  # the version was deleted
            writer.register_table(name, table.metadata_location)

    # -- the caches ---------------------------------------------------------------------------------------------------

    @rule(budget=st.sampled_from([0, 1_000, 20_000, 200_000, 1 << 30]))
    def resize(self, budget: int) -> None:
        resize_caches(budget)

    @rule(how=st.sampled_from(["new process", "lost", "mixed"]))
    def disturb(self, how: str) -> None:
        """The memory of a new process is empty. Files of the folder vanish, or take the names of others."""
        clear_caches()
        files = sorted(self.disk.glob("*")) if self.disk.exists() else []
        if how == "lost":
            for file in files[::2]:
                file.unlink()
        elif how == "mixed" and len(files) > 1:
            for file, other in pairwise(files):
                shutil.copyfile(file, other)

    # -- the comparison -----------------------------------------------------------------------------------------------

    @invariant()
    def both_readers_read_the_same(self) -> None:
        for name in self.names():
            fresh = load_catalog("test", **self.uncached).load_table(name)
            held = self.held.get(name)
            try:
                held = self.cached.load_table(name) if held is None or self.chance.random() < 0.3 else held.refresh()
            except IcefieldError:  # another table has this name now
                held = self.cached.load_table(name)
            self.held[name] = held
            assert held.metadata == fresh.metadata
            asked = questions(fresh, self.chance)
            with ThreadPoolExecutor(3) as pool:
                found = list(pool.map(lambda each, table=held: answer(table, *each), asked))
            for question, one in zip(asked, found, strict=True):
                self.counts[question[0]] += 1
                other = answer(fresh, *question)
                assert one == other, question
                self.counts["errors"] += isinstance(other, type)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            self.counts["files on disk"] += len(list(self.disk.glob("*")))
            shutil.rmtree(self.root)


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["create", "sql"])
@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_a_process_reads_the_same_with_and_without_caches(
    format_version: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(decoded, "_LEAST_ON_DISK", 0)
    counts: Counter[str] = Counter()
    given = {"format_version": format_version, "kind": kind, "folder": tmp_path, "counts": counts}
    machine = type("Machine", (CachedReads,), given)
    examples, steps = (25, 25) if SOAK else (3, 12)
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=[phase for phase in Phase if SOAK or phase is not Phase.shrink],
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    try:
        run_state_machine_as_test(machine, settings=chosen)
    finally:
        resize_caches()
        clear_caches()
    assert counts["files on disk"]
    with capsys.disabled():
        if SOAK:
            print(f"\nversion {format_version}, {kind}: {dict(counts)}")
