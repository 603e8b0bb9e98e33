"""The page about the plan of a filter: the files that a scan would read, and why it would read no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import IcefieldError, Table
from icefield.expressions import AlwaysFalse, AlwaysTrue, bind, evaluate, inclusive_projection
from icefield.scan import TableScan
from icefield_report.formats import short
from icefield_rest_server import Answer, PageRequest

from icefield_explorer.visits import MOST_NAME, TableVisit

_MOST: Final = 100
"""Files in each list."""

_FILE: Final = ("file_path", "record_count", "file_size_in_bytes")


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """Files with one fate in a plan: how many, their rows and bytes, and the first of them."""

    count: int
    rows: int
    size: int
    shown: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ExplainedPlan:
    """A plan: the files that are read, those left out by their partition, and those left out by statistics."""

    read: PlannedGroup
    by_partition: PlannedGroup
    by_statistics: PlannedGroup


def plan(request: PageRequest) -> Answer:
    """The page with the plan of a filter."""
    visit = TableVisit.of(request, "plan", files=True)
    table, given, at = visit.table, visit.asked("filter"), visit.asked("at", MOST_NAME)
    snapshot = visit.snapshot(at)
    found, error = None, ""
    if snapshot is not None:
        try:
            number = None if not at or at in table.refs() else snapshot.snapshot_id
            scan = table.scan(given or AlwaysTrue(), snapshot_id=number, ref=at if at in table.refs() else None)
            bind(scan.schema, scan.expression)
            found = visit.result("plan", lambda: explained(table, scan), given, at)
        except (IcefieldError, RecursionError) as failed:
            error = str(failed) if isinstance(failed, IcefieldError) else "the filter is nested too deeply"
    return visit.page(
        "plan.html",
        given=given,
        at=at,
        plan=found,
        error=error,
        most=_MOST,
        snapshot=snapshot,
        columns=[field.name for field in table.schema().fields][:30],
    )


def explained(table: Table, scan: TableScan) -> ExplainedPlan:
    """The plan of a scan, with the reason for each file that it leaves out."""
    read: list[pa.RecordBatch] = []
    details: dict[str, tuple[str, int]] = {}
    for part in scan.plan_manifests():
        read.append(part.files.select(_FILE))
        for row in range(min(len(part), _MOST - len(details))):
            deletes = int(part.delete_offsets[row + 1] - part.delete_offsets[row])
            residual = part.residuals[int(part.residual_groups[row])]
            words = "all rows match" if isinstance(residual, AlwaysTrue) else short(str(residual), 500)
            details[part.files["file_path"][row].as_py()] = (words, deletes)
    kept = _table(read)
    bound = bind(scan.schema, scan.expression)
    every = TableScan(scan.metadata, scan.io, snapshot_id=scan.snapshot_id, ref=scan.ref, identifier=scan.identifier)
    partition: list[pa.RecordBatch] = []
    statistics: list[pa.RecordBatch] = []
    paths = kept["file_path"].combine_chunks()
    for part in every.plan_manifests():
        files = part.files.select(_FILE)
        projected = inclusive_projection(table.specs()[part.spec_id], scan.schema, bound)
        matches = np.ones(len(part), bool)
        if not isinstance(projected, AlwaysTrue) and not isinstance(bound, AlwaysFalse):
            matches = np.asarray(evaluate(projected, part.files["partition"])).astype(bool)
        left_out = ~np.asarray(pc.is_in(files["file_path"], value_set=paths)).astype(bool)
        partition.append(files.filter(pa.array(left_out & ~matches)))
        statistics.append(files.filter(pa.array(left_out & matches)))
    return ExplainedPlan(_group(kept, details), _group(_table(partition)), _group(_table(statistics)))


def _table(parts: list[pa.RecordBatch]) -> pa.Table:
    empty = pa.schema([("file_path", pa.string()), ("record_count", pa.int64()), ("file_size_in_bytes", pa.int64())])
    return pa.Table.from_batches(parts) if parts else empty.empty_table()


def _group(files: pa.Table, details: dict[str, tuple[str, int]] | None = None) -> PlannedGroup:
    shown = files.slice(0, _MOST).to_pylist()
    for each in shown:
        each["residual"], each["deletes"] = (details or {}).get(each["file_path"], ("", 0))
    rows, size = (pc.sum(files[name]).as_py() or 0 for name in ("record_count", "file_size_in_bytes"))
    return PlannedGroup(files.num_rows, rows, size, shown)
