"""Repairs of tables: each planted breach that can be put right is, by a commit, and no row comes or goes by it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import MemoryFileSystem, Table
from icefield.errors import IcefieldError, InvalidArgument, NotSupportedByCatalog
from icefield.manifest import clear_caches
from icefield_maintenance import MaintenanceTable
from icefield_maintenance.compaction import RewriteDataFilesResult
from icefield_maintenance.doctor import Repair, Result, examine_table, repair_table
from icefield_maintenance.doctor.tables import rules
from icefield_maintenance.doctor.tables.rules import BY_NAME_ONLY, Rule
from planted_breaches import PLANTED
from planted_faults import Planted
from tables import ids, new_table, orphans
from tables import rows as of

RULES = {rule.name: rule for rule in vars(rules).values() if isinstance(rule, Rule)}
REPAIRABLE = [name for name, (_, _, rule) in PLANTED.items() if RULES[rule].repair is not None]
FORGED = "a deletion vector in version 2"
"""No vector, but a position delete file that is called one: there is nothing that an upgrade could put right."""


def found(table: Table) -> set[str]:
    """The rules that a table breaks."""
    return {
        finding.check
        for group in examine_table(table, whole=True)
        for finding in group.findings
        if finding.result not in (Result.OK, Result.SKIPPED)
    }


def rows(table: Table) -> pa.Table | None:
    """The rows of a table by id; None for one that cannot be read."""
    try:
        return table.scan().to_arrow().select(["id", "kind", "value"]).sort_by("id")
    except IcefieldError:
        return None


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def planted(name: str, folder: Path) -> tuple[Planted, pa.Table]:
    """A table with a breach, and the rows that it had before."""
    made, plant, _ = PLANTED[name]
    subject = Planted.sound(folder, **made)
    before = rows(subject.table)
    assert before is not None
    plant(subject)
    clear_caches()
    return subject, before


def test_every_rule_has_a_repair_or_says_why_there_is_none():
    assert [name for name, rule in RULES.items() if (rule.repair is None) != bool(rule.no_repair)] == []


@pytest.mark.parametrize("name", [name for name in REPAIRABLE if name != FORGED])
def test_a_repaired_breach_is_found_no_more_and_the_rows_are_the_same(name, tmp_path):
    subject, before = planted(name, tmp_path)
    rule = RULES[PLANTED[name][2]]
    assert rule.repair is not None
    table = subject.loaded()
    readable = rows(table)
    untouched = files(tmp_path)
    planned = repair_table(table, [rule.repair], whole=True)
    assert files(tmp_path) == untouched
    assert [step.repair for step in planned.steps] == [rule.repair]
    assert rule.name not in {finding.check for finding in planned.left}
    version = table.metadata_location
    made = repair_table(table, [rule.repair], whole=True, dry_run=False)
    assert [step.repair for step in made.steps] == [rule.repair]
    assert rule.name in made.steps[0].rules
    assert (made.steps[0].rules, made.steps[0].locations) == (planned.steps[0].rules, planned.steps[0].locations)
    assert {finding.check for finding in made.left} <= {finding.check for finding in planned.left}
    assert table.metadata_location != version
    again = subject.loaded()
    clear_caches()
    assert found(again) == set()
    after = rows(again)
    if rule.repair is Repair.FORGET_MISSING_FILES:
        assert after is not None
        assert set(after["id"].to_pylist()) < set(before["id"].to_pylist())
    else:
        assert after == (before if readable is None else readable)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PLANTED if name not in REPAIRABLE or name == FORGED])
def test_what_cannot_be_repaired_is_left_and_says_why(name, tmp_path):
    subject, _ = planted(name, tmp_path)
    table = subject.loaded()
    before = found(table)
    made = repair_table(table, list(set(Repair) - BY_NAME_ONLY), whole=True, dry_run=False)
    rule = RULES[PLANTED[name][2]]
    left = {finding.check: finding for finding in made.left}
    assert rule.name in before
    assert rule.name in left
    assert left[rule.name].no_repair or left[rule.name].repair is not None


def test_a_sound_table_is_left_as_it_is(tmp_path):
    table = Planted.sound(tmp_path).loaded()
    untouched = files(tmp_path)
    made = repair_table(table, list(Repair), whole=True, dry_run=False)
    assert (made.steps, made.left) == ((), ())
    assert files(tmp_path) == untouched


def test_what_gives_up_rows_or_shuts_out_readers_is_repaired_by_name_only(tmp_path):
    subject, _ = planted("a data file that is gone", tmp_path)
    made = repair_table(subject.loaded(), whole=True, dry_run=False)
    assert made.steps == ()
    assert [finding.check for finding in made.left] == ["files-missing", "files-damaged"]


def test_rows_of_another_partition_are_moved_by_name_only(tmp_path):
    subject, _ = planted("rows of another partition", tmp_path)
    made = repair_table(subject.loaded(), whole=True, dry_run=False)
    assert Repair.REWRITE_PARTITIONS not in {step.repair for step in made.steps}
    assert {finding.check for finding in made.left} == {"partition-values", "delete-partitions"}


def test_each_branch_is_repaired_and_what_a_tag_names_is_left(tmp_path):
    subject = Planted.sound(tmp_path)
    with subject.table.manage_snapshots() as refs:
        refs.create_branch(subject.table.metadata.current_snapshot_id, "audit")
    PLANTED["an upper bound below a value"][1](subject)
    clear_caches()
    table = subject.loaded()
    made = repair_table(table, [Repair.CORRECT_ENTRIES], whole=True, dry_run=False)
    assert [step.branch for step in made.steps] == ["main", "audit"]
    assert made.left == ()
    tagged = Planted.sound(tmp_path / "tagged")
    with tagged.table.manage_snapshots() as refs:
        refs.create_tag(tagged.table.metadata.current_snapshot_id, "kept")
    PLANTED["an upper bound below a value"][1](tagged)
    clear_caches()
    made = repair_table(tagged.loaded(), [Repair.CORRECT_ENTRIES], whole=True, dry_run=False)
    assert [step.branch for step in made.steps] == ["main"]
    assert {finding.check for finding in made.left} == {"bounds"}


def test_a_repair_beside_an_append_keeps_both(tmp_path):
    subject, before = planted("an upper bound below a value", tmp_path)
    table, other = subject.loaded(), subject.loaded()
    other.append(before.slice(0, 1).set_column(0, before.schema.field("id"), pa.array([100], pa.int64())))
    made = repair_table(table, [Repair.CORRECT_ENTRIES], whole=True, dry_run=False)
    assert made.left == ()
    after = rows(subject.loaded())
    assert after is not None
    assert after["id"].to_pylist() == [*before["id"].to_pylist(), 100]


def test_a_repair_that_something_else_hinders_says_so_and_others_are_made(tmp_path):
    subject, _ = planted("two deletion vectors of one file", tmp_path)
    subject.edit_metadata(lambda document: document.update({"last-column-id": 1}))
    made = repair_table(subject.loaded(), whole=True, dry_run=False)
    failed = {step.repair: step.failed for step in made.steps}
    assert failed[Repair.REWRITE_METADATA] == ""
    assert "has two deletion vectors" in failed[Repair.REWRITE_DATA_FILES]
    assert {finding.check for finding in made.left} == {"vectors-twice", "delete-debt"}


def test_a_table_without_a_catalog_is_repaired_in_dry_runs_only(tmp_path):
    subject, _ = planted("an upper bound below a value", tmp_path)
    assert len(repair_table(subject.again(), whole=True).steps) == 1
    with pytest.raises(NotSupportedByCatalog, match="load it through a catalog to change it"):
        repair_table(subject.again(), whole=True, dry_run=False)


def test_what_is_no_repair_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="a repair is one of REWRITE_METADATA"):
        repair_table(Planted.sound(tmp_path).table, ["everything"])  # type: ignore[list-item]


@contextmanager
def interrupted_at(step: int) -> Iterator[None]:
    """Ctrl-C before or after one of the calls that change the storage; each file of a deletion is a call."""
    steps = itertools.count(1)

    def stepping(inner: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            if next(steps) == step:
                raise KeyboardInterrupt
            result = inner(*arguments, **options)
            if next(steps) == step:
                raise KeyboardInterrupt
            return result

        return called

    with pytest.MonkeyPatch.context() as patched:
        delete_many = stepping(MemoryFileSystem.delete_many)

        def one_by_one(self: MemoryFileSystem, locations: Any) -> None:
            for location in locations:
                delete_many(self, [location])

        patched.setattr(MemoryFileSystem, "delete_many", one_by_one)
        for name in ("put", "open_output", "rename"):
            patched.setattr(MemoryFileSystem, name, stepping(getattr(MemoryFileSystem, name)))
        yield


@pytest.mark.slow
def test_an_expiry_that_was_interrupted_at_any_step_is_finished_by_the_next_repair():
    left = set()
    for step in itertools.count(1):
        table = new_table(**{"history.expire.max-snapshot-age-ms": "1"})
        for number in range(3):
            table.append(of([number]))
        table.overwrite(of([9]))
        time.sleep(0.003)
        try:
            with interrupted_at(step):
                repair_table(table, [Repair.EXPIRE_SNAPSHOTS], dry_run=False)
            ended = True
        except KeyboardInterrupt:
            ended = False
        table.refresh()
        left.add(len(table.snapshots()))
        made = repair_table(table, [Repair.EXPIRE_SNAPSHOTS], dry_run=False)
        assert made.left == ()
        assert orphans(table) == set(), step
        assert (ids(table), len(table.snapshots())) == ([9], 1)
        if ended:
            break
    assert made.steps == ()
    assert left == {1, 4}, "no interrupt came before the commit, or none after it"
    assert step > 20


def test_what_an_expiry_left_is_found_and_says_what_deletes_it():
    table = new_table()
    for number in range(3):
        table.append(of([number]))
    table.maintenance.expire_snapshots(2**60, clean_files=False)
    assert found(table) == {"unfinished-expiry"}
    made = repair_table(table, [Repair.EXPIRE_SNAPSHOTS], dry_run=False)
    assert [step.rules for step in made.steps] == [("unfinished-expiry",)]
    assert found(table) == set()
    assert orphans(table) == set()


def test_nothing_is_said_of_old_snapshots_where_nothing_may_expire():
    table = new_table(**{"history.expire.max-snapshot-age-ms": "1"})
    table.append(of([1]))
    table.append(of([2]))
    time.sleep(0.003)
    assert found(table) == {"old-snapshots"}
    table.set_properties({"history.expire.min-snapshots-to-keep": "2"})
    assert found(table) == set(), "expiry would keep them"
    table.set_properties({"history.expire.min-snapshots-to-keep": "1", "gc.enabled": "false"})
    assert found(table) == set(), "expiry would be refused"


def compacted(refs: str, **properties: str) -> Table:
    """A table whose main is compact, and of which a tag or a branch holds what it was before."""
    table = new_table(**properties)
    for number in range(6):
        table.append(of([number, 10 + number]))
    if properties:
        table.delete("id < 3")
    with table.manage_snapshots() as manage:
        getattr(manage, refs)(table.metadata.current_snapshot_id, "before")
    table.maintenance.rewrite_data_files(rewrite_all=True, remove_dangling_deletes=True)
    return table


@pytest.mark.parametrize("refs", ["create_tag", "create_branch"])
@pytest.mark.parametrize("properties", [{}, {"write.delete.mode": "merge-on-read"}])
def test_files_and_deletes_that_only_other_heads_hold_ask_for_no_maintenance(refs, properties):
    table = compacted(refs, **properties)
    assert found(table) == set()
    made = repair_table(table, dry_run=False)
    assert (made.steps, made.left) == ((), ())


def alike(subject: Planted, *repairs: Repair) -> tuple[Any, set[tuple[str, str, bool]]]:
    """What a dry run plans and the repair does, which is the same; and what is left: checks, files, repairable."""
    outcomes = []
    for dry_run in (True, False):
        clear_caches()
        made = repair_table(subject.loaded(), repairs or None, whole=True, dry_run=dry_run)
        steps = [(step.repair, step.branch, step.rules, step.locations, bool(step.failed)) for step in made.steps]
        left = {(finding.check, finding.location, finding.repair is not None) for finding in made.left}
        outcomes.append((steps, left))
    assert outcomes[0] == outcomes[1]
    return outcomes[1]


def test_a_missing_delete_file_is_left_and_has_no_repair(tmp_path):
    subject = Planted.sound(tmp_path)
    lost = subject.delete_file()
    lost.unlink()
    steps, left = alike(subject, Repair.FORGET_MISSING_FILES)
    assert steps == []
    assert left == {("files-missing", f"file://{lost}", False), ("deletes-damaged", f"file://{lost}", False)}
    missing, *_ = repair_table(subject.loaded(), [Repair.FORGET_MISSING_FILES]).left
    assert missing.no_repair == "without the delete file, the rows that it deletes would be there again"


def test_a_dry_run_promises_nothing_of_files_that_a_tag_still_names(tmp_path):
    subject = Planted.sound(tmp_path)
    table = subject.table
    first = subject.data_file()
    with table.manage_snapshots() as refs:
        refs.create_tag(table.metadata.current_snapshot_id, "kept")
    table.overwrite(table.scan().to_arrow())
    second = subject.data_file()
    table.append(table.scan("id = 1").to_arrow())
    assert first != second
    first.unlink()
    second.unlink()
    steps, left = alike(subject, Repair.FORGET_MISSING_FILES)
    assert [(branch, files) for _, branch, _, files, _ in steps] == [("main", (f"file://{second}",))]
    assert {file for check, file, _ in left if check == "files-missing"} == {f"file://{first}"}


def test_a_dry_run_leaves_what_main_and_a_tag_both_name(tmp_path):
    subject = Planted.sound(tmp_path)
    with subject.table.manage_snapshots() as refs:
        refs.create_tag(subject.table.metadata.current_snapshot_id, "kept")
    PLANTED["an upper bound below a value"][1](subject)
    steps, left = alike(subject, Repair.CORRECT_ENTRIES)
    assert [branch for _, branch, _, _, _ in steps] == ["main"]
    assert {check for check, _, _ in left} == {"bounds"}


def test_a_claim_of_a_sort_order_is_taken_back_from_a_delete_file(tmp_path):
    subject = Planted.sound(tmp_path)
    before = rows(subject.table)
    subject.edit_files(lambda record: record.update(sort_order_id=9), content=1)
    steps, left = alike(subject, Repair.CORRECT_ENTRIES)
    assert [(branch, files) for _, branch, _, files, _ in steps] == [("main", (f"file://{subject.delete_file()}",))]
    assert left == set()
    assert rows(subject.loaded()) == before


def test_counts_of_a_delete_file_that_cannot_be_have_no_repair(tmp_path):
    subject = Planted.sound(tmp_path)
    subject.edit_files(lambda record: record.update(record_count=-1), content=1)
    steps, left = alike(subject, Repair.CORRECT_ENTRIES)
    assert steps == []
    assert ("counts-impossible", f"file://{subject.delete_file()}", False) in left


def test_a_dry_run_says_that_a_manifest_which_is_gone_hinders_a_repair(tmp_path):
    subject = Planted.sound(tmp_path)
    subject.edit_list(lambda records: [record.update(added_files_count=7) for record in records])
    subject.manifest().unlink()
    steps, left = alike(subject, Repair.REWRITE_MANIFESTS)
    assert [failed for *_, failed in steps] == [True]
    assert {check for check, _, _ in left} == {"manifest-files", "manifest-counts"}


@pytest.mark.parametrize("dry_run", [True, False])
def test_maintenance_that_changes_nothing_is_no_step(dry_run, monkeypatch):
    table = new_table()
    for number in range(6):
        table.append(of([number]))
    nothing = RewriteDataFilesResult(dry_run=dry_run)
    monkeypatch.setattr(MaintenanceTable, "rewrite_data_files", lambda *_, **__: nothing)
    made = repair_table(table, [Repair.REWRITE_DATA_FILES], dry_run=dry_run)
    assert made.steps == ()
    assert [finding.check for finding in made.left] == ["small-files"]


@pytest.mark.parametrize(
    ("name", "repair"),
    [
        ("a data file that is listed twice", Repair.REWRITE_MANIFESTS),
        ("a deletion vector with another cardinality", Repair.REWRITE_DATA_FILES),
    ],
)
def test_a_dry_run_says_that_something_else_which_is_broken_hinders_a_repair(name, repair, tmp_path):
    made, plant, rule = PLANTED[name]
    subject = Planted.sound(tmp_path, **made)
    plant(subject)
    steps, left = alike(subject)
    assert [step for step, *_, failed in steps if failed] == [repair]
    assert rule in {check for check, _, _ in left}


@pytest.mark.parametrize(
    "name", [name for name, (*_, rule) in PLANTED.items() if rule in ("delete-partitions", "delete-metrics")]
)
def test_no_delete_is_removed_as_one_of_nothing_while_its_entry_is_wrong(name, tmp_path):
    """Readers do not apply it, but for what its manifest says of it: with the file the rows would be lost for good."""
    made, plant, _ = PLANTED[name]
    subject = Planted.sound(tmp_path, **made)
    plant(subject)
    before = set(subject.loaded().inspect.delete_files()["file_path"].to_pylist())
    steps, _ = alike(subject)
    assert {step for step, *_, failed in steps if not failed} <= {Repair.REWRITE_MANIFESTS, Repair.CORRECT_ENTRIES}
    assert set(subject.loaded().inspect.delete_files()["file_path"].to_pylist()) == before
