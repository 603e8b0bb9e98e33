"""Data files are packed, sorted and clustered; rows and row ids stay the same while others write."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from delete_files import commit, data_files, position_deletes
from engines import DuckDBEngine
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield import Table, load_catalog
from icefield.abc import WorkRunner
from icefield.errors import CommitFailed, InvalidArgument, StorageError
from icefield.metadata import Operation
from icefield.partitioning.parse import sort_order_of
from icefield.partitioning.sort_order import sort_indices
from icefield.types import DELETE_FILE_PATH
from icefield_maintenance import MaintenanceTable
from icefield_maintenance.compaction import RewriteDataFilesResult, running
from icefield_maintenance.compaction.planning import pack
from icefield_maintenance.compaction.policy import Sizes
from peers import duckdb_rows
from pickling_runner import PicklingRunner
from pyiceberg.table import StaticTable
from tables import again, ids, meddled, new_table, orphans, rows

LINEAGE = ("id", "kind", "value", "_row_id", "_last_updated_sequence_number")
MERGE_ON_READ = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}
STRATEGIES: list[dict[str, Any]] = [
    {},
    {"strategy": "sort", "sort_order": ["value desc nulls-first", "id"]},
    {"strategy": "zorder", "zorder_columns": ["id", "kind", "value"]},
]


def compacted(table: Table, **options: Any) -> RewriteDataFilesResult:
    return table.maintenance.rewrite_data_files(**{"min_input_files": 2, **options})


def live(table: Table) -> list[str]:
    columns = LINEAGE if table.format_version > 2 else LINEAGE[:3]
    return sorted(map(str, table.scan(selected_fields=columns).to_arrow().to_pylist()))


def paths(table: Table) -> set[str]:
    return set(table.inspect.data_files()["file_path"].to_pylist())


def lived(seed: int, version: int, raised: bool, kind: str) -> Table:
    """A table after random changes, also of its partition spec."""
    draw = random.Random(seed)
    mode = MERGE_ON_READ if version > 1 else {}
    given = {"format-version": str(version), "write.format.default": kind, **mode}
    table = new_table(["kind"], properties=given)
    table.append(rows(range(20), "a"))
    for step in range(1, 6):
        if raised and step == 3:
            with table.transaction() as tx:
                tx.upgrade_table_version(3)
        some = sorted({draw.randrange(20 * step) for _ in range(5)})
        match draw.randrange(5):
            case 0 | 1:
                table.append(rows(range(20 * step, 20 * step + 20), draw.choice(["a", "b", None]), draw.random()))
            case 2:
                table.delete(f"id in ({', '.join(map(str, some))})")
            case 3 if table.format_version > 1:
                table.delete_by_equality(rows(some, draw.choice("ab")).select(["id", "kind"]), ["id", "kind"])
            case 4 if draw.random() < 0.4 and table.spec().fields:
                with table.update_spec() as spec:
                    spec.remove_field("kind")
            case _:
                table.update(f"id = {some[0]}", {"value": float(step)})
    return table


@pytest.mark.slow
@settings(deadline=None, max_examples=6)
@given(
    seed=st.integers(0, 2**20),
    version=st.sampled_from([(1, False), (2, False), (2, True), (3, False)]),
    kind=st.sampled_from(["parquet", "avro", "orc"]),
    strategy=st.sampled_from(STRATEGIES),
    everything=st.booleans(),
    partial=st.booleans(),
    runner=st.sampled_from([None, PicklingRunner()]),
)
def test_rows_and_their_ids_stay_the_same(
    seed: int,
    version: tuple[int, bool],
    kind: str,
    strategy: dict[str, Any],
    everything: bool,
    partial: bool,
    runner: WorkRunner | None,
) -> None:
    table = lived(seed, *version, kind)
    table.refresh()
    if version[1]:
        table.append(rows([9999]))  # which gives the older rows their ids
    before, old = live(table), paths(table)
    specs = set(table.inspect.data_files()["spec_id"].to_pylist())
    planned = compacted(table, **strategy, rewrite_all=everything, dry_run=True)
    with pytest.MonkeyPatch.context() as patch:
        if runner is not None:
            maintenance = property(lambda table: MaintenanceTable(table).on(runner))
            patch.setattr(Table, "maintenance", maintenance, raising=False)
        made = compacted(
            table, **strategy, rewrite_all=everything, partial_progress=partial, remove_dangling_deletes=True
        )
    assert live(again(table).refresh()) == before
    assert planned.rewritten_data_files == made.rewritten_data_files
    assert made.failed_groups == 0
    assert not orphans(table)
    if made.snapshot_id is None:
        assert paths(table) == old
        return
    assert len(paths(table)) == len(old) - made.rewritten_data_files + made.added_data_files
    assert [table.metadata.snapshot_by_id(each).operation for each in made.snapshot_ids] == (  # type: ignore[union-attr]
        [Operation.REPLACE] * len(made.snapshot_ids)
    )
    if everything:
        assert not paths(table) & old
        assert set(table.inspect.data_files()["spec_id"].to_pylist()) <= {table.spec().spec_id}
        assert table.inspect.delete_files().num_rows == 0
    else:
        if specs != {table.spec().spec_id}:
            compacted(table, **strategy)  # files of an older spec come into partitions that have some of their own
        assert compacted(table, **strategy).snapshot_id is None, "another run finds nothing to do"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_group_of_which_all_rows_are_deleted_is_replaced_by_no_file(strategy: dict[str, Any]) -> None:
    table = new_table(["kind"], properties={"format-version": "2"})
    table.append(rows([1, 2], "a"))
    table.append(rows([3], "b"))
    table.delete_by_equality(rows([1, 2], "a").select(["id", "kind"]), ["id", "kind"])
    made = compacted(table, **strategy, rewrite_all=True)
    assert (made.rewritten_data_files, made.added_data_files, made.failed_groups) == (2, 1, 0)
    assert ids(again(table).refresh()) == [3]
    assert not orphans(table)


@pytest.mark.spec("COMMIT-22")
def test_equality_deletes_that_others_commit_meanwhile_apply_to_the_new_files() -> None:
    table = new_table(properties={"format-version": "2"})
    for start in range(3):
        table.append(rows(range(10 * start, 10 * start + 10)))
    holder = meddled(table, lambda other: (other.delete_by_equality(rows([3, 15]), ["id"]), other.append(rows([99]))))
    made = compacted(holder)
    assert (made.rewritten_data_files, made.added_data_files, made.failed_groups) == (3, 1, 0)
    assert ids(table.refresh()) == [*(one for one in range(30) if one not in (3, 15)), 99]
    assert len(made.snapshot_ids) == 1
    assert not orphans(table)


@pytest.mark.spec("COMMIT-20")
@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("number", [True, False])
def test_a_group_that_lost_to_a_delete_is_rewritten_again_and_the_others_are_committed(
    version: str, number: bool
) -> None:
    table = new_table(["kind"], properties={"format-version": version, **MERGE_ON_READ})
    for start in range(6):
        table.append(rows(range(10 * start, 10 * start + 10), "ab"[start % 2]))
    holder = meddled(table, lambda other: other.delete("id in (1, 2) and kind = 'a'"))
    made = compacted(holder, use_starting_sequence_number=number)
    assert [(group.partition, group.rewritten_data_files) for group in made.groups] == [("kind=b", 3), ("kind=a", 3)]
    assert len(made.snapshot_ids) == 2
    assert ids(table.refresh()) == [0, *range(3, 60)]
    assert len(paths(table)) == 2
    assert not orphans(table)


def test_a_group_that_lost_all_the_time_has_failed_and_leaves_no_file() -> None:
    table = new_table(properties={"format-version": "3", **MERGE_ON_READ})
    for start in range(3):
        table.append(rows(range(100 * start, 100 * start + 100)))
    deleting = [lambda other, n=n: other.delete(f"id = {n}") for n in range(9)]
    made = compacted(meddled(table, *deleting))
    assert (made.snapshot_id, made.rewritten_data_files, made.failed_groups, made.failed_data_files) == (None, 0, 1, 3)
    assert len(paths(table.refresh())) == 3
    assert not orphans(table)


def test_new_files_of_another_spec_do_not_escape_equality_deletes() -> None:
    table = new_table(["kind"], properties={"format-version": "2"})
    for start in range(3):
        table.append(rows(range(10 * start, 10 * start + 10)))
    with table.update_spec() as spec:
        spec.remove_field("kind")
    deletes = rows([3, 25]).select(["id", "kind"])
    holder = meddled(table, lambda other: other.delete_by_equality(deletes, ["id", "kind"]))
    made = compacted(holder)
    assert (made.rewritten_data_files, made.failed_groups) == (3, 0)
    assert ids(table.refresh()) == [one for one in range(30) if one not in (3, 25)]
    assert set(table.inspect.data_files()["spec_id"].to_pylist()) == {table.spec().spec_id}


def test_partial_progress_commits_what_can_be_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    def table_of(kinds: str) -> Table:
        table = new_table(["kind"])
        for number, kind in enumerate(kinds * 2):
            table.append(rows([number], kind))
        return table

    do = running.RewriteGroup.do

    def failing(self: Any, item: Any, attempt: Any) -> Any:
        if item.partition == "kind=b":
            raise StorageError("the disk is full")
        return do(self, item, attempt)

    monkeypatch.setattr(running.RewriteGroup, "do", failing)
    whole, parts = table_of("abcd"), table_of("abcd")
    with pytest.raises(StorageError, match="the disk is full"):
        compacted(whole)
    assert len(paths(whole.refresh())) == 8
    assert not orphans(whole)
    made = compacted(parts, partial_progress=True, max_commits=2, max_concurrent_file_group_rewrites=2)
    assert (made.rewritten_data_files, made.failed_data_files, len(made.snapshot_ids)) == (6, 2, 2)
    assert len(paths(parts)) == 5
    assert not orphans(parts)

    fewer = table_of("bcd")
    with pytest.raises(CommitFailed, match=r"1 commits .* max_failed_commits is 0; 2 were made .* the disk is full"):
        compacted(fewer, partial_progress=True, max_commits=3, max_failed_commits=0)
    assert len(paths(fewer.refresh())) == 4
    assert not orphans(fewer)


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ("none", "abc"),
        ("bytes-asc", "bca"),
        ("bytes-desc", "acb"),
        ("files-asc", "abc"),
        ("files-desc", "cab"),
    ],
)
def test_groups_are_rewritten_in_the_order_that_is_asked_for(order: str, wanted: str) -> None:
    table = new_table(["kind"])
    for kind, files, count in (("a", 2, 9000), ("b", 2, 1), ("c", 3, 1)):
        for number in range(files):
            table.append(rows(range(number * count, number * count + count), kind))
    made = compacted(table, rewrite_job_order=order, partial_progress=True, max_concurrent_file_group_rewrites=3)
    assert [group.partition[-1] for group in made.groups] == [*wanted]
    assert len(made.snapshot_ids) == 3


def test_a_limit_of_bytes_takes_the_smallest_files_of_the_partition_that_gains_most() -> None:
    table = new_table(["kind"])
    for number in range(4):
        table.append(rows([number], "few"))
        table.append(rows(range(100 + 3000 * number, 100 + 3000 * (number + 1)), "large"))
    table.append(rows(range(50, 90), "few"))
    found = table.inspect.data_files().select(["partition", "file_size_in_bytes"]).to_pylist()
    few = sorted(each["file_size_in_bytes"] for each in found if each["partition"]["kind"] == "few")
    before = live(table)
    assert compacted(table, max_rewritten_bytes=few[0] + 1).groups == ()
    limit = sum(few[:3]) + few[3] // 2
    (group,) = compacted(table, max_rewritten_bytes=limit, dry_run=True).groups
    assert (group.partition, group.rewritten_data_files, group.rewritten_bytes) == ("kind=few", 3, sum(few[:3]))
    done = compacted(table, max_rewritten_bytes=limit)
    assert (done.rewritten_bytes, done.added_data_files) == (sum(few[:3]), 1)
    whole = compacted(table, max_rewritten_bytes=1 << 30)
    assert [each.partition for each in whole.groups] == ["kind=few", "kind=large"]
    assert (len(paths(table)), live(table)) == (2, before)


def test_a_limit_of_bytes_takes_a_much_deleted_file_alone() -> None:
    table = new_table(properties={**MERGE_ON_READ, "format-version": "2"})
    table.append(rows(range(2000)))
    table.append(rows(range(2000, 3000)))
    table.delete("id < 1500")
    most = max(table.inspect.data_files()["file_size_in_bytes"].to_pylist())
    (group,) = compacted(table, max_rewritten_bytes=most).groups
    assert (group.rewritten_data_files, group.rewritten_bytes) == (1, most)
    assert ids(table) == list(range(1500, 3000))


@pytest.mark.parametrize("named", [True, False])
def test_the_ratio_of_deleted_rows_counts_deletes_of_one_file_by_name_or_bounds(named: bool) -> None:
    table = new_table(properties={"format-version": "2"})
    for start in (0, 10):
        table.append(rows(range(start, start + 10)))
    first, second = data_files(table)
    of_one = position_deletes(table, [(first.file_path, place) for place in range(4)])
    if named:
        of_one = replace(of_one, referenced_data_file=first.file_path)
    else:
        bounds = {DELETE_FILE_PATH.field_id: first.file_path.encode()}
        of_one = replace(of_one, lower_bounds=bounds, upper_bounds=bounds)
    of_both = position_deletes(table, [(file.file_path, 9) for file in (first, second)] * 3)
    commit(table, of_one, of_both)
    limits = {"min_input_files": 9, "dry_run": True}
    assert compacted(table, delete_ratio_threshold=0.4, **limits).rewritten_data_files == 2
    assert compacted(table, delete_ratio_threshold=0.5, **limits).rewritten_data_files == 0


def test_files_are_chosen_by_size_number_and_deletes() -> None:
    table = new_table(["kind"], properties={"format-version": "3", **MERGE_ON_READ})
    for start in range(4):
        table.append(rows(range(10 * start, 10 * start + 10), "a"))
    table.append(rows(range(40, 50), "b"))
    assert table.maintenance.rewrite_data_files().snapshot_id is None, "4 files are fewer than min_input_files"
    assert compacted(table, where="kind = 'b'", dry_run=True).groups == ()
    assert compacted(table, where="kind = 'a'", dry_run=True).rewritten_data_files == 4
    size = int(table.inspect.data_files()["file_size_in_bytes"][0].as_py())
    assert compacted(table, dry_run=True, max_file_group_size_bytes=2 * size + 9).rewritten_data_files == 4
    assert len(compacted(table, dry_run=True, max_file_group_size_bytes=2 * size + 9).groups) == 2
    assert compacted(table, dry_run=True, target_file_size_bytes=size).groups == ()
    table.delete("id in (40, 41)")
    assert compacted(table, where="kind = 'b'", dry_run=True).groups == (), "a fifth of the rows is less than 0.3"
    assert compacted(table, where="id = 45", delete_file_threshold=1, dry_run=True).rewritten_data_files == 1
    made = compacted(table, where="id = 45", delete_ratio_threshold=0.2)
    assert made.rewritten_data_files == 1
    assert table.inspect.delete_files().num_rows == 0
    assert ids(table) == [*range(40), *range(42, 50)]


@pytest.mark.spec("SORT-06", "SORT-10")
def test_sorted_files_state_the_order_of_the_table_only_where_it_is_theirs() -> None:
    table = new_table(properties={"format-version": "2"})
    with table.update_sort_order() as order:
        order.desc("id")
    for start in range(3):
        table.append(rows(range(start, 30, 3)))

    def order_ids() -> set[Any]:
        return set(table.inspect.data_files()["sort_order_id"].to_pylist())

    compacted(table, strategy="sort", sort_order=["id desc"], rewrite_all=True)
    assert table.scan().to_arrow()["id"].to_pylist() == [*range(29, -1, -1)]
    assert order_ids() == {table.sort_order().order_id}
    compacted(table, strategy="sort", sort_order=["id"], rewrite_all=True)
    assert table.scan().to_arrow()["id"].to_pylist() == [*range(30)]
    assert table.sort_order().order_id not in order_ids()
    compacted(table, strategy="sort", rewrite_all=True)
    assert order_ids() == {table.sort_order().order_id}
    compacted(table, rewrite_all=True)
    assert table.sort_order().order_id not in order_ids()


@pytest.mark.parametrize("given", ["id desc", ["id desc"], [("id", "desc")], "bucket[4](id) desc nulls last"])
def test_a_sort_order_has_the_forms_that_create_table_takes(given: Any) -> None:
    table = new_table()
    for start in range(3):
        table.append(rows(range(start, 30, 3)))
    compacted(table, strategy="sort", sort_order=given)
    found = table.scan().to_arrow()
    assert found["id"].to_pylist() != [*range(30)]
    assert found.equals(found.take(sort_indices(sort_order_of(given, table.schema()), table.schema(), found)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"strategy": "shuffle"}, "a strategy is one of"),
        ({"strategy": "sort"}, "nothing to sort by"),
        ({"strategy": "zorder"}, "zorder_columns"),
        ({"strategy": "zorder", "zorder_columns": ["nope"]}, "nope"),
        ({"strategy": "sort", "sort_order": "nope desc"}, "nope"),
        ({"sort_order": ["id"]}, "sort_order goes with"),
        ({"min_input_files": 0}, "min_input_files"),
        ({"min_input_files": 2.5}, "min_input_files"),
        ({"target_file_size_bytes": 10**400}, "target_file_size_bytes"),
        ({"target_file_size_bytes": 10, "max_file_size_bytes": 5}, "max_file_size_bytes"),
        ({"output_spec_id": 7}, "no partition spec 7"),
        ({"rewrite_job_order": "size"}, "rewrite_job_order"),
        ({"max_failed_commits": -1}, "max_failed_commits"),
        ({"max_concurrent_file_group_rewrites": 0}, "max_concurrent_file_group_rewrites"),
        ({"delete_ratio_threshold": 0.0}, "delete_ratio_threshold"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], said: str) -> None:
    table = new_table()
    table.append(rows([1]))
    with pytest.raises(InvalidArgument, match=said):
        table.maintenance.rewrite_data_files(**options)


def test_a_z_order_brings_near_rows_into_one_file() -> None:
    table = new_table(schema=pa.schema([("x", pa.int64()), ("y", pa.date32())]))
    grid = [(x, date.fromordinal(730_000 + y)) for x in range(64) for y in range(64, 128)]
    random.Random(5).shuffle(grid)
    table.append(pa.table({"x": [x for x, _ in grid], "y": [y for _, y in grid]}))
    compacted(table, strategy="zorder", zorder_columns=["x", "y"], rewrite_all=True)
    first = table.scan().to_arrow().slice(0, 64 * 64 // 16)
    assert (pc.max(first["x"]).as_py(), pc.max(first["y"]).as_py()) == (15, date.fromordinal(730_079))


def test_sizes_are_packed_where_they_fit_first() -> None:
    assert pack([5, 6, 4, 5, 20, 1], 10, 10) == [[0, 2, 5], [1], [3], [4]]
    assert pack([6, 7, 8, 4], 10, 1) == [[0], [1], [2], [3]]
    assert Sizes(100, 75, 180, 1000).output(210) == 111, "no third file of 10 bytes"
    assert Sizes(100, 75, 180, 1000).output(290) == 100


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pyiceberg_and_duckdb_read_the_same_rows_afterwards(
    tmp_path: Path, version: str, strategy: dict[str, Any]
) -> None:
    catalog = load_catalog("test", type="directory", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    properties = {"format-version": version, **MERGE_ON_READ}
    table = new_table(["kind"], catalog=catalog, properties=properties)
    for start in range(4):
        table.append(rows(range(10 * start, 10 * start + 10), "ab"[start % 2]))
    table.delete("id in (3, 14, 15)")
    assert compacted(table, **strategy).rewritten_data_files == 4
    wanted = [one for one in range(40) if one not in (3, 14, 15)]
    with DuckDBEngine() as engine:
        assert sorted(duckdb_rows(engine, table)["id"].to_pylist()) == wanted
    theirs = StaticTable.from_metadata(table.metadata_location)
    assert sorted(theirs.scan().to_arrow()["id"].to_pylist()) == wanted
