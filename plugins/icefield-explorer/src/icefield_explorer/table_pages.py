"""Pages about a table as a whole: its overview, and its schema with statistics and history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from icefield import Schema, Table
from icefield.metadata import Snapshot, StatisticsFile
from icefield.types import NestedField
from icefield_report.facts import spec_words
from icefield_report.formats import short
from icefield_report.plots import Plot, plots_of
from icefield_rest_server import Answer, PageRequest

from icefield_explorer.rendering import text_of
from icefield_explorer.visits import TableVisit

MOST_COLUMNS: Final = 1000
"""Columns in a page."""

_MOST_SCHEMAS: Final = 100
_SKETCH: Final = "apache-datasketches-theta-v1"
_TOTALS: Final = ("total-records", "total-files-size", "total-data-files", "total-delete-files")


@dataclass(frozen=True, slots=True)
class ColumnSums:
    """The statistics of a column over all data files: None if no file states them."""

    values: int | None = None
    nulls: int | None = None
    size: int | None = None
    lower: str = ""
    upper: str = ""


@dataclass(frozen=True, slots=True)
class DistinctCounts:
    """The estimated numbers of distinct values of columns in a snapshot, by field id."""

    snapshot: Snapshot
    numbers: dict[int, int]


def totals(snapshot: Snapshot | None) -> dict[str, int | None]:
    """The totals in the summary of a snapshot; None for a total that it does not state."""
    summary = {} if snapshot is None else snapshot.summary
    return {key: whole(summary.get(key)) if snapshot else 0 for key in _TOTALS}


def whole(given: str | None) -> int | None:
    """A number of a summary, which any program may have written."""
    return int(given) if given and given.isascii() and given.isdecimal() and len(given) < 19 else None


def overview(request: PageRequest) -> Answer:
    """The page with the main numbers, the columns, branches and tags, and properties."""
    visit = TableVisit.of(request, "table")
    table, current = visit.table, visit.table.current_snapshot()
    return visit.page(
        "overview.html",
        current=current,
        totals=totals(current),
        fields=table.schema().fields[:MOST_COLUMNS],
        count=len(table.schema().fields),
        spec=spec_words(table),
        order=str(table.sort_order()) if table.sort_order().fields else "",
        properties=sorted(table.properties.items()),
    )


def schema(request: PageRequest) -> Answer:
    """The page with the columns and their statistics, and with the changes of the schema."""
    visit = TableVisit.of(request, "schema")
    table, shown = visit.table, visit.table.schema()
    sums: dict[str, ColumnSums] = {}
    plots: list[Plot] = []
    if visit.sees_files and table.current_snapshot() is not None:
        sums, facts = visit.result("columns", lambda: column_sums(table)) or {}, visit.facts()
        plots = (facts and visit.result("columns-plot", lambda: plots_of(facts, "schema", {"columns"}))) or []
    known = sorted(table.schemas().values(), key=lambda each: each.schema_id)
    newest = [*pairwise(known)][-_MOST_SCHEMAS:]  # before schemas are compared: there may be thousands
    counted = counted_distinct(table) if visit.sees_files else None
    return visit.page(
        "schema.html",
        counted=counted,
        columns=[_column(shown, field) for field in list(shown.id_to_field.values())[:MOST_COLUMNS]],
        count=len(shown.id_to_field),
        sums=sums,
        sees_files=visit.sees_files,
        plots=plots,
        history=[(after, changes(before, after)) for before, after in reversed(newest)],
        first=known[0],
        since=_first_uses(table),
        keys=set(shown.identifier_field_ids),
    )


def counted_distinct(table: Table) -> DistinctCounts | None:
    """The numbers that the newest statistics of the current snapshot or an earlier one state, without reading a file.

    Spec: Puffin, "apache-datasketches-theta-v1"; the property ``ndv`` of a blob.
    """
    files: dict[int, StatisticsFile] = {each.snapshot_id: each for each in table.metadata.statistics}
    for snapshot in table.metadata.ancestors(table.metadata.current_snapshot_id) if files else ():
        file = files.get(snapshot.snapshot_id)
        blobs = [each for each in file.blob_metadata if each.type == _SKETCH] if file else []
        found = {each.fields[0]: whole(each.properties.get("ndv")) for each in blobs if len(each.fields) == 1}
        if numbers := {key: number for key, number in found.items() if number is not None}:
            return DistinctCounts(snapshot, numbers)
    return None


def column_sums(table: Table) -> dict[str, ColumnSums]:
    """The statistics of each column by its dotted name, summed up over the data files of the current snapshot."""
    found: dict[str, list[dict[str, Any]]] = {}
    with table.inspect.scan("data_files", selected_fields=("readable_metrics",)).to_arrow_batch_reader() as batches:
        for batch in batches:
            metrics = batch.column(0)
            for field, column in zip(metrics.type, metrics.flatten(), strict=True):
                found.setdefault(field.name, []).append(_sums_of(column))
    return {name: _joined(parts) for name, parts in found.items()}


def changes(before: Schema, after: Schema) -> list[str]:
    """The differences between two schemas, in words, by field ids."""
    old, new = before.id_to_field, after.id_to_field
    said = [f"dropped {before.find_column_name(each)}" for each in old if each not in new]
    for field_id, field in new.items():
        name = after.find_column_name(field_id) or field.name
        earlier = old.get(field_id)
        if earlier is None:
            said.append(f"added {name}: {field.field_type}")
        else:
            said.extend(_changed(before.find_column_name(field_id) or "", name, earlier, field))
    if [each for each in old if each in new] != [each for each in new if each in old]:
        said.append("moved columns")
    if set(before.identifier_field_ids) != set(after.identifier_field_ids):
        said.append("changed the identifier fields")
    return said or ["no change of columns"]


def _changed(old_name: str, name: str, old: NestedField, new: NestedField) -> Iterator[str]:
    if old.name != new.name:
        yield f"renamed {old_name} to {name}"
    if old.field_type.is_primitive and old.field_type != new.field_type:
        yield f"widened {name} from {old.field_type} to {new.field_type}"
    if old.required != new.required:
        yield f"made {name} {'required' if new.required else 'optional'}"
    if old.doc != new.doc:
        yield f"described {name}"
    if old.write_default != new.write_default:
        yield f"changed the default of {name}"


def _sums_of(metrics: pa.StructArray) -> dict[str, Any]:
    parts = dict(zip((field.name for field in metrics.type), metrics.flatten(), strict=True))
    sums = {key: pc.sum(parts[key]).as_py() for key in ("value_count", "null_value_count", "column_size")}
    for key, least in (("lower_bound", True), ("upper_bound", False)):
        bounds = parts[key].drop_null()
        try:
            sums[key] = pa.repeat((pc.min if least else pc.max)(bounds), 1) if len(bounds) else None
        except pa.ArrowNotImplementedError:
            sums[key] = None
    return sums


def _joined(parts: list[dict[str, Any]]) -> ColumnSums:
    def known(key: str) -> list[Any]:
        return [part[key] for part in parts if part[key] is not None]

    values, nulls, size = (
        sum(known(key)) if known(key) else None for key in ("value_count", "null_value_count", "column_size")
    )
    lower, upper = (pa.chunked_array(each) if each else None for each in map(known, ("lower_bound", "upper_bound")))
    least, greatest = "" if lower is None else _bound(pc.min(lower)), "" if upper is None else _bound(pc.max(upper))
    return ColumnSums(values, nulls, size, least, greatest)


def _bound(value: pa.Scalar) -> str:
    kind = value.type
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return _shown(value.as_py()) if is_bytes else short(text_of(value), 60)


def _shown(value: Any) -> str:
    return short(value.hex() if isinstance(value, bytes) else str(value), 60)


def _column(schema: Schema, field: NestedField) -> dict[str, Any]:
    path = schema.name_path(field.field_id)
    kind = field.field_type
    return {
        "field": field,
        "name": schema.find_column_name(field.field_id) or field.name,
        "depth": min(len(path) - 1, 6),
        "type": str(kind) if kind.is_primitive else str(kind).partition("<")[0],
        "default": None if field.write_default is None else _shown(field.write_default),
    }


def _first_uses(table: Table) -> dict[int, int]:
    """When a snapshot first had each schema, by schema id."""
    found: dict[int, int] = {}
    for snapshot in table.snapshots():
        if snapshot.schema_id is not None:
            found[snapshot.schema_id] = min(snapshot.timestamp_ms, found.get(snapshot.schema_id, snapshot.timestamp_ms))
    return found
