"""A branch over many tables is created, merged and dropped in one step, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from icefield import Catalog, load_catalog
from icefield.errors import InvalidArgument, NotSupportedByCatalog
from icefield_maintenance import BranchDifference, CatalogBranches
from tables import ids, memory_catalog, new_table, rows

NAMES = ("db.a", "db.b", "db.c")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = load_catalog("c", type="sql", uri="sqlite://", warehouse=tmp_path.as_uri(), **{"file.sync": "false"})
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
    with pytest.raises(InvalidArgument, match="cannot be moved forward"):
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
    with pytest.raises(InvalidArgument, match="main"):
        CatalogBranches(catalog).drop("main")
