"""A branch over many tables is created, merged and dropped in one step, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from icefield import Catalog, load_catalog
from icefield.errors import InvalidArgument, InvalidMetadata, NotSupportedByCatalog
from icefield_maintenance import BranchDifference, CatalogBranches
from tables import ids, memory_catalog, new_table, rows

NAMES = ("db.a", "db.b", "db.c")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = load_catalog(
        "c", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=tmp_path.as_uri(), **{"file.sync": "false"}
    )
    made.create_namespace("db")
    for name in NAMES:
        new_table(catalog=made, name=name).append(rows([1]))
    return made


def test_a_branch_is_written_compared_merged_and_dropped(catalog: Catalog) -> None:
    branches = CatalogBranches(catalog)
    assert branches.create("work", NAMES[:2]) == NAMES[:2]
    assert branches.list() == {"work": NAMES[:2]}
    catalog.load_table("db.a").append(rows([2, 3]), branch="work")
    assert branches.diff("work") == (
        BranchDifference(table="db.a", ahead=1, behind=0, added_records=2),
        BranchDifference(table="db.b", ahead=0, behind=0),
    )
    assert ids(catalog.load_table("db.a")) == [1]
    assert branches.merge("work") == ("db.a",)
    assert ids(catalog.load_table("db.a")) == [1, 2, 3]
    assert branches.drop("work") == NAMES[:2]
    assert branches.list() == {}


def test_a_table_that_cannot_merge_keeps_all_from_merging(catalog: Catalog) -> None:
    branches = CatalogBranches(catalog)
    branches.create("work", NAMES)
    for name in NAMES:
        catalog.load_table(name).append(rows([2]), branch="work")
    catalog.load_table("db.c").append(rows([9]))
    assert [(each.ahead, each.behind) for each in branches.diff("work")] == [(1, 0), (1, 0), (1, 1)]
    with pytest.raises(InvalidArgument, match="cannot be merged"):
        branches.merge("work")
    assert [ids(catalog.load_table(name)) for name in NAMES] == [[1], [1], [1, 9]]


def test_a_taken_name_in_one_table_creates_no_branch(catalog: Catalog) -> None:
    CatalogBranches(catalog).create("work", ["db.c"])
    with pytest.raises(InvalidArgument, match="work"):
        CatalogBranches(catalog).create("work", NAMES)
    assert CatalogBranches(catalog).list() == {"work": ("db.c",)}


def test_a_table_without_a_snapshot_takes_part(catalog: Catalog) -> None:
    new_table(catalog=catalog, name="db.empty")
    branches = CatalogBranches(catalog)
    branches.create("work", ["db.a", "db.empty"])
    catalog.load_table("db.empty").append(rows([5]), branch="work")
    assert branches.merge("work") == ("db.empty",)
    assert ids(catalog.load_table("db.empty")) == [5]


def test_a_catalog_that_changes_one_table_at_a_time_refuses_several() -> None:
    catalog = memory_catalog()
    for name in NAMES[:2]:
        new_table(catalog=catalog, name=name).append(rows([1]))
    branches = CatalogBranches(catalog)
    with pytest.raises(NotSupportedByCatalog, match="cannot change the 2 tables in one step"):
        branches.create("work", NAMES[:2])
    assert branches.list() == {}
    assert branches.create("work", ["db.a"]) == ("db.a",)
    assert branches.drop("work") == ("db.a",)


@pytest.mark.parametrize("call", ["diff", "merge", "drop"])
def test_a_branch_that_no_table_has_is_named(catalog: Catalog, call: str) -> None:
    with pytest.raises(InvalidArgument, match="no table of catalog 'c' has a branch 'work'"):
        getattr(CatalogBranches(catalog), call)("work")


def test_a_branch_needs_a_table_and_main_stays(catalog: Catalog) -> None:
    with pytest.raises(InvalidArgument, match="name one at least"):
        CatalogBranches(catalog).create("work", [])
    branches = CatalogBranches(catalog)
    for use in (branches.diff, branches.merge, branches.drop):
        with pytest.raises(InvalidArgument, match="'main' is the table itself"):
            use("main")


def test_a_table_in_which_the_branch_is_not_ahead_hinders_no_merge(catalog: Catalog) -> None:
    branches = CatalogBranches(catalog)
    branches.create("work", NAMES)
    catalog.load_table("db.a").append(rows([2]), branch="work")
    catalog.load_table("db.c").append(rows([9]))
    assert branches.merge("work") == ("db.a",)
    assert [ids(catalog.load_table(name)) for name in NAMES] == [[1, 2], [1], [1, 9]]


def test_a_table_that_is_named_twice_is_one(catalog: Catalog) -> None:
    branches = CatalogBranches(catalog)
    assert branches.create("work", ["db.a", ("db", "a"), "db.b"]) == NAMES[:2]


def test_errors_name_the_tables(catalog: Catalog) -> None:
    branches = CatalogBranches(catalog)
    branches.create("work", NAMES)
    with pytest.raises(InvalidArgument, match=r"'work' is already in db\.a, db\.b, db\.c$"):
        branches.create("work", NAMES)
    for name in NAMES[1:]:
        catalog.load_table(name).append(rows([2]), branch="work")
        catalog.load_table(name).append(rows([9]))
    with pytest.raises(InvalidArgument, match=r"lacks in db\.b, db\.c$"):
        branches.merge("work")


def test_a_table_that_is_dropped_meanwhile_is_left_out(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    branches = CatalogBranches(catalog)
    branches.create("work", NAMES)
    catalog.create_namespace("other")
    listed = catalog.list_tables

    def list_tables(namespace: Any) -> Any:
        found = listed(namespace)
        if "db.b" in {".".join(each) for each in found}:
            catalog.drop_table("db.b")
            catalog.drop_namespace("other")
        return found

    monkeypatch.setattr(catalog, "list_namespaces", lambda parent=(): [] if parent else [("other",), ("db",)])
    monkeypatch.setattr(catalog, "list_tables", list_tables)
    assert branches.list() == {"work": ("db.a", "db.c")}
    assert branches.drop("work") == ("db.a", "db.c")


def test_only_named_tables_are_read(catalog: Catalog, tmp_path: Path) -> None:
    CatalogBranches(catalog).create("work", NAMES)
    unreadable = catalog.load_table("db.c").metadata_location.removeprefix("file://")
    Path(unreadable).write_text("{")
    fresh = load_catalog("c", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=tmp_path.as_uri())
    with pytest.raises(InvalidMetadata):
        CatalogBranches(fresh).list()
    branches = CatalogBranches(fresh, ["db.b", "db.a"])
    assert branches.list() == {"work": NAMES[:2]}
    fresh.load_table("db.b").append(rows([2]), branch="work")
    assert [each.ahead for each in branches.diff("work")] == [0, 1]
    assert branches.merge("work") == ("db.b",)
    assert branches.drop("work") == NAMES[:2]


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_difference_counts_the_rows_that_are_added_and_deleted(catalog: Catalog, version: str) -> None:
    modes = {"write.delete.mode": "merge-on-read", "format-version": version}
    table = new_table(catalog=catalog, name="db.m", properties=modes)
    table.append(rows([*range(100)]))
    branches = CatalogBranches(catalog, ["db.m"])
    branches.create("work", ["db.m"])
    expected = {"added": 0, "deleted": 0}
    for number, gone in enumerate(["id < 5", "id < 10", "id in (20, 200)", "id >= 300"]):
        more = [*range(200 + 100 * number, 205 + 100 * number)]
        before = len(ids(table.refresh(), ref="work"))
        table.append(rows(more), branch="work")
        table.refresh().delete(gone, branch="work")
        after = len(ids(table.refresh(), ref="work"))
        expected["added"] += 5
        expected["deleted"] += before + 5 - after
        [found] = branches.diff("work")
        assert (found.added_records, found.deleted_records) == (expected["added"], expected["deleted"])
    assert len(ids(table)) + expected["added"] - expected["deleted"] == len(ids(table.refresh(), ref="work"))


def test_a_branch_whose_middle_has_expired_says_so(catalog: Catalog) -> None:
    branches = CatalogBranches(catalog, ["db.a", "db.b"])
    branches.create("work", NAMES[:2])
    for number in (2, 3):
        catalog.load_table("db.a").append(rows([number]), branch="work")
    catalog.load_table("db.a").maintenance.expire_snapshots(2**50, retain_last=1)
    [found, other] = branches.diff("work")
    assert (found.has_lost_history, other.has_lost_history) == (True, False)
    with pytest.raises(InvalidArgument, match=r"have expired in db\.a\. Where main has not changed since"):
        branches.merge("work")
    assert ids(catalog.load_table("db.a")) == [1]
