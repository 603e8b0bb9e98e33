"""Pages about objects of the kernel, made of values in memory: no request, no file that is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final

import pyarrow.compute as pc
from icefield import Catalog, Schema, Table, View
from icefield.metadata import Snapshot, TableMetadata
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.scan import PlannedManifest
from icefield.toolkit import HIDDEN, holds_credential, without_credentials
from icefield.types import NestedField

from icefield_notebook.parts import MOST_ROWS, Figure, Note, facts, folded, grid, page, source, text
from icefield_notebook.records import record_page
from icefield_notebook.texts import beginning, count, number_in, size, time

_COLUMNS: Final = ("id", "column", "type", "nullable", "comment")


def drawn(shown: object) -> str | None:
    """An object as HTML; None for an object that has no page."""
    for kind, draw in _PAGES.items():
        if isinstance(shown, kind):
            return draw(shown)
    return record_page(shown)


def _catalog(catalog: Catalog) -> str:
    properties = catalog.properties
    warehouse = properties.get("warehouse")
    known = {
        "type": properties.get("type", type(catalog.backend).__name__),
        "warehouse": None if warehouse is None else without_credentials(warehouse, properties),
    }
    return page(catalog.name, facts(known.items()), about=["catalog"])


def _table(table: Table) -> str:
    metadata = table.metadata
    snapshot = metadata.snapshots.loaded(metadata.current_snapshot_id)
    sizes = [] if snapshot is None else list(_sizes(snapshot))
    parts = [_columns(table.schema()), facts(chain(_layout(metadata), _head(metadata, snapshot)))]
    if properties := metadata.properties:
        parts.append(folded(f"Properties ({count(len(properties))})", _strings("property", properties)))
    if len(refs := metadata.refs) > 1:
        rows = ((name, ref.type.value, ref.snapshot_id) for name, ref in refs.items())
        named = grid(("name", "kind", "snapshot"), rows, len(refs))
        parts.append(folded(f"Branches and tags ({count(len(refs))})", named))
    about = ["table", *sizes, f"format version {metadata.format_version}"]
    return page(".".join(table.name()), *parts, about=about)


def _layout(metadata: TableMetadata) -> Iterator[tuple[str, object]]:
    schema, spec, order = metadata.schema(), metadata.spec(), metadata.sort_order()
    if spec.fields:
        yield "partitioned by", ", ".join(_partition(field, schema) for field in spec.fields[:MOST_ROWS])
    if order.fields:
        yield "sorted by", ", ".join(map(str, order.fields[:MOST_ROWS]))


def _head(metadata: TableMetadata, snapshot: Snapshot | None) -> Iterator[tuple[str, object]]:
    if snapshot is not None:
        yield "snapshot", f"{snapshot.snapshot_id}, {snapshot.operation.value}, {time(snapshot.timestamp_ms)}"
    else:
        yield "snapshot", "none" if metadata.current_snapshot_id is None else metadata.current_snapshot_id
    yield "location", metadata.location


def _sizes(snapshot: Snapshot) -> Iterator[str]:
    """The size of a version, by the totals in the summary of its snapshot."""
    summary = snapshot.summary
    if (rows := number_in(summary, "total-records")) is not None:
        yield count(rows, "row")
    for name, noun in (("total-data-files", "data file"), ("total-delete-files", "delete file")):
        if number := number_in(summary, name):
            yield count(number, noun)
    if (known := number_in(summary, "total-files-size")) is not None:
        yield size(known)


def _strings(heading: str, strings: Mapping[str, str]) -> str:
    """A table of properties or of a summary, without the credentials in them."""

    def shown(name: str, value: str) -> str:
        part = beginning(value)
        return HIDDEN if holds_credential(name) else without_credentials(part, {name: part})

    rows = ((name, shown(name, strings[name])) for name in sorted(strings))
    return grid((heading, "value"), rows, len(strings))


def _columns(schema: Schema) -> str:
    def row(field: NestedField) -> tuple[object, ...]:
        is_key = field.field_id in schema.identifier_field_ids
        nullable = "no, key" if is_key else "no" if field.required else "yes"
        return Figure(field.field_id), field.name, field.field_type, nullable, Note(field.doc or "")

    return grid(_COLUMNS, map(row, schema.fields), len(schema.fields))


def _schema(schema: Schema) -> str:
    return page("Schema", _columns(schema), about=[f"id {schema.schema_id}", count(len(schema.fields), "column")])


def _partition(field: PartitionField, schema: Schema) -> str:
    """A partition field as users write it, by the names of its source columns: ``bucket[4](id)``."""
    names = ", ".join(schema.find_column_name(each) or f"column {each}" for each in field.source_ids)
    transform = str(field.transform)
    return names if transform == "identity" else f"{transform}({names})"


def _spec(spec: PartitionSpec) -> str:
    rows = ((Figure(each.field_id), each.name, each.transform, each.source_id) for each in spec.fields)
    table = grid(("id", "field", "transform", "source id"), rows, len(spec.fields)) if spec.fields else ""
    return page("Partition spec", table, about=[f"id {spec.spec_id}", *([] if spec.fields else ["unpartitioned"])])


def _snapshot(snapshot: Snapshot) -> str:
    known = {
        "time": time(snapshot.timestamp_ms),
        "parent": snapshot.parent_snapshot_id,
        "sequence number": snapshot.sequence_number,
        "schema": snapshot.schema_id,
    }
    summary = folded(f"Summary ({count(len(snapshot.summary))})", _strings("summary", snapshot.summary))
    about = [f"{snapshot.operation.value} snapshot", *_sizes(snapshot)]
    return page(snapshot.snapshot_id, facts(known.items()), summary, about=about)


def _view(view: View) -> str:
    queries = [f"<p>{text(dialect)}</p>{source(sql)}" for dialect, sql in islice(view.sql.items(), MOST_ROWS)]
    return page(".".join(view.name), *queries, _columns(view.schema()), about=["view"])


def _plan(plan: PlannedManifest) -> str:
    files = plan.files.select(["file_path", "record_count", "file_size_in_bytes"])
    total = pc.sum(files.column("record_count")).as_py() or 0, pc.sum(files.column("file_size_in_bytes")).as_py() or 0
    rows = (
        (Figure(f"{each['record_count']:,}"), Figure(size(each["file_size_in_bytes"])), each["file_path"])
        for each in files.slice(0, MOST_ROWS).to_pylist()
    )
    about = [f"manifest {plan.place}", count(len(plan), "file"), count(total[0], "row"), size(total[1])]
    return page("Plan", grid(("rows", "size", "file"), rows, len(plan)), about=about)


_PAGES: Final[Mapping[type, Callable[[Any], str]]] = {
    Catalog: _catalog,
    Table: _table,
    View: _view,
    Schema: _schema,
    PartitionSpec: _spec,
    Snapshot: _snapshot,
    PlannedManifest: _plan,
}
