"""A merge-on-read table of version 3 with several faults: after the repair, other libraries read the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import icefield
import pytest
from engines import DuckDBEngine
from icefield.manifest import clear_caches
from icefield_maintenance.doctor import Repair, Result, examine_table, repair_table
from peers import duckdb_rows
from planted_breaches import bound, first, of_column, set_in
from planted_faults import Planted
from pyiceberg.table import StaticTable

FAULTS = {
    "last-column-id": lambda p: p.edit_metadata(lambda d: set_in(d, "last-column-id", 1)),
    "statistics-files": lambda p: p.edit_metadata(
        lambda d: d.update(
            {
                "partition-statistics": [
                    {
                        "snapshot-id": d["current-snapshot-id"],
                        "statistics-path": "file:///gone",
                        "file-size-in-bytes": 1,
                    }
                ]
            }
        )
    ),
    "snapshot-totals": lambda p: p.edit_metadata(
        lambda d: set_in(d, "snapshots", -1, "summary", "total-records", "12345")
    ),
    "bounds": lambda p: p.edit_files(lambda d: of_column(3, bound(0.5))(d["upper_bounds"])),
    "null-counts": lambda p: p.edit_files(lambda d: of_column(3, 1)(d["null_value_counts"])),
    "manifest-counts": lambda p: p.edit_list(first(lambda r: r.update(added_files_count=r["added_files_count"] + 7))),
    "manifest-sequence-numbers": lambda p: p.edit_list(
        first(lambda r: r.update(min_sequence_number=r["min_sequence_number"] + 1))
    ),
    "manifest-partitions": lambda p: p.edit_list(first(lambda r: r["partitions"][0].update(upper_bound=b"Z"))),
}
"""In the order in which they are planted: those of manifests change the list, whose own come last."""


@pytest.fixture(scope="module")
def duckdb() -> Iterator[DuckDBEngine]:
    with DuckDBEngine() as engine:
        yield engine


def rows(table: icefield.Table) -> list[dict[str, Any]]:
    """The rows with their row ids and the sequence numbers of their last change."""
    columns = ("id", "kind", "value", "_row_id", "_last_updated_sequence_number")
    return table.scan(selected_fields=columns).to_arrow().sort_by("id").to_pylist()


def broken(table: icefield.Table) -> set[str]:
    found = [each for group in examine_table(table, whole=True) for each in group.findings]
    return {each.check for each in found if each.result not in (Result.OK, Result.SKIPPED)}


def test_a_table_with_vectors_and_row_ids_is_repaired_of_many_faults_at_once(tmp_path: Path, duckdb: Any) -> None:
    subject = Planted.sound(tmp_path, 3)
    subject.table.update("id = 12", {"value": 7.5})
    before = rows(subject.table)
    assert len({row["_row_id"] for row in before}) == len(before) == 19
    for plant in FAULTS.values():
        plant(subject)
    clear_caches()
    table = subject.loaded()
    assert broken(table) == FAULTS.keys()
    chosen = [each for each in Repair if each not in (Repair.UPGRADE, Repair.FORGET_MISSING_FILES)]
    made = repair_table(table, chosen, whole=True, dry_run=False)
    assert made.left == ()
    assert {rule for step in made.steps for rule in step.rules} == FAULTS.keys()
    assert not any(step.failed for step in made.steps)
    clear_caches()
    again = subject.loaded()
    assert broken(again) == set()
    assert rows(again) == before
    expected = [{name: row[name] for name in ("id", "kind", "value")} for row in before]
    assert StaticTable.from_metadata(again.metadata_location).scan().to_arrow().sort_by("id").to_pylist() == expected
    filtered = StaticTable.from_metadata(again.metadata_location).scan(row_filter="value > 7").to_arrow()
    assert sorted(filtered["id"].to_pylist()) == [row["id"] for row in expected if row["value"] > 7]
    assert duckdb_rows(duckdb, again).sort_by("id").to_pylist() == expected
    # Row ids that were assigned before are not assigned again.
    again.append(again.scan(selected_fields=("id", "kind", "value")).to_arrow().slice(0, 3))
    ids = [row["_row_id"] for row in rows(again)]
    assert len(set(ids)) == len(ids) == 22
