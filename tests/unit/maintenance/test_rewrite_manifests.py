"""Rewritten manifests: unchanged entries, clustered by partition, while writers of any kind commit."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import fields
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield import Table
from icefield.abc import WorkRunner
from icefield.errors import CommitFailed, InvalidArgument, NoSuchSnapshot
from icefield.manifest import EntryStatus, ManifestContent
from icefield.manifest import schemas as f
from icefield.metadata import Operation
from icefield_maintenance.manifests import clustering, rewrite, runs, sorting
from pickling_runner import PicklingRunner
from tables import again, entries, ids, manifests, meddled, new_table, orphans, rows, stored_files

SEPARATE = {"commit.manifest-merge.enabled": "false"}
MERGE_ON_READ = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}
NUMBERS = (f.SNAPSHOT_ID, f.SEQUENCE_NUMBER, f.FILE_SEQUENCE_NUMBER, f.FIRST_ROW_ID)


def held(table: Table) -> Counter[Any]:
    """Every live entry as it is: its spec, its numbers, and all of its file."""
    found: Counter[Any] = Counter()
    for manifest in manifests(table):
        read = entries(table, manifest)
        read = read.filter(read.live())
        numbers = [read.column(number).to_pylist() for number in NUMBERS]
        for file, *own in zip(read.data_files(), *numbers, strict=True):
            found[(repr([getattr(file, field.name) for field in fields(file)]), *own)] += 1
    return found


def lived(seed: int, version: int, steps: int = 8, **properties: str) -> Table:
    """A table after random changes."""
    draw = random.Random(seed)
    given = {"format-version": str(version), **SEPARATE, **(MERGE_ON_READ if version > 1 else {}), **properties}
    table = new_table(["kind"], properties=given)
    for step in range(steps):
        some = sorted({draw.randrange(20 * steps) for _ in range(6)})
        match draw.randrange(8):
            case 0 | 1 | 2 | 3:
                table.append(
                    rows(range(20 * step, 20 * step + draw.randint(1, 20)), draw.choice(["a", "b", "c", None]))
                )
            case 4:
                table.delete(f"id in ({', '.join(map(str, some))})")
            case 5:
                table.delete(f"kind = '{draw.choice('abc')}'")
            case 6 if version > 1:
                table.delete_by_equality(rows(some, draw.choice("abc")).select(["id", "kind"]), ["id", "kind"])
            case 7 if draw.random() < 0.4:
                with table.update_spec() as spec:
                    names = {field.name for field in table.spec().fields}
                    if "id_bucket" in names:
                        spec.remove_field("id_bucket")
                    else:
                        spec.add_field("id", "bucket[4]", "id_bucket")
            case _:
                table.append(rows([1000 + step], draw.choice("abc")))
    return table


@pytest.mark.slow
@pytest.mark.spec("MAN-14", "SNAP-21")
@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**20),
    version=st.sampled_from([1, 2, 3]),
    target=st.sampled_from([3500, 5000, 8 << 20]),
    memory=st.sampled_from([1, sorting.HELD_BYTES]),
    runner=st.sampled_from([None, PicklingRunner(), PicklingRunner(slots=1)]),
)
def test_rows_and_entries_stay_the_same(
    seed: int, version: int, target: int, memory: int, runner: WorkRunner | None
) -> None:
    table = lived(seed, version, **{"commit.manifest.target-size-bytes": str(target)})
    before, entries_before = ids(table), held(table)
    listed = len(manifests(table))
    with pytest.MonkeyPatch.context() as patch:
        for module in (clustering, runs):
            patch.setattr(module, "HELD_BYTES", memory)
        planned = table.maintenance.rewrite_manifests(dry_run=True)
        maintenance = table.maintenance if runner is None else table.maintenance.on(runner)
        made = maintenance.rewrite_manifests()
    assert ids(again(table).refresh()) == before
    assert held(table) == entries_before
    assert (made.rewritten_manifests, made.added_manifests) == (planned.rewritten_manifests, planned.added_manifests)
    assert len(manifests(table)) == listed - made.rewritten_manifests + made.added_manifests
    assert made.kept_manifests + made.added_manifests == len(manifests(table))
    if made.snapshot_id is None:
        return
    new = [one for one in manifests(table) if one.added_snapshot_id == made.snapshot_id]
    assert sum(one.manifest_length for one in new) == made.added_bytes
    assert {status for one in new for status in entries(table, one).status().tolist()} <= {EntryStatus.EXISTING}
    assert sum(len(entries(table, one)) for one in new) == made.entries
    for one in new:
        lowest = min(entries(table, one).column(f.SEQUENCE_NUMBER).to_pylist())
        assert one.min_sequence_number == (lowest if version > 1 else 0)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.operation is Operation.REPLACE
    assert snapshot.summary["manifests-created"] == str(made.added_manifests)
    assert snapshot.summary["manifests-kept"] == str(made.kept_manifests)
    assert snapshot.summary["manifests-replaced"] == str(made.rewritten_manifests)
    assert snapshot.summary["entries-processed"] == str(made.entries)
    assert not orphans(table)
    if target == 8 << 20:
        # There is one manifest for each spec and content with live files, and a second call has nothing to do.
        assert len({(one.partition_spec_id, one.content) for one in manifests(table)}) == len(manifests(table))
        assert table.maintenance.rewrite_manifests().snapshot_id is None


def scattered(count: int = 24, kinds: str = "abcdef", **properties: str) -> Table:
    """A table with a manifest for each file, partitions in turns."""
    table = new_table(["kind"], properties={**SEPARATE, **properties})
    for number in range(count):
        table.append(rows([number], kinds[number % len(kinds)]))
    return table


def test_manifests_are_clustered_and_of_about_the_target_size() -> None:
    table = scattered()
    size = sum(one.manifest_length for one in manifests(table))
    with table.transaction() as tx:
        tx.set_properties({"commit.manifest.target-size-bytes": str(size // 6 + 1)})
    made = table.maintenance.rewrite_manifests()
    assert (made.rewritten_manifests, made.added_manifests, made.entries) == (24, 6, 24)
    bounds = [
        (one.partitions[0].lower_bound, one.partitions[0].upper_bound) for one in manifests(table) if one.partitions
    ]
    assert bounds == [(kind.encode(), kind.encode()) for kind in "abcdef"]
    assert table.scan("kind = 'b'").to_arrow().num_rows == 4


def in_runs(**properties: str) -> Table:
    """A table with two kinds in each manifest, unsorted; no two manifests share a kind."""
    table = new_table(["kind"], properties={**SEPARATE, **properties})
    for number, kinds in enumerate(["hg", "dc", "fe", "ba"]):
        table.append(pa.concat_tables([rows([2 * number + place], kind) for place, kind in enumerate(kinds)]))
    table.append(rows([99], None))
    return table


@pytest.mark.parametrize("runner", [None, PicklingRunner()], ids=["here", "on executors"])
@pytest.mark.parametrize("stated", [None, 1, 9])
def test_manifests_of_other_partitions_are_read_once_and_sorted(
    runner: WorkRunner | None, stated: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts of a manifest list only say where a manifest ends: a wrong one loses no entry."""
    table = in_runs()
    with table.transaction() as tx:
        tx.set_properties({"commit.manifest.target-size-bytes": str(manifests(table)[0].manifest_length * 3)})
    before = held(table)
    monkeypatch.setattr(rewrite, "cluster", None)  # reads the partitions before
    if stated is not None:
        monkeypatch.setattr(runs, "_live_entries", lambda manifest: stated)
    made = (table.maintenance if runner is None else table.maintenance.on(runner)).rewrite_manifests()
    assert made.rewritten_manifests == 5
    assert made.added_manifests == len(manifests(table))
    assert held(table) == before
    kinds = [kind for one in manifests(table) for kind in entries(table, one).partition.field(0).to_pylist()]
    assert kinds == [None, *"abcdefgh"]


