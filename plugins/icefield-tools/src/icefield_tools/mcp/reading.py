"""The answers about catalogs and tables. Nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import icefield
import pyarrow.compute as pc
from icefield import Table
from icefield.abc import Event, ScanPlanned
from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysTrue
from icefield.toolkit import HIDDEN, holds_credential
from icefield_cli import rows_of
from icefield_maintenance.doctor import Finding, examine, examine_table

from icefield_tools.mcp.limits import AnswerLimits, plain
from icefield_tools.mcp.served import ServedCatalogs

Answer = dict[str, Any]


@dataclass(frozen=True)
class CatalogReader:
    """The answers to one client, within limits. ``queries`` runs queries; None where DuckDB is not installed."""

    catalogs: ServedCatalogs
    limits: AnswerLimits
    queries: Any

    def list_catalogs(self) -> Answer:
        """The names of the catalogs; the first one is the default."""
        return {"catalogs": self.catalogs.names()}

    def list_namespaces(self, parent: str, catalog: str) -> Answer:
        """The namespaces within another one, or at the top."""
        names = self.catalogs.catalog(catalog).list_namespaces(parent or ())
        return self.limits.taken({"namespace": ".".join(each)} for each in names)

    def list_tables(self, namespace: str, catalog: str) -> Answer:
        """The tables of a namespace."""
        names = self.catalogs.catalog(catalog).list_tables(namespace)
        return self.limits.taken({"table": ".".join(each)} for each in names)

    def describe_table(self, table: str, catalog: str) -> Answer:
        """The columns, partitioning, order, properties, branches, tags and the current snapshot of a table."""
        found = self.catalogs.table(table, catalog)
        metadata, schema, snapshot = found.metadata, found.schema(), found.current_snapshot()
        columns = (
            {
                "id": field.field_id,
                "name": field.name,
                "type": str(field.field_type),
                "required": field.required,
                "is_key": field.field_id in schema.identifier_field_ids,
                "comment": field.doc,
            }
            for field in schema.fields
        )
        known = {
            "table": ".".join(found.name()),
            "location": metadata.location,
            "format_version": metadata.format_version,
            "partitioned_by": [_named(found, each.source_ids, each.transform) for each in found.spec().fields],
            "sorted_by": [str(each) for each in found.sort_order().fields],
            "properties": {
                key: HIDDEN if holds_credential(key) else value for key, value in metadata.properties.items()
            },
            "branches_and_tags": {name: str(ref.snapshot_id) for name, ref in metadata.refs.items()},
            "snapshots": len(metadata.snapshots),
            "current_snapshot": None
            if snapshot is None
            else {"snapshot_id": str(snapshot.snapshot_id), "summary": dict(snapshot.summary)},
        }
        shown, is_whole = _bounded(known, self.limits.rows)
        left = max(0, self.limits.size - len(json.dumps(shown, ensure_ascii=False).encode()))
        listed = replace(self.limits, size=left).taken(columns)
        return {**shown, "columns": listed["rows"], "is_complete": is_whole and listed["is_complete"]}

    def list_snapshots(self, table: str, catalog: str) -> Answer:
        """The snapshots of a table, newest first."""
        found = self.catalogs.table(table, catalog).inspect.snapshots().sort_by([("committed_at", "descending")])
        rows = rows_of(found.to_batches())
        return self.limits.taken(
            {
                **row,
                **{key: str(row[key]) for key in ("snapshot_id", "parent_id") if row.get(key) is not None},
                "summary": dict(row["summary"] or ()),
            }
            for row in rows
        )

    def sample_rows(
        self, table: str, where: str, columns: Sequence[str], most: int, snapshot_or_ref: str, catalog: str
    ) -> Answer:
        """Some rows of a table, in no certain order."""
        found = self.catalogs.table(table, catalog)
        scan = found.scan(where or AlwaysTrue(), selected_fields=tuple(columns) or ("*",))
        if snapshot_or_ref:
            is_ref = snapshot_or_ref in found.metadata.refs
            if not is_ref and not snapshot_or_ref.isdecimal():
                raise InvalidArgument(f"table {table} has no branch or tag '{snapshot_or_ref}'")
            scan = scan.use_ref(snapshot_or_ref) if is_ref else scan.use_snapshot(int(snapshot_or_ref))
        most = max(1, min(most, self.limits.rows))
        with scan.head(most + 1).to_reader() as reader:
            return self.limits.taken(rows_of(reader, scan.projection), most)

    def explain_filter(self, table: str, where: str, catalog: str) -> Answer:
        """The manifests and files that a scan with a filter would read, and those that it would skip."""
        heard: list[Event] = []
        with icefield.progress(heard.append):
            scan = self.catalogs.table(table, catalog).scan(where)
            files = scan.plan_arrow()
        plans = [each for each in heard if isinstance(each, ScanPlanned)]
        first = files.select(["file_path", "record_count", "file_size_in_bytes"]).slice(0, 5).to_pylist()
        counts = {
            name: sum(getattr(each, name) for each in plans)
            for name in ("manifests_read", "manifests_skipped", "files_planned", "files_skipped")
        }
        return {
            "filter": plans[0].row_filter if plans else str(scan.row_filter),
            **counts,
            "rows_in_planned_files": pc.sum(files.column("record_count")).as_py() or 0,
            "bytes_in_planned_files": pc.sum(files.column("file_size_in_bytes")).as_py() or 0,
            "first_files": plain(first),
        }

    def doctor(self, table: str, catalog: str) -> Answer:
        """The findings of an examination: of a table's metadata, or of a catalog. Nothing is written."""
        if table:
            groups = examine_table(self.catalogs.table(table, catalog))
            findings: Iterator[Finding] = (each for group in groups for each in group.findings)
        else:
            name = catalog or self.catalogs.default
            _ = self.catalogs.catalog(name)  # refuses a name that is not served
            findings = examine(name, writes=False, **self.catalogs.given(name))
        return self.limits.taken(
            {
                "check": each.check,
                "result": each.result.value,
                "found": each.found,
                "advice": each.advice,
                "location": each.location,
            }
            for each in findings
        )

    def query(self, sql: str, most: int, catalog: str, gone: Future[None]) -> Answer:
        """The result of a query in DuckDB's SQL. It ends when ``gone`` is done."""
        opened = self.catalogs.catalog(catalog)
        with self.queries.querying(sql, lambda name: opened.load_table(name).scan(), gone) as reader:
            return self.limits.taken(rows_of(reader), most)


def _named(table: Table, ids: Sequence[int], transform: object) -> str:
    """A partition field by the names of its source columns: ``bucket[4](id)``."""
    names = ", ".join(table.schema().find_column_name(each) or f"column {each}" for each in ids)
    return names if str(transform) == "identity" else f"{transform}({names})"


def _bounded(known: Any, most: int) -> tuple[Any, bool]:
    """The values as JSON holds them, and whether that is all: longer mappings and lists are cut."""
    if not isinstance(known, dict | list):
        return plain(known), True
    is_whole = len(known) <= most
    if isinstance(known, list):
        return plain(known[:most]), is_whole
    parts = {plain(key): _bounded(value, most) for key, value in islice(known.items(), most)}
    return {key: part for key, (part, _) in parts.items()}, is_whole and all(whole for _, whole in parts.values())
