"""Delete files rewritten, converted and removed: rows stay the same, beside writers of any kind."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from delete_files import commit, data_files, deletion_vectors, equality_deletes, position_deletes
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.abc import WorkRunner
from icefield.catalog import Table
from icefield.errors import CommitFailed, InvalidArgument, UnsupportedFeature, ValidationFailed
from icefield.maintenance.deletes import affected, marks, policy
from icefield.manifest import DataFile, DataFileContent
from icefield.manifest import schemas as f
from icefield.metadata.snapshots import Operation
from icefield.transaction.replace import RewriteFiles
from icefield.writing import WriteContext, write_batches
from icefield.writing.deletes import vectors
from pickling_runner import PicklingRunner
from tables import again, entries, ids, manifests, meddled, new_table, orphans, rows, stored_files

MERGE_ON_READ = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}
Upkeep = Callable[[Table], Any]


def rewrite(table: Table) -> Any:
    return table.maintenance.rewrite_position_delete_files(min_input_files=2)


def rewrite_all(table: Table) -> Any:
    return table.maintenance.rewrite_position_delete_files(rewrite_all=True)


def remove_dangling(table: Table) -> Any:
    return table.maintenance.remove_dangling_deletes()


def convert(table: Table) -> Any:
    return table.maintenance.convert_equality_deletes()


def deletes(table: Table) -> dict[tuple[str, int | None], tuple[DataFile, int]]:
    """The live delete files, each with its data sequence number."""
    found = {}
    for manifest in manifests(table):
        read = entries(table, manifest)
        read = read.filter(read.live())
        for file, number in zip(read.data_files(), read.column(f.SEQUENCE_NUMBER).to_pylist(), strict=True):
            if file.content is not DataFileContent.DATA:
                found[file.file_path, file.content_offset] = file, number
    return found


def kinds(table: Table) -> Counter[str]:
    """How many delete files of each kind."""
    return Counter(
        "vector" if file.is_deletion_vector else file.content.name.lower() for file, _ in deletes(table).values()
    )


def live(table: Table) -> list[tuple[Any, ...]]:
    """The rows, with all columns."""
    return sorted((tuple(row.values()) for row in table.scan().to_arrow().to_pylist()), key=str)


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
    upkeep=st.lists(st.sampled_from([rewrite, rewrite_all, remove_dangling, convert]), min_size=1, max_size=3),
    memory=st.sampled_from([1, 1 << 20]),
    runner=st.sampled_from([None, PicklingRunner()]),
)
def test_rows_stay_the_same(
    seed: int,
    version: tuple[int, bool],
    granularity: str,
    upkeep: list[Upkeep],
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
            here = Table.maintenance
            patch.setattr(Table, "maintenance", property(lambda table: here.fget(table).on(runner)))
        for one in upkeep:
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


def test_small_position_delete_files_of_a_partition_become_one() -> None:
    table = new_table(["kind"], properties={"format-version": "2", **MERGE_ON_READ})
    table.append(rows(range(100), "a"))
    table.append(rows(range(100, 200), "b"))
    for number in range(6):
        table.delete(f"id = {number}")
    for number in range(100, 103):
        table.delete(f"id = {number}")
    assert kinds(table) == {"position_deletes": 9}
    newest = max(number for file, number in deletes(table).values() if file.partition == ("a",))
    planned = table.maintenance.rewrite_position_delete_files(dry_run=True)
    made = table.maintenance.rewrite_position_delete_files()
    assert planned.rewritten_position_delete_files == made.rewritten_position_delete_files == 6
    assert made.added_position_delete_files == 1
    assert kinds(table) == {"position_deletes": 4}
    (one,) = [found for found in deletes(table).values() if found[0].partition == ("a",)]
    assert one[0].record_count == 6
    assert one[1] == newest
    assert one[0].file_size_in_bytes == made.added_bytes
    made = table.maintenance.rewrite_position_delete_files("kind = 'b'", rewrite_all=True)
    assert made.rewritten_position_delete_files == 3
    assert kinds(table) == {"position_deletes": 2}


@pytest.mark.parametrize(("held", "in_a_piece", "files"), [(39, 100, 3), (1 << 20, 3, 4)])
def test_what_memory_divides_into_several_files_is_rewritten_only_where_fewer_come_of_it(
    held: int, in_a_piece: int, files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "_HELD_POSITIONS", held)
    for module in (affected, marks, policy):
        monkeypatch.setattr(module, "MOST_IN_A_PIECE", in_a_piece)
    table = new_table(properties={"format-version": "2", **MERGE_ON_READ})
    for number in range(12):
        table.append(rows(range(100 * number, 100 * number + 100)))
    for number in range(10):
        table.delete(f"id in ({', '.join(str(100 * n + number) for n in range(12))})")
    before = ids(table)
    first = rewrite(table)
    assert (first.rewritten_position_delete_files, first.added_position_delete_files) == (10, files)
    planned = table.maintenance.rewrite_position_delete_files(min_input_files=2, dry_run=True)
    assert planned.rewritten_position_delete_files == 0
    second = rewrite(table)
    assert (second.snapshot_id, second.rewritten_position_delete_files) == (None, 0)
    for number in range(10, 13):
        table.delete(f"id in ({', '.join(str(100 * n + number) for n in range(12))})")
    assert rewrite(table).rewritten_position_delete_files == files + 3
    assert rewrite(table).snapshot_id is None
    assert ids(table) == [one for one in before if one % 100 not in (10, 11, 12)]
    assert not orphans(table)


def test_a_single_small_file_is_not_rewritten_into_another() -> None:
    for version in "23":
        table = new_table(properties={"format-version": version, **MERGE_ON_READ})
        table.append(rows(range(10)))
        table.delete("id = 1")
        assert table.maintenance.rewrite_position_delete_files(min_input_files=1).snapshot_id is None
        assert table.maintenance.rewrite_position_delete_files(rewrite_all=True).snapshot_id is not None


def test_vectors_that_fill_the_footers_of_their_files_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_FOOTER_BYTES", 2500)
    table = new_table(["kind"], properties={"format-version": "3", **MERGE_ON_READ})
    for kind in "abcdefghij":
        table.append(rows(range(100), kind))
    for kind in "abcdefghij":
        table.delete(f"kind = '{kind}' and id < 10")
    made = table.maintenance.rewrite_position_delete_files(min_input_files=2)
    assert made.rewritten_puffin_files == 10
    assert 2 <= made.added_puffin_files <= 5
    assert table.maintenance.rewrite_position_delete_files(min_input_files=2).snapshot_id is None


def test_new_files_have_the_size_that_is_asked_for() -> None:
    table = new_table(["kind"], properties={"format-version": "3", **MERGE_ON_READ})
    for kind in "abcdef":
        table.append(rows(range(100), kind))
    for kind in "abcdef":
        table.delete(f"kind = '{kind}' and id < 10")
    made = table.maintenance.rewrite_position_delete_files(rewrite_all=True, target_file_size=1)
    assert made.added_puffin_files == 6


def test_positions_of_data_files_that_are_gone_are_left_out() -> None:
    table = new_table(properties={"format-version": "2"})
    table.append(rows(range(10)))
    table.append(rows(range(10, 20)))
    old, kept = data_files(table)
    gone = "memory://elsewhere/gone.parquet"
    commit(table, position_deletes(table, [(old.file_path, 1), (kept.file_path, 2), (gone, 5)]))
    commit(table, position_deletes(table, [(kept.file_path, 3), (kept.file_path, 99)]))
    table.overwrite(rows([1000]), "id < 10")
    made = table.maintenance.rewrite_position_delete_files(rewrite_all=True)
    assert made.added_position_delete_files == 1
    ((file, _),) = deletes(table).values()
    assert (file.record_count, file.referenced_data_file) == (2, kept.file_path)
    assert ids(table) == [10, 11, *range(14, 20), 1000]


def test_position_deletes_become_deletion_vectors_in_version_3() -> None:
    table = new_table(["kind"], properties={"format-version": "2", **MERGE_ON_READ})
    for kind in "ab":
        table.append(rows(range(100), kind))
    for number in range(3):
        table.delete(f"id = {number}")
    with table.transaction() as tx:
        tx.upgrade_table_version(3)
    assert kinds(table) == {"position_deletes": 6}
    made = table.maintenance.rewrite_position_delete_files()
    assert (made.rewritten_position_delete_files, made.added_deletion_vectors, made.added_puffin_files) == (6, 2, 1)
    assert kinds(table) == {"vector": 2}
    assert sorted(number for _, number in deletes(table).values()) == [5, 5]
    assert ids(table) == sorted([*range(3, 100)] * 2)


def test_vectors_of_many_puffin_files_move_into_few() -> None:
    table = new_table(["kind"], properties={"format-version": "3", **MERGE_ON_READ})
    for kind in "abcdef":
        table.append(rows(range(100), kind))
    for kind in "abcdef":
        table.delete(f"kind = '{kind}' and id < 10")
    numbers = {file.referenced_data_file: number for file, number in deletes(table).values()}
    assert len({path for path, _ in deletes(table)}) == 6
    made = table.maintenance.rewrite_position_delete_files()
    assert (made.rewritten_puffin_files, made.added_puffin_files) == (6, 1)
    assert made.rewritten_deletion_vectors == made.added_deletion_vectors == 6
    assert made.rewritten_bytes == made.added_bytes
    assert len({path for path, _ in deletes(table)}) == 1
    assert {file.referenced_data_file: number for file, number in deletes(table).values()} == numbers
    assert table.scan().to_arrow().num_rows == 540
    assert table.maintenance.rewrite_position_delete_files().snapshot_id is None


def test_equality_deletes_become_positions_of_the_rows_they_delete() -> None:
    table = new_table(["kind"], properties={"format-version": "2", **MERGE_ON_READ})
    for kind in "ab":
        table.append(rows(range(20), kind))
    table.delete("id = 4")
    table.delete_by_equality(rows([3, 4, 50], "a").select(["id", "kind"]), ["id", "kind"])
    table.append(rows([3], "a"))
    newest = max(number for _, number in deletes(table).values())
    planned = table.maintenance.convert_equality_deletes(dry_run=True)
    made = table.maintenance.convert_equality_deletes()
    assert (planned.converted_equality_delete_files, planned.read_data_files, planned.dry_run) == (1, 1, True)
    assert (made.converted_equality_delete_files, made.read_data_files, made.deleted_rows) == (1, 1, 1)
    sizes = table.inspect.data_files(row_filter="record_count = 20 and partition.kind = 'a'")["file_size_in_bytes"]
    assert [planned.read_bytes] == [made.read_bytes] == sizes.to_pylist()
    assert made.added_position_delete_files == 1
    assert kinds(table) == {"position_deletes": 3}
    assert max(number for _, number in deletes(table).values()) == newest
    assert ids(table) == sorted([*(n for n in range(20) if n not in (3, 4)), 3, *(n for n in range(20) if n != 4)])


def test_a_vector_that_takes_in_equality_deletes_replaces_the_one_before() -> None:
    table = new_table(properties={"format-version": "3", **MERGE_ON_READ})
    table.append(rows(range(20)))
    table.delete("id = 4")
    table.delete_by_equality(pa.table({"id": [5, 6]}), ["id"])
    made = table.maintenance.convert_equality_deletes()
    assert (made.deleted_rows, made.added_deletion_vectors) == (3, 1)
    assert kinds(table) == {"vector": 1}
    assert ids(table) == [n for n in range(20) if n not in (4, 5, 6)]


def test_equality_deletes_of_a_dropped_column_are_converted() -> None:
    table = new_table(properties={"format-version": "2"})
    table.append(rows(range(10), "a"))
    table.append(rows(range(10, 20), "b"))
    commit(table, equality_deletes(table, ["kind"], [{"kind": "b"}]))
    with table.update_schema() as update:
        update.delete_column("kind")
    assert table.maintenance.convert_equality_deletes().deleted_rows == 10
    assert ids(table) == [*range(10)]


def test_deletes_that_apply_to_no_data_file_are_removed() -> None:
    table = new_table(["kind"], properties={"format-version": "2"})
    table.append(rows(range(10), "a"))
    table.append(rows(range(10, 20), "b"))
    one, two = data_files(table)
    commit(table, position_deletes(table, [(one.file_path, 1)], like=one, referenced_data_file=one.file_path))
    commit(table, position_deletes(table, [(two.file_path, 1)], like=two, referenced_data_file=two.file_path))
    commit(table, position_deletes(table, [("elsewhere", 0), ("elsewhere else", 0)], like=two))
    commit(table, equality_deletes(table, ["id"], [{"id": 2}], like=one))
    commit(table, equality_deletes(table, ["id"], [{"id": 12}], like=two))
    table.overwrite(rows([30, 31], "a"), "kind = 'a'")
    assert kinds(table)["equality_deletes"] == 2
    planned = table.maintenance.remove_dangling_deletes(dry_run=True)
    made = table.maintenance.remove_dangling_deletes()
    assert (planned.removed_equality_delete_files, planned.snapshot_id, planned.dry_run) == (1, None, True)
    assert made.removed_equality_delete_files == 1
    assert made.removed_bytes > 0
    # Without bounds nothing but its age says to what a file of several data files applies.
    assert kinds(table) == {"equality_deletes": 1, "position_deletes": 2}
    assert ids(table) == [10, *range(13, 20), 30, 31]


def test_vectors_of_files_that_are_gone_are_removed() -> None:
    table = new_table(properties={"format-version": "3", **MERGE_ON_READ})
    table.append(rows(range(10)))
    (file,) = data_files(table)
    gone = replace(file, file_path="memory://elsewhere/gone.parquet")
    commit(table, *deletion_vectors(table, {file: [3], gone: [1, 2]}))
    assert kinds(table) == {"vector": 2}
    made = table.maintenance.remove_dangling_deletes()
    assert (made.removed_deletion_vectors, made.removed_position_delete_files) == (1, 0)
    assert [one.referenced_data_file for one, _ in deletes(table).values()] == [file.file_path]
    assert ids(table) == [n for n in range(10) if n != 3]


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
@pytest.mark.parametrize("upkeep", [rewrite_all, convert, remove_dangling])
@pytest.mark.parametrize("version", [2, 3])
def test_what_others_commit_meanwhile_counts(meddle: Upkeep, upkeep: Upkeep, version: int) -> None:
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
    upkeep(meddled(table, meddle))
    assert live(table.refresh()) == live(expected)
    assert not orphans(table)
    upkeep(table)
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
    rewriting = RewriteFiles(table._commit).validate_from_snapshot(read.snapshot_id)
    rewriting.delete_file(file).add_file(*new_rows(table))
    with pytest.raises(ValidationFailed, match="row-level deletes"):
        rewriting.commit()


def test_upkeep_that_always_loses_leaves_nothing() -> None:
    table = new_table(properties={"format-version": "3", "commit.retry.num-retries": "1", **MERGE_ON_READ})
    table.append(rows(range(10)))
    table.delete("id = 1")
    with pytest.raises(CommitFailed):
        rewrite_all(meddled(table, *[appending] * 3))
    assert not orphans(table)


@pytest.mark.parametrize("upkeep", [rewrite_all, convert, remove_dangling])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_table_without_deletes_stays(upkeep: Upkeep, version: int) -> None:
    table = new_table(["kind"], properties={"format-version": str(version)})
    assert upkeep(table).snapshot_id is None
    table.append(rows(range(3)))
    before = stored_files(table)
    assert upkeep(table).snapshot_id is None
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
