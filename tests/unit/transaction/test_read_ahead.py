"""Changes find their files with the scan's planner: manifests are fetched several at a time, and each one once."""

from __future__ import annotations

import re
from collections import Counter
from threading import Barrier

import icefield
import pytest
from icefield.errors import ValidationFailed
from icefield.storage import FileIO
from tables import memory_catalog, new_table, rows

AT_ONCE = 4
MANIFESTS = 3 * AT_ONCE
MANIFEST = re.compile(r"-m\d+\.avro$")


@pytest.fixture
def table():
    made = new_table("kind", **{"commit.manifest-merge.enabled": "false"})
    for number in range(MANIFESTS):
        made.append(rows([number], "a"))
    return made


@pytest.fixture
def fetched(monkeypatch):
    """The number of requests for each manifest; a request waits until four requests are under way."""
    counts: Counter[str] = Counter()
    barrier = Barrier(AT_ONCE)
    original = FileIO.read

    def read(self, location, **limits):
        if MANIFEST.search(location):
            counts[location] += 1
            barrier.wait(timeout=10)
        return original(self, location, **limits)

    monkeypatch.setattr(FileIO, "read", read)
    icefield.clear_caches()
    return counts


def test_a_delete_by_filter_reads_manifests_ahead_and_rewrites_them_from_what_is_read_ahead(table, fetched):
    table.delete("kind = 'a'")
    assert sorted(fetched.values()) == [1] * MANIFESTS  # to find the files, and to write the manifest anew


def test_a_delete_by_name_reads_manifests_ahead(table, fetched):
    with pytest.raises(ValidationFailed):
        table.update_snapshot().delete().delete_file("memory://nowhere/file.parquet").commit()
    assert sorted(fetched.values()) == [1] * MANIFESTS


def test_a_dynamic_overwrite_reads_manifests_ahead(table, fetched):
    table.dynamic_partition_overwrite(rows([1], "a"))
    assert sorted(fetched.values()) == [1] * MANIFESTS


def test_a_conflict_check_reads_what_was_added_meanwhile_ahead(table, fetched):
    action = table.update_snapshot().overwrite().overwrite_by_filter("kind = 'b'")
    action.validate_from_snapshot(None).conflict_detection_filter("id > 100").validate_no_conflicting_data()
    action.commit()
    assert sorted(fetched.values()) == [1] * MANIFESTS


def test_without_a_cache_a_manifest_is_fetched_to_find_its_files_and_to_write_it_anew_and_no_third_time(fetched):
    catalog = memory_catalog(**{"io.manifest.cache-enabled": "false"})
    table = new_table("kind", catalog=catalog, **{"commit.manifest-merge.enabled": "false"})
    for number in range(MANIFESTS):
        table.append(rows([number], "a"))
    fetched.clear()
    table.delete("kind = 'a'")
    assert sorted(fetched.values()) == [2] * MANIFESTS
    assert table.current_snapshot().summary["deleted-data-files"] == str(MANIFESTS)
