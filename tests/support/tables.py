"""Catalogs and tables for tests of commits, and strategies that let others commit first or lose replies."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
from icefield.abc import CommitStrategy, Committed, Conflict, Event, Pointer, Proposal
from icefield.builtin.memory import MemoryFileSystem
from icefield.catalog import Catalog, Table
from icefield.commit.state import TableHandle, TableState
from icefield.manifest import ManifestEntries, ManifestFile, read_manifest, read_manifest_list
from icefield.manifest.columns import ALL_COLUMNS
from icefield.metadata import TableMetadata
from icefield.plugins import Plugins, hookimpl
from icefield.transaction import Transaction

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("value", pa.float64())])

EAGER = {
    "commit.retry.min-wait-ms": "0",
    "commit.retry.max-wait-ms": "0",
    "commit.status-check.min-wait-ms": "0",
}
"""Table properties for tests that meet conflicts and need not wait."""


class Listener:
    """A plugin that hears every event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    @hookimpl
    def icefield_events(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type) -> list[Any]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


def memory_catalog(*plugins: Any, **properties: Any) -> Catalog:
    """A directory catalog in memory that no other test sees, with the namespace ``db``."""
    catalog = icefield.load_catalog(
        "test",
        plugins=Plugins.installed(extra=plugins),
        **{"type": "directory", "warehouse": f"memory://{uuid.uuid4().hex}", **properties},
    )
    catalog.create_namespace("db")
    return catalog


def new_table(
    partition_spec: Any = None,
    *,
    catalog: Catalog | None = None,
    schema: pa.Schema = SCHEMA,
    name: str = "db.t",
    **properties: Any,
) -> Table:
    """An empty table; in names of known properties, underscores stand for dots and dashes."""
    given = {**EAGER, **properties.pop("properties", {}), **properties}
    return (catalog or memory_catalog()).create_table(name, schema, partition_spec=partition_spec, properties=given)


def rows(ids: Iterable[int], kind: str | None = "a", value: float = 1.0) -> pa.Table:
    """Rows of ``SCHEMA``."""
    numbers = list(ids)
    return pa.table({"id": numbers, "kind": [kind] * len(numbers), "value": [value] * len(numbers)}, schema=SCHEMA)


def ids(table: Table, *args: Any, **kwargs: Any) -> list[int]:
    """The ids that a scan gives, sorted."""
    return sorted(table.scan(*args, **kwargs).to_arrow()["id"].to_pylist())


def handle_of(table: Table | Transaction) -> TableHandle:
    """Return the handle of a table: its name, its file IO and its commit strategy."""
    return table._handle


def state_of(table: Table | Transaction) -> TableState:
    """The version that the holder of a table has."""
    return table._state


def strategy_of(table: Table) -> Any:
    """The commit strategy of a table, which may be a test double."""
    return table._handle.strategy


def again(table: Table) -> Table:
    """Another table object for the same table, at the same version."""
    return Table(handle_of(table), state_of(table))


def manifests(table: Table, snapshot: Any = None) -> list[ManifestFile]:
    """The manifests of a snapshot, the current one by default."""
    snapshot = snapshot or table.current_snapshot()
    return list(read_manifest_list(table.io, snapshot, table.metadata).manifests)


def entries(table: Table, manifest: ManifestFile) -> ManifestEntries:
    """Every column of a manifest."""
    spec = table.metadata.spec_by_id(manifest.partition_spec_id)
    kind = spec.partition_type(table.schema(), table.metadata.schemas)
    return read_manifest(table.io, manifest, kind, columns=ALL_COLUMNS)


def stored_files(table: Table) -> set[str]:
    """Every file below the table's location, in memory or on the disk."""
    root = table.location() + "/"
    if root.startswith("file://"):
        return {f"file://{path}" for path in Path(root.removeprefix("file://")).rglob("*") if path.is_file()}
    return {name for name in MemoryFileSystem.files if name.startswith(root)}


def live_files(table: Table) -> set[str]:
    """Every file that the current metadata refers to, itself and the log of its predecessors included."""
    found = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    found |= {each.statistics_path for each in (*table.metadata.statistics, *table.metadata.partition_statistics)}
    for snapshot in table.snapshots():
        found.add(snapshot.manifest_list)
        for manifest in manifests(table, snapshot):
            found.add(manifest.manifest_path)
            found.update(file.file_path for file in entries(table, manifest).data_files())
    return found


def orphans(table: Table) -> set[str]:
    """Files below the table's location to which no metadata refers, without the version hint."""
    hint = f"{table.location()}/metadata/version-hint.text"
    return stored_files(table) - live_files(table.refresh()) - {hint}


class Around(CommitStrategy):
    """A strategy that does something before and after each commit of another."""

    def __init__(
        self,
        inner: CommitStrategy,
        before: Callable[[int], Any] = lambda attempt: None,
        after: Callable[[int, Any], Any] = lambda attempt, outcome: outcome,
    ) -> None:
        super().__init__(inner.table, inner.location, inner.file_system, inner.properties)
        self.inner = inner
        self.before = before
        self.after = after
        self.attempts = itertools.count(1)
        self.proposed: list[TableMetadata] = []

    def load(self) -> Pointer | None:
        return self.inner.load()

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        attempt = next(self.attempts)
        self.proposed.append(proposal.metadata)
        self.before(attempt)
        return self.after(attempt, self.inner.commit(base, proposal))

    def drop(self) -> None:
        self.inner.drop()


def around(table: Table, **hooks: Any) -> Table:
    """Return a holder of the table with watched commits; ``strategy_of`` gives its strategy."""
    handle = handle_of(table)
    assert handle.strategy is not None
    return Table(replace(handle, strategy=Around(handle.strategy, **hooks)), state_of(table))


def meddled(table: Table, *meddle: Callable[[Table], Any]) -> Table:
    """Return a holder of the table with conflicting commits: the n-th callable commits before its n-th attempt."""
    other = again(table)

    def before(attempt: int) -> None:
        if attempt <= len(meddle):
            meddle[attempt - 1](other.refresh())

    return around(table, before=before)
