"""A process is killed at every step of a commit: the table always opens, at the old or at the new version."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from catalogs import KINDS, properties_of
from icefield import Catalog, Table, load_catalog
from killing import STATEMENTS, SWAP, dies_at
from servers.postgres import new_database

OLD = pa.table({"id": pa.array(range(10), pa.int64()), "part": ["a", "b"] * 5})
NEW = pa.table({"id": pa.array(range(10, 16), pa.int64()), "part": ["a", "c"] * 3})

Change = Callable[[Table], None]


def append(table: Table) -> None:
    table.append(NEW)


def overwrite(table: Table) -> None:
    table.overwrite(NEW, "part = 'a'")


def evolve_and_append(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.set_properties({"changed": "yes"})
        transaction.append(NEW)


Rows = list[tuple[int, str]]


def rows_of(table: Table) -> Rows:
    return sorted((row["id"], row["part"]) for row in table.scan().to_arrow().to_pylist())


def appended(before: Rows) -> Rows:
    return sorted([*before, *((row["id"], row["part"]) for row in NEW.to_pylist())])


def overwritten(before: Rows) -> Rows:
    return appended([(number, part) for number, part in before if part != "a"])


AFTER: dict[Change, Callable[[Rows], Rows]] = {
    append: appended,
    overwrite: overwritten,
    evolve_and_append: appended,
}
SOAK = bool(os.environ.get("ICEFIELD_SOAK"))
Given = dict[str, str]
STEPS = (*SWAP, *STATEMENTS)


@pytest.fixture(params=[*KINDS, "postgres"])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> Given:
    """The properties of a catalog."""
    if request.param != "postgres":
        return properties_of(request.param, tmp_path)
    return {**properties_of("sql", tmp_path), "uri": new_database(request.getfixturevalue("postgres"))}


def opened(given: Given) -> Catalog:
    return load_catalog("test", **given)


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("COMMIT-02", "COMMIT-24", "FS-14", "META-01")
@pytest.mark.parametrize("change", AFTER if SOAK else [append], ids=lambda change: change.__name__)
def test_a_table_opens_after_a_kill_at_any_step(given: Given, change: Change) -> None:
    catalog = opened(given)
    catalog.create_namespace("db")
    catalog.create_table("db.t", OLD.schema, partition_spec=["part"]).append(OLD)
    before = rows_of(catalog.load_table("db.t"))
    seen: set[str] = set()
    for step in range(1, 500):
        died = dies_at(step, given, change, also=STEPS)
        table = opened(given).load_table("db.t")
        found = rows_of(table)
        assert found in (before, AFTER[change](before)), f"a partial change is visible after step {step}"
        seen.add("old" if found == before else "new")
        if change is evolve_and_append:
            assert (table.properties.get("changed") == "yes") == (found != before)
        if not died:
            break
        # The next change succeeds despite the files that the dead process left.
        with table.transaction() as transaction:
            transaction.delete()
            transaction.append(OLD)
            transaction.set_properties({"changed": "no"})
        before = rows_of(opened(given).load_table("db.t"))
        assert before == sorted((row["id"], row["part"]) for row in OLD.to_pylist())
    else:
        pytest.fail("the change has more steps than the harness walks")
    assert seen == {"old", "new"}
    assert step > 8, "the harness walked too few steps to have met the commit"
