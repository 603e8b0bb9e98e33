"""A process is killed at every step while it changes a branch of two tables: both have the change, or neither."""

from __future__ import annotations

from pathlib import Path

import pytest
from catalogs import properties_of
from icefield import Table, load_catalog
from icefield_maintenance import CatalogBranches
from killing import CHANGING, STATEMENTS, SWAP, dies_at, killing_plugins
from tables import ids, new_table, rows

NAMES = ("db.t", "db.u")


@pytest.mark.slow
@pytest.mark.parametrize("change", ["create", "merge", "drop"])
def test_a_branch_of_two_tables_changes_whole_whatever_step_a_process_dies_at(change: str, tmp_path: Path) -> None:
    given = properties_of("sql", tmp_path)
    catalog = load_catalog("test", **given)
    catalog.create_namespace("db")
    for name in NAMES:
        new_table(catalog=catalog, name=name).append(rows([0]))
    branches, changed = CatalogBranches(catalog), list[bool]()
    for step in range(1, 500):
        branch = f"b{step}"
        if change != "create":
            branches.create(branch, NAMES)
        if change == "merge":
            with catalog.transaction() as both:
                for name in NAMES:
                    both.table(name).append(rows([step]), branch=branch)

        def run(_: Table, branch: str = branch) -> None:
            own = CatalogBranches(load_catalog("test", plugins=killing_plugins(), **given))
            if change == "create":
                own.create(branch, NAMES)
            else:
                getattr(own, change)(branch)

        died = dies_at(step, given, run, also=(*SWAP, *STATEMENTS), counted=CHANGING)
        tables = [catalog.load_table(name) for name in NAMES]
        if change == "merge":
            found = [step in ids(table) for table in tables]
        else:
            found = [(branch in table.refs()) is (change == "create") for table in tables]
        assert found[0] is found[1], f"one table alone has the change after step {step}"
        changed.append(found[0])
        if not died:
            assert found[0]
            break
    else:
        pytest.fail("the change has more steps than the harness walks")
    assert len(changed) > 8
    assert not changed[0]
