"""The command ``branches`` does and shows what ``CatalogBranches`` does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import icefield
from event_rows import ids, rows
from icefield_maintenance import CatalogBranches

Run = Callable[..., Any]


def test_a_branch_is_made_compared_merged_and_dropped(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    branches = CatalogBranches(catalog)
    assert run("branches", "work", "--create", "db.events").out == "created branch work of 1 table\n"
    assert branches.list() == {"work": ("db.events",)}
    before = ids(catalog)
    catalog.load_table("db.events").append(rows(events, (7, "a")), branch="work")
    for more in ((), ("--table", "db.events")):
        listed = run("branches", *more, "--output", "json").objects
        assert listed == [{"branch": "work", "table": "db.events"}]
        shown = run("branches", "work", "--diff", *more, "--output", "json").objects
        assert shown == [asdict(each) for each in branches.diff("work")]
    made = run("branches", "work", "--merge", "--output", "json").object
    assert (made["branch"], made["tables"]) == ("work", ["db.events"])
    assert ids(catalog) == sorted([*before, 7])
    assert run("branches", "work", "--merge").out == "merged branch work of 0 tables\n"
    assert run("branches", "work", "--drop", "--table", "db.events").out == "dropped branch work of 1 table\n"
    assert branches.list() == {}


def test_errors_of_branches_name_the_branch_and_the_table(
    run: Run, catalog: icefield.Catalog, events: icefield.Table
) -> None:
    assert "no table of catalog" in run("branches", "work", "--drop").err
    run("branches", "work", "--create", "db.events")
    again = run("branches", "work", "--create", "db.events")
    assert (again.status, "a branch or tag 'work' is already in db.events" in again.err) == (1, True)
    catalog.load_table("db.events").append(rows(events, (7, "a")), branch="work")
    catalog.load_table("db.events").append(rows(events, (8, "a")))
    refused = run("branches", "work", "--merge")
    assert (refused.status, "main has snapshots that the branch lacks in db.events" in refused.err) == (1, True)
