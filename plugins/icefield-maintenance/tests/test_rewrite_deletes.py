"""Delete files rewritten, converted and removed: rows stay the same, beside writers of any kind."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from delete_files import data_files
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield import Table
from icefield.abc import WorkRunner
from icefield.errors import CommitFailed, InvalidArgument, UnsupportedFeature, ValidationFailed
from icefield.manifest import DataFile, DataFileContent
from icefield.metadata import Operation
from icefield.transaction import RewriteFiles
from icefield.writing import WriteContext, write_batches
from icefield_maintenance import MaintenanceTable
from icefield_maintenance.deletes import marks
from pickling_runner import PicklingRunner
from rewritten_deletes import (
    MERGE_ON_READ,
    MaintenanceCall,
    convert,
    deletes,
    kinds,
    live,
    remove_dangling,
    rewrite,
    rewrite_all,
)
from tables import again, ids, meddled, new_table, orphans, rows, stored_files


def changed(table: Table, draw: random.Random, step: int) -> None:
    """One random change."""
    most = 20 * (step + 1)
    some = sorted({draw.randrange(most) for _ in range(5)})
    within = f"id in ({', '.join(map(str, some))})"
    match draw.randrange(10):
        case 0 | 1 | 2:
            table.append(rows(range(20 * step, most), draw.choice(["a", "b", None])))
        case 3 | 4 | 5:
            table.delete(within)
        case 6 | 7:
            table.delete_by_equality(rows(some, draw.choice("ab")).select(["id", "kind"]), ["id", "kind"])
        case 8:
            table.delete(f"kind = '{draw.choice('ab')}' and id < {draw.randrange(most)}")
        case 9 if draw.random() < 0.3:
            with table.update_spec() as spec:
                if table.spec().fields:
                    spec.remove_field("kind")
                else:
                    spec.add_field("kind", "identity", "kind")
        case _:
            table.update(within, {"value": float(step)})


def lived(seed: int, version: int, raised: bool, granularity: str = "partition", steps: int = 9) -> Table:
    """A table after random changes; ``raised`` to version 3 half-way."""
    draw = random.Random(seed)
    given = {"format-version": str(version), "write.delete.granularity": granularity, **MERGE_ON_READ}
    table = new_table(["kind"], properties=given)
    table.append(rows(range(20), "a"))
    for step in range(1, steps):
        if raised and step == steps // 2:
            with table.transaction() as tx:
                tx.upgrade_table_version(3)
        changed(table, draw, step)
    return table


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**20),
    version=st.sampled_from([(2, False), (2, True), (3, False)]),
    granularity=st.sampled_from(["partition", "file"]),
    maintenance=st.lists(st.sampled_from([rewrite, rewrite_all, remove_dangling, convert]), min_size=1, max_size=3),
    memory=st.sampled_from([1, 1 << 20]),
    runner=st.sampled_from([None, PicklingRunner()]),
)
def test_rows_stay_the_same(
    seed: int,
    version: tuple[int, bool],
    granularity: str,
    maintenance: list[MaintenanceCall],
    memory: int,
    runner: WorkRunner | None,
) -> None:
    table = lived(seed, *version, granularity)
    before = live(table)
    columns = ("id", "_row_id", "_last_updated_sequence_number")
    lineage = sorted(map(str, table.scan(selected_fields=columns).to_arrow().to_pylist()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marks, "_HELD_POSITIONS", memory)
        patch.setattr(marks, "_FEWEST_IN_A_LOT", 1)
        if runner is not None:
            on_runner = property(lambda table: MaintenanceTable(table).on(runner))
            patch.setattr(Table, "maintenance", on_runner, raising=False)
        for one in maintenance:
            old = deletes(table)
            made = one(table)
            assert live(again(table).refresh()) == before
            new = deletes(table)
            if made.snapshot_id is None:
                assert new.keys() == old.keys()
                continue
            snapshot = table.current_snapshot()
            assert snapshot is not None
            assert snapshot.snapshot_id == made.snapshot_id
            assert snapshot.operation is Operation.REPLACE
            newest = max((number for _, number in old.values()), default=0)
            assert all(number <= newest for _, number in new.values()), "a rewrite makes no delete newer than all were"
            totals = Counter(file.content for file, _ in new.values())
            assert snapshot.summary["total-equality-deletes"] == str(
                sum(file.record_count for file, _ in new.values() if file.content is DataFileContent.EQUALITY_DELETES)
            )
            assert snapshot.summary["total-delete-files"] == str(totals.total())
            assert not orphans(table)
            if one is convert:
                assert "equality_deletes" not in kinds(table)
            if one is rewrite_all:
                assert "position_deletes" not in kinds(table) or table.format_version == 2
            if one is rewrite and table.format_version == 3:
                one(table)  # what position deletes became makes another small Puffin file, next to those of vectors
            if one in (remove_dangling, convert, rewrite):
                assert one(table).snapshot_id is None, "a second run finds nothing to do"
    assert sorted(map(str, table.scan(selected_fields=columns).to_arrow().to_pylist())) == lineage


def appending(other: Table) -> None:
    other.append(rows([900], "a"))


def deleting(other: Table) -> None:
    other.delete("id = 7")


def deleting_by_equality(other: Table) -> None:
    other.delete_by_equality(rows([8], "a").select(["id", "kind"]), ["id", "kind"])


def dropping(other: Table) -> None:
    other.delete("kind = 'b'")


def replacing(other: Table) -> None:
    other.overwrite(rows([40, 41], "a"), "kind = 'a'")


@pytest.mark.parametrize(
    "meddle", [appending, deleting, deleting_by_equality, dropping, replacing, rewrite_all, convert, remove_dangling]
)
@pytest.mark.parametrize("maintenance", [rewrite_all, convert, remove_dangling])
@pytest.mark.parametrize("version", [2, 3])
def test_what_others_commit_meanwhile_counts(
    meddle: MaintenanceCall, maintenance: MaintenanceCall, version: int
) -> None:
    def begun() -> Table:
        table = new_table(["kind"], properties={"format-version": str(version), **MERGE_ON_READ})
        for kind in "ab":
            table.append(rows(range(20), kind))
        table.delete("id in (1, 2)")
        table.delete("id = 3")
        table.delete_by_equality(rows([4, 5], "a").select(["id", "kind"]), ["id", "kind"])
        table.delete_by_equality(rows([4, 5], "dangling").select(["id", "kind"]), ["id", "kind"])
        return table

    table, expected = begun(), begun()
    meddle(expected)
    maintenance(meddled(table, meddle))
    assert live(table.refresh()) == live(expected)
    assert not orphans(table)
    maintenance(table)
    assert live(table) == live(expected)


def test_a_data_file_of_an_old_sequence_number_that_comes_meanwhile_is_converted_too() -> None:
    table = new_table(properties={"format-version": "2"})
    table.append(rows(range(10)))
    (file,) = data_files(table)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    table.delete_by_equality(pa.table({"id": [3]}), ["id"])

    def compact(other: Table) -> None:
        writer = new_rows(other)
        with other.transaction() as tx:
            rewriting = RewriteFiles(tx.stage)
            rewriting.delete_file(file).add_file(*writer).data_sequence_number(1).commit()

    meddled(table, compact).maintenance.convert_equality_deletes()
    assert kinds(table.refresh()) == {"position_deletes": 1}
    assert ids(table) == [n for n in range(10) if n != 3]


def new_rows(table: Table) -> list[DataFile]:
    """The first ten rows in a new file, as a compaction writes it without their deletes."""
    return write_batches(WriteContext.from_metadata(table.metadata, table.io), rows(range(10)).to_batches())


def test_deletes_that_were_rewritten_meanwhile_are_found_by_who_checks_for_new_ones() -> None:
    table = new_table(properties={"format-version": "2", **MERGE_ON_READ})
    table.append(rows(range(10)))
    table.delete("id = 1")
    (file,) = data_files(table)
    read = table.current_snapshot()
    assert read is not None
    # Compaction has read the file up to here.
    old = again(table)
    table.maintenance.rewrite_position_delete_files(rewrite_all=True)
    with old.transaction() as tx:
        rewriting = RewriteFiles(tx.stage).validate_from_snapshot(read.snapshot_id)
        rewriting.delete_file(file).add_file(*new_rows(old)).commit()
    table.refresh()
    (file,) = data_files(table)
    read = table.current_snapshot()
    assert read is not None
    table.delete("id = 2")
    table.maintenance.rewrite_position_delete_files(rewrite_all=True)
    rewriting = RewriteFiles(table.stage).validate_from_snapshot(read.snapshot_id)
    rewriting.delete_file(file).add_file(*new_rows(table))
    with pytest.raises(ValidationFailed, match="row-level deletes"):
        rewriting.commit()


def test_maintenance_that_always_loses_leaves_nothing() -> None:
    table = new_table(properties={"format-version": "3", "commit.retry.num-retries": "1", **MERGE_ON_READ})
    table.append(rows(range(10)))
    table.delete("id = 1")
    with pytest.raises(CommitFailed):
        rewrite_all(meddled(table, *[appending] * 3))
    assert not orphans(table)


@pytest.mark.parametrize("maintenance", [rewrite_all, convert, remove_dangling])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_table_without_deletes_stays(maintenance: MaintenanceCall, version: int) -> None:
    table = new_table(["kind"], properties={"format-version": str(version)})
    assert maintenance(table).snapshot_id is None
    table.append(rows(range(3)))
    before = stored_files(table)
    assert maintenance(table).snapshot_id is None
    assert stored_files(table) == before


def test_what_cannot_be_done_is_refused() -> None:
    table = new_table(properties={"format-version": "2"})
    with pytest.raises(InvalidArgument, match="min_input_files"):
        table.maintenance.rewrite_position_delete_files(min_input_files=0)
    with pytest.raises(InvalidArgument, match="target_file_size"):
        table.maintenance.rewrite_position_delete_files(target_file_size=0)
    named = new_table(schema=pa.schema([("_pos", pa.int64())]), properties={"format-version": "2"})
    named.append(pa.table({"_pos": [1, 2]}))
    named.delete_by_equality(pa.table({"_pos": [1]}), ["_pos"])
    with pytest.raises(UnsupportedFeature, match="_pos"):
        named.maintenance.convert_equality_deletes()


@pytest.mark.parametrize(
    "options", [{"target_file_size": 10**400}, {"min_input_files": 0}, {"min_input_files": "5"}], ids=str
)
def test_numbers_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    table = new_table()
    table.append(rows([1]))
    with pytest.raises(InvalidArgument, match="must be at least 1"):
        table.maintenance.rewrite_position_delete_files(**options)


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_dry_run_after_others_counts_what_the_run_then_removes(version: str) -> None:
    table = new_table(["kind"], properties={"format-version": version, **MERGE_ON_READ})
    for kind in "abc":
        table.append(rows(range(4), kind))
        table.append(rows(range(4), kind))
        table.delete(f"id = 1 and kind = '{kind}'")  # in version 2 one file for the two
    table.delete_by_equality(rows([2]).select(["id", "kind"]), ["id", "kind"])
    table.delete_by_equality(rows([2], "b").select(["id", "kind"]), ["id", "kind"])
    table.overwrite(rows([7]), "kind = 'a'")
    maintenance = table.maintenance
    converted = maintenance.convert_equality_deletes("kind = 'b'", dry_run=True)
    packed = maintenance.rewrite_position_delete_files(rewrite_all=True, dry_run=True)
    alone = maintenance.remove_dangling_deletes(dry_run=True)
    foreseen = maintenance.remove_dangling_deletes(after=[converted, packed], dry_run=True)
    assert (alone.removed_equality_delete_files, foreseen.removed_equality_delete_files) == (1, 1)
    assert alone.removed_position_delete_files == (1 if version == "2" else 0)
    assert foreseen.removed_position_delete_files == foreseen.removed_deletion_vectors == 0
    every = maintenance.convert_equality_deletes(dry_run=True)
    assert maintenance.remove_dangling_deletes(after=[every, packed], dry_run=True).removed_equality_delete_files == 0
    assert maintenance.remove_dangling_deletes(after=[every]).removed_equality_delete_files == 1
