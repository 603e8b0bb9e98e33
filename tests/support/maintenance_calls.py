"""Each action of maintenance by name, a table with work for each of them, and the invariants of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
from census import METADATA, path_of, present, referenced
from icefield import Table, load_catalog
from icefield.metadata import PartitionStatisticsFile, StatisticsFile
from many_writers import RETRIES

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string())])
SETTINGS = {
    **{f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")},
    **RETRIES,
    "commit.manifest-merge.enabled": "false",
    "file.sync": "false",
}
TAG = "kept"
EVER = 2**60
"""A time after all others, in ms."""

Rows = list[tuple[int, str]]


@dataclass(frozen=True)
class MaintenanceCall:
    """An action of maintenance; ``is_done`` returns whether ``run`` has left no work in a table."""

    name: str
    run: Callable[[Table], Any]
    is_done: Callable[[Table], bool]
    rolls_back: bool = False
    """Whether the table has the rows of the tag in the end."""


def _commits_nothing(run: Callable[[Table], Any]) -> Callable[[Table], bool]:
    return lambda table: run(table).snapshot_id is None


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


def compact_in_parts(table: Table) -> Any:
    return table.maintenance.rewrite_data_files(
        "sort", ["id desc"], min_input_files=2, delete_file_threshold=1, partial_progress=True, max_commits=2
    )


def expire(table: Table) -> Any:
    return table.maintenance.expire_snapshots(EVER)


def remove_orphans(table: Table) -> Any:
    return table.maintenance.remove_orphan_files(EVER, dry_run=False, allow_recent=True)


def table_stats(table: Table) -> Any:
    return table.maintenance.compute_table_stats()


def partition_stats(table: Table) -> Any:
    return table.maintenance.compute_partition_stats()


def roll_back(table: Table) -> None:
    to = table.refs()[TAG].snapshot_id
    if table.current_snapshot().snapshot_id != to:  # type: ignore[union-attr]
        table.manage_snapshots().rollback_to_snapshot(to).commit()


REWRITES = (
    *(
        MaintenanceCall(run.__name__, run, _commits_nothing(run))
        for run in (rewrite_manifests, rewrite_deletes, convert, remove_dangling, compact)
    ),
    MaintenanceCall("compact_in_parts", compact_in_parts, lambda table: not compact_in_parts(table).added_data_files),
)
OTHERS = (
    MaintenanceCall("expire", expire, lambda table: not (again := expire(table)).snapshot_ids and not again.files),
    MaintenanceCall("remove_orphans", remove_orphans, lambda table: not remove_orphans(table).files),
    MaintenanceCall("table_stats", table_stats, lambda table: _of_head(table, table.metadata.statistics)),
    MaintenanceCall(
        "partition_stats", partition_stats, lambda table: _of_head(table, table.metadata.partition_statistics)
    ),
    MaintenanceCall("roll_back", roll_back, lambda table: found(table) == found(table, TAG), rolls_back=True),
)
ALL = (*REWRITES, *OTHERS)


def _of_head(table: Table, statistics: Iterable[StatisticsFile] | Iterable[PartitionStatisticsFile]) -> bool:
    """Whether the current snapshot has statistics whose file exists."""
    head = table.current_snapshot()
    return head is not None and any(
        each.snapshot_id == head.snapshot_id and table.io.exists(each.statistics_path) for each in statistics
    )


def found(table: Table, ref: str | None = None) -> Rows:
    """The rows of the table, or of a branch or tag."""
    shown = (table.scan() if ref is None else table.scan(ref=ref)).to_arrow()
    return sorted(zip(shown["id"].to_pylist(), shown["kind"].to_pylist(), strict=True))


def rows(numbers: Any, kind: str) -> pa.Table:
    return pa.table({"id": [*numbers], "kind": [kind] * len(numbers)}, schema=SCHEMA)


def made(given: Mapping[str, str], version: str) -> Table:
    """A table with work for each action of maintenance, with orphans and a tag of an older snapshot."""
    catalog = load_catalog("test", **given)
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", SCHEMA, partition_spec=["kind"], properties={**SETTINGS, "format-version": version}
    )
    for kind in "ab":
        table.append(rows(range(1000), kind))
    table.manage_snapshots().create_tag(table.snapshots()[-1].snapshot_id, TAG).commit()
    table.append(rows([5000], "a"))
    table.delete("id = 5000")  # a file that no snapshot needs that is kept
    for number in range(3):
        table.delete(f"id = {900 + number}")
    table.delete("id = 903 and kind = 'a'")
    table.delete_by_equality(rows([910, 911], "a"), ["id", "kind"])
    table.delete_by_equality(rows([1], "gone"), ["id", "kind"])
    for folder in ("data", "metadata"):
        with table.io.open_output(f"{table.location()}/{folder}/{uuid4()}.left") as left:
            left.write(b"of nobody")
    return table


def all_named(table: Table) -> set[str]:
    """All files that a version refers to, without metadata files: also its statistics."""
    metadata = table.metadata
    statistics = {each.statistics_path for each in (*metadata.statistics, *metadata.partition_statistics)}
    return referenced(table) | {path_of(each) for each in statistics}


def all_there(table: Table) -> set[str]:
    """Every file of the table's folder without metadata files and hint, on any store."""
    if table.location().startswith("file:"):
        return present(table)
    names = {info.location for info in table.io.list_files(table.location())}
    return {each for each in names if not METADATA.fullmatch(each.rpartition("/")[2]) and "version-hint" not in each}


def check_whole(table: Table, head: Rows, tagged: Rows) -> None:
    """Check that the rows are there, and every file to which a remaining snapshot refers."""
    assert found(table) == head
    assert found(table, TAG) == tagged
    missing = all_named(table) - all_there(table)
    assert not missing, f"live files are gone: {sorted(missing)}"
