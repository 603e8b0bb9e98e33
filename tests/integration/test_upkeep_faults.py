"""Manifests, data and delete files are rewritten by processes that die at any step, and beside others that write."""

from __future__ import annotations

import os
import shutil
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from catalogs import properties_of
from census import present, referenced
from forked import forking
from icefield import Catalog, Plugins, Table, load_catalog
from icefield_sql.strategy import SqlStrategy
from killing import Steps, stepping
from many_writers import RETRIES

SOAK = bool(os.environ.get("ICEFIELD_SOAK"))
STRIDE = 1 if SOAK else 7
COMMITS = 40 if SOAK else 5
SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string())])
SETTINGS = {
    **{f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")},
    **RETRIES,
    "commit.manifest-merge.enabled": "false",
}

Given = dict[str, str]
Upkeep = Callable[[Table], Any]


def rewrite_manifests(table: Table) -> Any:
    return table.maintenance.rewrite_manifests()


def rewrite_deletes(table: Table) -> Any:
    return table.maintenance.rewrite_position_delete_files(min_input_files=2)


def convert(table: Table) -> Any:
    return table.maintenance.convert_equality_deletes()


def remove_dangling(table: Table) -> Any:
    return table.maintenance.remove_dangling_deletes()


def compact(table: Table) -> Any:
    return table.maintenance.rewrite_data_files(min_input_files=2, delete_file_threshold=1)


ALL = (rewrite_manifests, rewrite_deletes, convert, remove_dangling, compact)


BESIDE = [("create", "3"), ("create", "2"), ("sql", "3")]
WALKS = [(*where, each) for each in ALL for where in (("create", "2"), ("rename", "3"), ("sql", "3"))]
"""Each upkeep, with each way of committing."""


def rows(numbers: Any, kind: str) -> pa.Table:
    return pa.table({"id": [*numbers], "kind": [kind] * len(numbers)}, schema=SCHEMA)


def opened(given: Mapping[str, str], plugins: Plugins | None = None) -> Catalog:
    return load_catalog("test", plugins=plugins, **given)


def made(given: Given, version: str) -> Table:
    """A table with something to do for each kind of upkeep."""
    catalog = opened(given)
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", SCHEMA, partition_spec=["kind"], properties={**SETTINGS, "format-version": version}
    )
    for kind in "ab":
        table.append(rows(range(1000), kind))
    for number in range(3):
        table.delete(f"id = {900 + number}")
    table.delete("id = 903 and kind = 'a'")
    table.delete_by_equality(rows([910, 911], "a"), ["id", "kind"])
    table.delete_by_equality(rows([1], "gone"), ["id", "kind"])
    return table


def found(table: Table) -> list[tuple[int, str]]:
    return sorted((row["id"], row["kind"]) for row in table.scan().to_arrow().to_pylist())


def dies_at(step: int, given: Given, upkeep: Upkeep) -> bool:
    """Run the upkeep in a process that dies at that step; False when it ended before."""
    process = os.fork()
    if process == 0:
        try:
            plugins = Plugins.installed({"file-systems.file": "killing"}, ["killing"])
            table = opened(given, plugins).load_table("db.t")
            SqlStrategy.swap_pointer = stepping(SqlStrategy.swap_pointer)  # type: ignore[method-assign]
            Steps.done, Steps.deadly = 0, step
            upkeep(table)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitpid(process, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the upkeep failed by itself"
    return os.WIFSIGNALED(status)


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version", "upkeep"), WALKS if SOAK else [*WALKS[::4], WALKS[9]])
def test_a_second_run_finishes_what_a_killed_one_began(tmp_path: Path, kind: str, version: str, upkeep: Upkeep) -> None:
    folder, kept = tmp_path / "here", tmp_path / "kept"
    folder.mkdir()
    given = properties_of(kind, folder)
    before = found(made(given, version))
    shutil.copytree(folder, kept)
    outcomes = set()
    for step in range(1, 1000, STRIDE):
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)
        died = dies_at(step, given, upkeep)
        table = opened(given).load_table("db.t")
        assert found(table) == before, f"rows are lost or doubled after step {step}"
        assert referenced(table) <= present(table)
        again = upkeep(table)
        outcomes.add(again.snapshot_id is None)
        assert found(table) == before
        assert referenced(table) <= present(table)
        assert upkeep(table).snapshot_id is None, "the second run left work"
        if not died:
            break
    else:
        pytest.fail("the upkeep has more steps than the harness walks")
    assert outcomes == {True, False}, "it was to die before and after the commit"


def _appends(given: Given) -> None:
    table = opened(given).load_table("db.t")
    for number in range(COMMITS):
        table.append(rows([10_000 + number], "ab"[number % 2]))


def _deletes(given: Given) -> None:
    table = opened(given).load_table("db.t")
    for number in range(COMMITS):
        table.delete(f"id = {number}")


def _deletes_by_equality(given: Given) -> None:
    table = opened(given).load_table("db.t")
    for number in range(COMMITS):
        table.delete_by_equality(rows([500 + number], "a"), ["id", "kind"])
        table.delete_by_equality(rows([500 + number], "b"), ["id", "kind"])


def _keeps_up(given: Given) -> None:
    for _ in range(COMMITS // 4):
        for upkeep in ALL:
            upkeep(opened(given).load_table("db.t"))


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version"), BESIDE if SOAK else BESIDE[:1])
def test_no_row_is_lost_or_doubled_beside_writers(tmp_path: Path, kind: str, version: str) -> None:
    given = properties_of(kind, tmp_path)
    before = found(made(given, version))
    context = forking()
    jobs = (_appends, _deletes, _deletes_by_equality, _keeps_up, _keeps_up)
    processes = [context.Process(target=job, args=(given,)) for job in jobs]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(jobs)
    gone = {*range(COMMITS), *range(500, 500 + COMMITS)}
    expected = [row for row in before if row[0] not in gone]
    expected += [(10_000 + number, "ab"[number % 2]) for number in range(COMMITS)]
    table = opened(given).load_table("db.t")
    assert found(table) == sorted(expected)
    assert present(table) == referenced(table)
    _keeps_up(given)
    table.refresh()
    assert found(table) == sorted(expected)
    kinds = {file["content"] for file in table.inspect.delete_files().to_pylist()}
    assert 2 not in kinds, "every equality delete was converted"
