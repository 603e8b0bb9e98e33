"""Pages about changes: the snapshots of a table on a time line, and the difference between two of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from icefield import Table
from icefield.metadata import Snapshot
from icefield_report.plots import Plot, plots_of
from icefield_rest_server import Answer, PageRequest

from icefield_explorer.table_pages import changes, totals, whole
from icefield_explorer.visits import MOST_NAME, TableVisit

_EACH: Final = 50
"""Snapshots in a page."""

_CHOICES: Final = 200
_FILES: Final = 100
"""Files in a list of a difference."""

_MOST_BETWEEN: Final = 10_000
_AUTHORS: Final = ("engine-name", "engine-version", "user", "app-name", "app-id", "spark.app.id")
_COLUMNS: Final = ("content", "file_path", "record_count", "file_size_in_bytes")


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """A snapshot of the time line, with the numbers of its summary."""

    snapshot: Snapshot
    operation: str
    author: str
    refs: tuple[str, ...]
    is_current_history: bool
    changed: dict[str, int | None]


@dataclass(frozen=True, slots=True)
class FileDifference:
    """The files of one snapshot that another lacks: how many, their rows and bytes, and the largest."""

    count: int
    rows: int
    size: int
    largest: list[dict[str, Any]]


def snapshots(request: PageRequest) -> Answer:
    """The page with all snapshots, the newest first."""
    visit = TableVisit.of(request, "snapshots")
    table, first = visit.table, visit.number("first")
    every = sorted(table.snapshots(), key=lambda each: (-each.timestamp_ms, -each.snapshot_id))
    names: dict[int, list[str]] = {}
    for name in visit.refs():
        names.setdefault(table.refs()[name].snapshot_id, []).append(name)
    current = table.metadata.current_snapshot_id
    history = {each.snapshot_id for each in table.metadata.ancestors(current)}
    shown = [_entry(each, tuple(names.get(each.snapshot_id, ())), history) for each in every[first : first + _EACH]]
    plots: list[Plot] = []
    if visit.sees_files and every:
        facts = visit.facts()
        plots = (facts and visit.result("timeline", lambda: plots_of(facts, "snapshots", {"snapshots"}))) or []
    return visit.page(
        "snapshots.html",
        entries=shown,
        first=first,
        each=_EACH,
        count=len(every),
        choices=every[:_CHOICES],
        plots=plots,
    )


def diff(request: PageRequest) -> Answer:
    """The page with the difference between two snapshots: numbers, columns and files."""
    visit = TableVisit.of(request, "snapshots")
    table, given = visit.table, (visit.asked("from", MOST_NAME), visit.asked("to", MOST_NAME))
    after = visit.snapshot(given[1])
    if given[0] or after is None:
        before = visit.snapshot(given[0])
    else:
        before = None if after.parent_snapshot_id is None else table.snapshot_by_id(after.parent_snapshot_id)
    files = None
    if visit.sees_files and after is not None:
        ids = (before.snapshot_id if before else None, after.snapshot_id)
        files = visit.result("diff", lambda: _files(table, *ids), *ids)
    said = []
    if before is not None and after is not None:
        said = changes(table.metadata.schema_of(before), table.metadata.schema_of(after))
    return visit.page(
        "diff.html",
        before=before,
        after=after,
        totals=(totals(before), totals(after)),
        between=_between(table, before, after),
        changes=said,
        files=files,
        sees_files=visit.sees_files,
        summary=sorted(after.summary.items()) if after else [],
    )


def author(snapshot: Snapshot) -> str:
    """The engine, user and application that a summary names."""
    return " · ".join(dict.fromkeys(snapshot.summary[key] for key in _AUTHORS if snapshot.summary.get(key)))


def _entry(snapshot: Snapshot, names: tuple[str, ...], history: set[int]) -> TimelineEntry:
    summary = snapshot.summary
    kinds = ("records", "data-files", "delete-files")
    changed = {
        f"{what} {kind}": whole(summary.get(f"{key}-{kind}"))
        for kind in kinds
        for key, what in (("added", "added"), ("deleted" if kind != "delete-files" else "removed", "removed"))
    }
    operation = summary.get("operation", "unknown")
    return TimelineEntry(snapshot, operation, author(snapshot), names, snapshot.snapshot_id in history, changed)


def _between(table: Table, before: Snapshot | None, after: Snapshot | None) -> int | None:
    """The number of snapshots that lead from one to the other; None if they are on different lines."""
    if after is None:
        return 0
    line = [each.snapshot_id for each in islice(table.metadata.ancestors(after.snapshot_id), _MOST_BETWEEN)]
    if before is None:
        return len(line)
    return line.index(before.snapshot_id) if before.snapshot_id in line else None


def _files(table: Table, before: int | None, after: int) -> tuple[FileDifference, FileDifference]:
    """The files that are only in the second snapshot, and those only in the first."""
    new = table.inspect.scan("files", snapshot_id=after, selected_fields=_COLUMNS).to_arrow()
    old = new.slice(0, 0)
    if before is not None:
        old = table.inspect.scan("files", snapshot_id=before, selected_fields=_COLUMNS).to_arrow()
    return _only(new, old), _only(old, new)


def _only(files: pa.Table, others: pa.Table) -> FileDifference:
    found = files.filter(pc.invert(pc.is_in(files["file_path"], value_set=others["file_path"].combine_chunks())))
    data = found.filter(pc.equal(found["content"], 0))
    largest = found.sort_by([("file_size_in_bytes", "descending")]).slice(0, _FILES).to_pylist()
    rows, size = pc.sum(data["record_count"]).as_py() or 0, pc.sum(found["file_size_in_bytes"]).as_py() or 0
    return FileDifference(found.num_rows, rows, size, largest)
