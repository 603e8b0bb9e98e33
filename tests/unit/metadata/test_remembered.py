"""The epochs of streams and the publications that tables remember after the snapshots with them have expired."""

from __future__ import annotations

import json
import random

import icefield
import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument, InvalidMetadata
from icefield.metadata import STREAM_EPOCH_ID, STREAM_QUERY_ID, is_memory, last_epoch
from tables import new_table

ROW = pa.table({"id": pa.array([1], pa.int64())})


@pytest.fixture(params=[1, 2, 3])
def table(request: pytest.FixtureRequest) -> icefield.Table:
    return new_table(schema=ROW.schema, properties={"format-version": str(request.param), "write.wap.enabled": "true"})


def put(table: icefield.Table, query: str, epoch: int, branch: str = "main") -> int:
    table.append(ROW, snapshot_properties={STREAM_QUERY_ID: query, STREAM_EPOCH_ID: str(epoch)}, branch=branch)
    found = table.snapshot_by_name(branch)
    assert found is not None
    return found.snapshot_id


def expire_all(table: icefield.Table) -> None:
    table.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=1)


def number(table: icefield.Table, query: str, branch: str = "main") -> int | None:
    found = last_epoch(table.refresh().metadata, branch, query)
    return None if found is None else found[0]


@pytest.mark.slow
def test_epochs_of_several_queries_and_branches_outlive_random_expiry_and_follow_rollbacks(
    table: icefield.Table,
) -> None:
    """Compare the memory with a model that keeps the line of epochs of each branch, expired epochs included."""
    for seed in range(6):
        chance, lines = random.Random(seed), {"main": list[tuple[int, str, int]]()}
        table.append(ROW)
        for step in range(25):
            branch = chance.choice(sorted(lines))
            kind = chance.choice(["put", "put", "put", "plain", "expire", "expire-all", "roll back", "branch"])
            kept = {each.snapshot_id for each in table.refresh().snapshots()}
            if kind == "put":
                query = f"q{seed}-{chance.randrange(3)}"
                lines[branch].append((put(table, query, step, branch), query, step))
            elif kind == "plain":
                table.append(ROW, branch=branch)
            elif kind == "expire":
                table.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=chance.randrange(1, 4))
            elif kind == "expire-all":
                expire_all(table)
            elif kind == "branch" and len(lines) == 1:
                name = f"b{seed}"
                table.manage_snapshots().create_branch(None, name).commit()
                lines[name] = []  # what its line holds of main is not asked for
            elif kind == "roll back" and len(lines["main"]) > 1:
                back = [at for at, (snapshot, _, _) in enumerate(lines["main"]) if snapshot in kept]
                if back:
                    at = chance.choice(back)
                    table.manage_snapshots().rollback_to_snapshot(lines["main"][at][0]).commit()
                    gone = {query for _, query, _ in lines["main"][at + 1 :]}
                    # An expired epoch is unknown if a rolled-back epoch of its query had replaced it in the memory.
                    lines["main"] = [each for each in lines["main"][: at + 1] if each[1] not in gone or each[0] in kept]
            for name, line in lines.items():
                for query in {each for _, each, _ in line}:
                    assert number(table, query, name) == max(epoch for _, each, epoch in line if each == query)
        for name in lines.keys() - {"main"}:
            table.manage_snapshots().remove_branch(name).commit()


def test_a_branch_takes_along_what_the_line_remembers_that_it_is_moved_to(table: icefield.Table) -> None:
    put(table, "before", 1)
    table.append(ROW)
    expire_all(table)
    change = table.manage_snapshots().create_branch(None, "audit")
    change.create_branch(table.current_snapshot().snapshot_id, "other").commit()  # type: ignore[union-attr]
    put(table, "after", 2, "audit")
    table.append(ROW, branch="audit")
    table.manage_snapshots().rename_branch("audit", "checked").fast_forward("main", "checked").commit()
    expire_all(table)
    for branch, after in {"main": 2, "checked": 2, "other": None, "audit": None}.items():
        assert number(table, "after", branch) == after
        assert number(table, "before", branch) == (None if branch == "audit" else 1)
    table.manage_snapshots().remove_branch("checked").remove_branch("other").commit()
    assert [key for key in table.refresh().properties if is_memory(key)] == ["icefield.epochs.main"]


def test_an_epoch_that_was_rolled_back_may_be_written_again(table: icefield.Table) -> None:
    table.append(ROW)
    before = table.current_snapshot()
    assert before is not None
    put(table, "q", 0)
    table.manage_snapshots().rollback_to_snapshot(before.snapshot_id).commit()
    assert number(table, "q") is None
    expire_all(table)
    assert number(table, "q") is None
    put(table, "q", 0)
    table.append(ROW)
    expire_all(table)
    assert number(table, "q") == 0
    assert number(table, "other") is None


def test_what_another_engine_wrote_is_remembered_when_it_expires_here(table: icefield.Table) -> None:
    put(table, "q", 3)
    table.append(ROW)
    memory = [key for key in table.properties if is_memory(key)]
    assert memory == ["icefield.epochs.main"]
    table.remove_properties(*memory)  # as if they had never been there
    expire_all(table)
    assert number(table, "q") == 3


def test_a_change_that_was_published_is_refused_after_its_snapshot_has_expired(table: icefield.Table) -> None:
    def stage(name: str) -> int:
        table.append(ROW, snapshot_properties={"wap.id": name})
        (staged,) = [each.snapshot_id for each in table.refresh().snapshots() if each.summary.get("wap.id") == name]
        return staged

    table.append(ROW)
    first = stage("first")
    table.manage_snapshots().create_tag(first, "kept").commit()
    table.append(ROW)
    table.manage_snapshots().publish_changes("first").commit()
    second = stage("second")
    table.manage_snapshots().publish_changes("second").commit()  # by moving the branch
    assert table.current_snapshot().snapshot_id == second  # type: ignore[union-attr]
    table.append(ROW)
    table.maintenance.rewrite_data_files(rewrite_all=True)
    expire_all(table)
    with pytest.raises(InvalidArgument, match=f"snapshot {first} was picked before"):
        table.manage_snapshots().publish_changes("first").commit()
    again = stage("second")
    with pytest.raises(InvalidArgument, match=f"'second' of snapshot {again} was published before"):
        table.manage_snapshots().cherry_pick(again).commit()
    assert table.refresh().scan().count() == 5


def test_the_memory_is_bounded_and_keeps_the_latest(table: icefield.Table) -> None:
    names = ["n" * 5_000, *(f"query-{at:04}" for at in range(150))]
    for at, name in enumerate(names):
        put(table, name, at)
    put(table, names[0], 200)
    held = table.properties["icefield.epochs.main"]
    assert len(held) <= 3_500
    assert len(json.loads(held)) > 40
    table.append(ROW)
    expire_all(table)
    assert [number(table, name) for name in (names[0], names[-1], names[1])] == [200, 150, None]


@pytest.mark.parametrize("damaged", ["", "[]", "{", '{"q": 1}', '{"q": [1, 2]}', "[" * 10_000, '{"q": ["a", 1, 2]}'])
def test_a_damaged_memory_is_one_typed_error_where_it_is_asked(damaged: str) -> None:
    table = new_table(schema=ROW.schema)
    put(table, "q", 1)
    table.append(ROW)
    expire_all(table)
    table.set_properties({"icefield.epochs.main": damaged})
    table.append(ROW)
    for asks in (lambda: number(table, "q"), lambda: put(table, "q", 2)):
        with pytest.raises(InvalidMetadata, match=r"table property 'icefield\.epochs\.main' does not hold"):
            asks()