def test_manifests_of_other_partitions_and_the_target_size_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    table = in_runs()
    with table.transaction() as tx:
        tx.set_properties({"commit.manifest.target-size-bytes": str(manifests(table)[1].manifest_length)})
    monkeypatch.setattr(rewrite, "cluster", None)
    assert table.maintenance.rewrite_manifests().snapshot_id is None


def test_fields_to_cluster_by_come_first() -> None:
    table = new_table(["kind", "bucket[2](id)"], properties=SEPARATE)
    for number in range(12):
        table.append(rows([number], "abc"[number % 3]))
    size = sum(one.manifest_length for one in manifests(table))
    with table.transaction() as tx:
        tx.set_properties({"commit.manifest.target-size-bytes": str(size // 2 + 1)})
    table.maintenance.rewrite_manifests(cluster_by=["id_bucket_2"])
    buckets = [entries(table, one).partition.field(1).to_pylist() for one in manifests(table)]
    assert len(buckets) == 2
    assert buckets == [sorted(part) for part in buckets]
    assert max(buckets[0]) <= min(buckets[1])


def test_manifests_are_chosen_by_spec_filter_and_predicate() -> None:
    table = scattered(6, "abc")
    with table.update_spec() as spec:
        spec.remove_field("kind")
    for number in range(3):
        table.append(rows([100 + number], "a"))
    assert table.maintenance.rewrite_manifests(spec_id=1).rewritten_manifests == 3
    assert len(manifests(table)) == 7
    made = table.maintenance.rewrite_manifests(spec_id=0, where="kind = 'a'")
    assert (made.rewritten_manifests, made.added_manifests) == (2, 1)
    young = max(one.sequence_number for one in manifests(table))
    made = table.maintenance.rewrite_manifests(predicate=lambda one: one.sequence_number < young)
    assert (made.rewritten_manifests, made.added_manifests, made.kept_manifests) == (4, 1, 2)
    assert ids(table) == [*range(6), 100, 101, 102]


@pytest.mark.parametrize("version", [2, 3])
def test_manifests_of_deletes_are_rewritten_by_themselves(version: int) -> None:
    table = new_table(["kind"], properties={"format-version": str(version), **SEPARATE, **MERGE_ON_READ})
    for number in range(4):
        table.append(rows(range(10 * number, 10 * number + 10), "ab"[number % 2]))
    for number in range(4):
        table.delete(f"id = {10 * number}")
    before, left = held(table), ids(table)
    made = table.maintenance.rewrite_manifests()
    assert made.added_manifests == 2
    assert {one.content for one in manifests(table)} == {*ManifestContent}
    assert held(table) == before
    assert ids(again(table).refresh()) == left == [n for n in range(40) if n % 10]


def test_row_ids_stay_and_new_rows_take_others() -> None:
    table = scattered(6, "abc", **{"format-version": "3"})
    columns = ("id", "_row_id", "_last_updated_sequence_number")
    before = sorted(map(str, table.scan(selected_fields=columns).to_arrow().to_pylist()))
    table.maintenance.rewrite_manifests()
    assert sorted(map(str, table.scan(selected_fields=columns).to_arrow().to_pylist())) == before
    table.append(rows([77]))
    numbers = table.scan(selected_fields=("_row_id",)).to_arrow()["_row_id"].to_pylist()
    assert len(set(numbers)) == 7


def test_a_table_of_version_2_that_was_raised_to_3_is_rewritten() -> None:
    table = scattered(6, "abc", **{"format-version": "2"})
    with table.transaction() as tx:
        tx.upgrade_table_version(3)
    table.append(rows([50]))
    table.maintenance.rewrite_manifests()
    numbers = table.scan(selected_fields=("_row_id",)).to_arrow()["_row_id"].to_pylist()
    assert len(set(numbers)) == 7
    assert None not in numbers


def test_manifests_appended_meanwhile_are_kept() -> None:
    table = scattered(6, "abc")
    holder = meddled(table, lambda other: other.append(rows([60])), lambda other: other.append(rows([61])))
    made = holder.maintenance.rewrite_manifests()
    assert (made.rewritten_manifests, made.added_manifests, made.kept_manifests) == (6, 1, 2)
    assert ids(table.refresh()) == [*range(6), 60, 61]
    assert not orphans(table)


def test_a_manifest_that_has_gone_meanwhile_makes_its_group_be_planned_anew() -> None:
    table = scattered(6, "abc")
    holder = meddled(table, lambda other: other.delete("kind = 'b'"), lambda other: other.append(rows([61])))
    made = holder.maintenance.rewrite_manifests()
    assert made.added_manifests == 1
    assert made.entries == 4
    assert made.kept_manifests == 1
    assert ids(table.refresh()) == [0, 2, 3, 5, 61]
    assert not orphans(table)


def test_another_rewrite_meanwhile_leaves_nothing_to_do() -> None:
    table = scattered(6, "abc")
    holder = meddled(table, lambda other: other.maintenance.rewrite_manifests())
    made = holder.maintenance.rewrite_manifests()
    assert made.snapshot_id is None
    assert len(manifests(table.refresh())) == 1
    assert not orphans(table)


def test_a_rewrite_that_always_loses_leaves_nothing() -> None:
    table = scattered(4, "ab", **{"commit.retry.num-retries": "1"})
    holder = meddled(table, *[lambda other: other.append(rows([60]))] * 3)
    with pytest.raises(CommitFailed):
        holder.maintenance.rewrite_manifests()
    assert not orphans(table)


def test_a_branch_is_rewritten_and_others_stay() -> None:
    table = scattered(4, "ab")
    with table.manage_snapshots() as manage:
        manage.create_branch(None, "audit")
    main = table.current_snapshot()
    table.append(rows([9]), branch="audit")
    assert table.maintenance.rewrite_manifests(branch="audit").rewritten_manifests == 5
    assert table.current_snapshot() == main
    assert len(manifests(table)) == 4
    with pytest.raises(NoSuchSnapshot):
        table.maintenance.rewrite_manifests(branch="none", dry_run=True)


def test_a_dry_run_and_an_empty_table_write_nothing() -> None:
    table = new_table(["kind"])
    assert table.maintenance.rewrite_manifests().snapshot_id is None
    table = scattered(4, "ab")
    before = stored_files(table)
    made = table.maintenance.rewrite_manifests(dry_run=True)
    assert made.dry_run
    assert made.snapshot_id is None
    assert (made.rewritten_manifests, made.added_manifests) == (4, 1)
    assert stored_files(table) == before


def test_manifests_of_files_that_are_gone_are_dropped() -> None:
    table = scattered(4, "ab")
    table.delete("kind = 'a'")
    table.maintenance.rewrite_manifests()
    assert [one.deleted_files_count for one in manifests(table)] == [0]
    table.delete()
    assert table.maintenance.rewrite_manifests().added_manifests == 0
    assert manifests(table) == []
    table.append(rows([1]))
    assert ids(table) == [1]


def test_what_is_not_there_is_refused() -> None:
    table = scattered(1)
    with pytest.raises(InvalidArgument, match="no partition spec 7"):
        table.maintenance.rewrite_manifests(spec_id=7)
    with pytest.raises(InvalidArgument, match="'id' is none"):
        table.maintenance.rewrite_manifests(cluster_by="id")
    with pytest.raises(InvalidArgument, match="twice"):
        table.maintenance.rewrite_manifests(cluster_by=["kind", "kind"])
    with pytest.raises(InvalidArgument):
        table.maintenance.rewrite_manifests(where="nothing = 1")


def test_partitions_of_every_type_are_sorted() -> None:
    schema = pa.schema([("x", pa.float64()), ("b", pa.binary(3)), ("d", pa.date32())])
    table = new_table(["x", "b", "d"], schema=schema, properties=SEPARATE)
    values = [(float("nan"), b"abc", 1), (-0.0, None, 2), (0.0, b"aaa", None), (None, b"zzz", 3)]
    for x, b, d in values:
        table.append(pa.table({"x": [x], "b": [b], "d": pa.array([d], pa.int32()).view(pa.date32())}, schema=schema))
    before = held(table)
    assert table.maintenance.rewrite_manifests().added_manifests == 1
    assert held(table) == before
