"""A merge of a branch over many tables takes whole commits, even one of several tables that comes in the middle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from icefield import Catalog, load_catalog
from icefield.catalog import transaction as transactions
from icefield_maintenance import CatalogBranches
from tables import ids, new_table, rows

NAMES = ("db.a", "db.b", "db.c")


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    place = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": tmp_path.as_uri()}
    made = load_catalog("c", type="sql", **place, **{"file.sync": "false"})
    made.create_namespace("db")
    for name in NAMES:
        new_table(catalog=made, name=name).append(rows([1]))
    return made


def test_a_commit_of_several_tables_during_a_merge_is_merged_whole(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rival writes to the branch of two tables after the first was read, and before the second is."""
    CatalogBranches(catalog).create("work", NAMES)
    catalog.load_table("db.c").append(rows([2]), branch="work")
    load, read = transactions.load_table, list[str]()

    def load_table(handle: Any, held: Any = None) -> Any:
        read.append(handle.full_name)
        if read == ["db.a", "db.b"]:
            with catalog.transaction() as rival:
                for name in ("db.a", "db.c"):
                    rival.table(name).append(rows([7]), branch="work")
        return load(handle, held)

    monkeypatch.setattr(transactions, "load_table", load_table)
    CatalogBranches(catalog).merge("work")
    assert len(read) > 3
    assert [7 in ids(catalog.load_table(name)) for name in ("db.a", "db.c")] == [True, True]
