"""The page about files: a heat map of the partitions, the plots of sizes, and a list of the files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import Table
from icefield_report.facts import Facts
from icefield_report.formats import count, short, size
from icefield_report.partitions import Ints
from icefield_report.plots import plots_of
from icefield_rest_server import Answer, PageRequest

from icefield_explorer.visits import MOST_NAME, TableVisit

_CELLS: Final = 400
_LEVELS: Final = 9
_MOST_LABEL: Final = 200
_EACH: Final = 100
_MOST_LISTED: Final = 10_000
_COLUMNS: Final = ("content", "file_path", "file_format", "record_count", "file_size_in_bytes", "spec_id")
_KINDS: Final = ("data", "position deletes", "equality deletes")
_MEASURES: Final = {"size": "size", "files": "files", "rows": "rows", "deletes": "deletes"}


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A partition of the heat map; ``level`` is from 0, nothing, to 9, the most."""

    label: str
    level: int
    size: str
    files: int
    rows: int
    deletes: int
    value: str


def files(request: PageRequest) -> Answer:
    """The page with the partitions and the files of a snapshot, by default the current one."""
    visit = TableVisit.of(request, "files", files=True)
    table = visit.table
    measure = _MEASURES.get(visit.asked("by"), "size")
    first = visit.number("first", 10_000_000)
    snapshot = visit.snapshot(at := visit.asked("at", MOST_NAME))
    shown = snapshot.snapshot_id if at and snapshot is not None else None
    facts = visit.facts(shown) if snapshot is not None else None
    found = plots = None
    if facts is not None:
        names = {"file-sizes", "skew"}
        plots = visit.result("file-plots", lambda: plots_of(facts, "files", names), shown)
        found = visit.result("files", lambda: _largest_first(table, shown), shown)
    listed: list[dict[str, Any]] = [] if found is None else found.slice(first, _EACH).to_pylist()
    total = 0 if found is None else found.num_rows
    every = len(facts.sizes) + len(facts.delete_sizes) if facts else 0
    return visit.page(
        "files.html",
        at=at,
        snapshot=snapshot,
        facts=facts,
        cells=heat_map(facts, measure) if facts and facts.partitions.is_partitioned else [],
        measures=list(_MEASURES),
        measure=measure,
        plots=plots or [],
        files=[{**each, "kind": _KINDS[each["content"]]} for each in listed],
        first=first,
        each=_EACH,
        count=total,
        every=every,
    )


def heat_map(facts: Facts, measure: str) -> list[HeatCell]:
    """The partitions with the largest values of a measure, in the order of the table."""
    partitions = facts.partitions
    measures: dict[str, Ints] = {
        "size": partitions.bytes,
        "files": partitions.files,
        "rows": partitions.rows,
        "deletes": partitions.deletes,
    }
    values = measures[measure]
    places = np.sort(np.argsort(-values, kind="stable")[:_CELLS])
    most = float(np.log1p(values.max())) if len(values) else 0.0
    cells = []
    for place in places.tolist():
        value = int(values[place])
        cells.append(
            HeatCell(
                short(partitions.label(place), _MOST_LABEL),
                0 if not value else max(1, round(_LEVELS * float(np.log1p(value)) / most)),
                size(int(partitions.bytes[place])),
                int(partitions.files[place]),
                int(partitions.rows[place]),
                int(partitions.deletes[place]),
                size(value) if measure == "size" else count(value),
            )
        )
    cells.sort(key=lambda each: each.label)
    return cells


def _largest_first(table: Table, snapshot_id: int | None) -> pa.Table:
    """The largest files of a snapshot; a copy, so that the others are not kept."""
    found = table.inspect.scan("files", snapshot_id=snapshot_id, selected_fields=_COLUMNS).to_arrow()
    return found.take(pc.select_k_unstable(found, _MOST_LISTED, [("file_size_in_bytes", "descending")]))
