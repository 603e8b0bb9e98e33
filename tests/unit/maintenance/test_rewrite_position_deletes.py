"""Many files of position deletes and deletion vectors become few files of the requested size."""

from __future__ import annotations

import pytest
from delete_files import commit, data_files, position_deletes
from icefield.writing.deletes import vectors
from icefield_maintenance.deletes import affected, marks, policy
from rewritten_deletes import MERGE_ON_READ, deletes, kinds, rewrite
from tables import ids, new_table, orphans, rows


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


@pytest.mark.slow
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
