"""The requests of commits to storage: a process does not read what it has just written, and no file twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from icefield.builtin.memory import MemoryFileSystem
from icefield.catalog import Table
from icefield.manifest import ManifestWriter, clear_caches
from tables import ids, manifests, new_table, rows

READS = ("open_input",)
WRITES = ("put", "open_output")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Returns the kinds of files that were read (``<``) or written (``>``) since the last call."""
    made: list[str] = []

    def watch(name: str, sign: str) -> None:
        real = getattr(MemoryFileSystem, name)

        def noted(self: Any, location: str, *given: Any) -> Any:
            made.append(sign + kind_of(location))
            return real(self, location, *given)

        monkeypatch.setattr(MemoryFileSystem, name, noted)

    for name in READS:
        watch(name, "<")
    for name in WRITES:
        watch(name, ">")

    def taken() -> list[str]:
        found = sorted(each for each in made if "metadata file" not in each and "hint" not in each)
        made.clear()
        return found

    return taken


def kind_of(location: str) -> str:
    name = location.rpartition("/")[2]
    if name.startswith("snap-"):
        return "list"
    return {"avro": "manifest", "parquet": "data", "json": "metadata file", "text": "hint"}[name.rpartition(".")[2]]


def appended(times: int, **properties: str) -> Table:
    table = new_table(**properties)
    for number in range(times):
        table.append(rows([number]))
    return table


def test_an_append_reads_nothing(requests: Callable[[], list[str]]):
    table = appended(3)
    requests()
    table.append(rows([3]))
    assert requests() == [">data", ">list", ">manifest"]


def test_a_commit_that_merges_manifests_of_this_process_reads_none(requests: Callable[[], list[str]]):
    table = appended(4, **{"commit.manifest.min-count-to-merge": "5"})
    requests()
    table.append(rows([4]))
    assert requests() == [">data", ">list", ">manifest", ">manifest"]
    assert [manifest.existing_files_count for manifest in manifests(table)] == [4, 0]
    assert ids(table) == [0, 1, 2, 3, 4]


def test_a_commit_that_merges_manifests_of_another_process_reads_each_once(requests: Callable[[], list[str]]):
    table = appended(4, **{"commit.manifest.min-count-to-merge": "5"})
    clear_caches()
    requests()
    table.append(rows([4]))
    assert requests() == ["<list", *["<manifest"] * 4, ">data", ">list", ">manifest", ">manifest"]


@pytest.mark.parametrize("change", ["delete", "update"])
def test_a_filter_that_changes_a_small_file_reads_it_once(change: str, requests: Callable[[], list[str]]):
    table = new_table()
    table.append(rows([1, 2, 3]))
    requests()
    if change == "delete":
        table.delete("id = 2")
    else:
        table.update("id = 2", {"id": 9})
    assert requests() == ["<data", ">data", ">list", ">manifest", ">manifest"]
    assert ids(table) == ([1, 3] if change == "delete" else [1, 3, 9])


def test_a_delete_of_whole_files_reads_nothing(requests: Callable[[], list[str]]):
    table = appended(2)
    requests()
    table.delete("id = 1")
    assert requests() == [">list", ">manifest"]


def test_small_manifests_are_encoded_together(monkeypatch: pytest.MonkeyPatch):
    table = appended(9, **{"commit.manifest.min-count-to-merge": "10"})
    calls: list[int] = []
    existing = ManifestWriter.existing

    def noted(self: Any, entries: Any) -> None:
        calls.append(len(entries))
        existing(self, entries)

    monkeypatch.setattr(ManifestWriter, "existing", noted)
    table.append(rows([9]))
    assert calls == [9]
    assert ids(table) == list(range(10))


def test_manifests_are_encoded_in_parts_of_a_bounded_number_of_entries(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("icefield.transaction.snapshots.manifests._ENTRIES_AT_ONCE", 2)
    table = appended(5, **{"commit.manifest.min-count-to-merge": "6"})
    table.append(rows([9]))
    assert [manifest.existing_files_count for manifest in manifests(table)] == [5, 0]
    assert ids(table) == [0, 1, 2, 3, 4, 9]
