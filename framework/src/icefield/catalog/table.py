"""The user's interface to a table, at its last loaded version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from icefield.abc import Pointer, ScanService
from icefield.base.notebooks import html_of
from icefield.base.secrets import without_userinfo
from icefield.catalog import deferred
from icefield.catalog.readable_table import ReadableTable
from icefield.commit import TableHandle, TableState, load_table
from icefield.errors import NoSuchTable, printable
from icefield.metadata import MAIN_BRANCH, SnapshotLogEntry, TableMetadata, decode_metadata
from icefield.metadata.properties import NAME_MAPPING_DEFAULT
from icefield.metadata.refs import SnapshotRef
from icefield.metadata.snapshots import Snapshot
from icefield.metadata.timestamps import Timestamp, as_milliseconds
from icefield.partitioning import PartitionSpec, SortOrder
from icefield.plugins import Extensible
from icefield.schema import NameMapping, Schema, parse_name_mapping
from icefield.storage import FileIO, LocationProvider
from icefield.transaction.builders import ChangeBuilders

if TYPE_CHECKING:
    from icefield_frames import write_on_workers as _write_on_workers
    from icefield_import import add_files as _add_files
    from icefield_maintenance import MaintenanceTable
    from icefield_maintenance import diff as _diff
    from icefield_maintenance import rollback as _rollback
    from icefield_maintenance import undo as _undo

    from icefield.catalog.inspection.inspect_table import InspectTable
    from icefield.transaction import Action, AppendQueue, TableAccess, Transaction
    from icefield.writing import WriteContext

_NO_STRINGS: Mapping[str, str] = {}

P = ParamSpec("P")
T = TypeVar("T")


class _InOneCommit(Generic[P, T]):
    """A method of ``Table`` that makes one change of rows in a transaction of its own; made when it is first used."""

    def __init__(self, method: Callable[[], Callable[Concatenate[Transaction[Table], P], T]]) -> None:
        self._method = method

    def __get__(self, table: Table | None, owner: type[Table]) -> Callable[P, T]:
        method = self._method()

        def changed(self: Table, /, *args: P.args, **keywords: P.kwargs) -> T:
            with self.transaction() as tx:
                return method(tx, *args, **keywords)

        setattr(Table, method.__name__, update_wrapper(changed, method))
        bound: Callable[P, T] = changed.__get__(table, owner)
        return bound


class Table(ReadableTable, Extensible, ChangeBuilders):
    """A table at one version.

    It stays at its loaded version until ``refresh`` is called or it commits a change; then it moves to the new version.
    Every change is one commit; ``transaction`` combines several changes in one commit.
    """

    services = "table-services"

    def __init__(self, handle: TableHandle, state: TableState) -> None:
        self._at_state(handle, state)

    _repr_html_ = html_of

    def __repr__(self) -> str:
        facts = f"columns={len(self.columns)}, snapshot_id={self.metadata.current_snapshot_id}"
        return printable(without_userinfo(f"Table({self._handle.full_name}, {facts}, {self.metadata_location})"))

    # -- properties -----------------------------------------------------------------------------------------------

    def name(self) -> tuple[str, ...]:
        """The levels of its namespace, and its own name."""
        return self._handle.name

    @property
    def metadata(self) -> TableMetadata:
        """Everything about this version."""
        return self._state.metadata

    @property
    def metadata_location(self) -> str:
        """The metadata file of this version."""
        return self._state.pointer.location

    def at_metadata_file(self, metadata_location: str) -> Table:
        """A read-only version of this table, from another of its metadata files.

        It uses the file IO of this table. Raises ``FileMissing``, ``InvalidMetadata``.
        """
        io = self._handle.io
        metadata = decode_metadata(io.read_metadata(metadata_location), metadata_location)
        state = replace(self._state, pointer=Pointer(metadata_location), metadata=metadata, planner=None)
        return Table(TableHandle(self._handle.name, io), state)

    @property
    def io(self) -> FileIO:
        """The file IO of its files."""
        return self._handle.io

    @property
    def planner(self) -> ScanService | None:
        """The service that plans its scans; None without a service."""
        return self._state.planner

    @property
    def properties(self) -> dict[str, str]:
        """The table properties."""
        return dict(self.metadata.properties)

    @property
    def format_version(self) -> int:
        """1, 2 or 3."""
        return self.metadata.format_version

    @property
    def last_sequence_number(self) -> int:
        """The highest assigned sequence number; 0 in version 1."""
        return self.metadata.last_sequence_number

    def location(self) -> str:
        """The base location of new files."""
        return self.metadata.location

    def location_provider(self) -> LocationProvider:
        """The provider of locations for new files."""
        return LocationProvider.from_metadata(self.metadata)

    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema()

    def schemas(self) -> dict[int, Schema]:
        """Every schema by id."""
        return {schema.schema_id: schema for schema in self.metadata.schemas}

    def spec(self) -> PartitionSpec:
        """The partition spec of new files."""
        return self.metadata.spec()

    def specs(self) -> dict[int, PartitionSpec]:
        """Every partition spec by id."""
        return {spec.spec_id: spec for spec in self.metadata.partition_specs}

    def sort_order(self) -> SortOrder:
        """The order in which writers should sort rows."""
        return self.metadata.sort_order()

    def sort_orders(self) -> dict[int, SortOrder]:
        """Every sort order by id."""
        return {order.order_id: order for order in self.metadata.sort_orders}

    def name_mapping(self) -> NameMapping | None:
        """The ids of columns by name, for files without ids; None when none is stored."""
        stored = self.metadata.properties.get(NAME_MAPPING_DEFAULT.name)
        return None if stored is None else parse_name_mapping(stored)

    # -- its snapshots --------------------------------------------------------------------------------------------

    def snapshots(self) -> list[Snapshot]:
        """Every snapshot that has not expired, in the order in which they were added."""
        return list(self.metadata.snapshots)

    def current_snapshot(self) -> Snapshot | None:
        """The head of ``main``; None for a table without data."""
        return self.metadata.current_snapshot()

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of that id, or None."""
        return self.metadata.snapshot_by_id(snapshot_id)

    def snapshot_by_name(self, name: str) -> Snapshot | None:
        """The snapshot of that branch or tag, or None."""
        return self.metadata.snapshot_by_name(name)

    def snapshot_as_of_timestamp(self, timestamp_ms: Timestamp) -> Snapshot:
        """The snapshot that was current at a time (ms since 1970 UTC, a ``datetime``, or a string in ISO form).

        Raises ``NoSuchSnapshot``, and ``InvalidArgument`` for an invalid time.
        """
        return self.metadata.snapshot_as_of(as_milliseconds(timestamp_ms), self._handle.full_name)

    def refs(self) -> dict[str, SnapshotRef]:
        """Branches and tags by name."""
        return dict(self.metadata.refs)

    def history(self) -> list[SnapshotLogEntry]:
        """The snapshot log: each snapshot with the time at which it became current, oldest first."""
        return list(self.metadata.snapshot_log)

    @property
    def inspect(self) -> InspectTable:
        """The metadata tables: snapshots, files, manifests, ..."""
        return deferred.InspectTable(self.metadata, self.io, self.metadata_location)

    if TYPE_CHECKING:  # services of icefield-frames, icefield-import and icefield-maintenance
        add_files, write_on_workers = _add_files, _write_on_workers
        undo, rollback, diff = _undo, _rollback, _diff

        @property
        def maintenance(self) -> MaintenanceTable: ...

    # -- changing -------------------------------------------------------------------------------------------------

    def refresh(self) -> Table:
        """Move to the current version.

        Raises ``NoSuchTable`` when the table was dropped, ``InvalidMetadata`` when another was created under its name.
        """
        self._at_state(self._handle, self._current())
        return self

    def transaction(self) -> Transaction[Table]:
        """Several changes in one commit: ``with table.transaction() as tx: ...``."""
        return deferred.Transaction(self._handle, self._state, finish=self._at)

    @property
    def shape(self) -> TableMetadata:
        """The metadata of this version, to which changes apply."""
        return self.metadata

    def stage(self, action: Action) -> None:
        """Commit one change."""
        with self.transaction() as tx:
            tx.stage(action)

    append = _InOneCommit(lambda: deferred.RowChanges.append)
    overwrite = _InOneCommit(lambda: deferred.RowChanges.overwrite)
    delete = _InOneCommit(lambda: deferred.RowChanges.delete)
    update = _InOneCommit(lambda: deferred.RowChanges.update)
    dynamic_partition_overwrite = _InOneCommit(lambda: deferred.RowChanges.dynamic_partition_overwrite)
    upsert = _InOneCommit(lambda: deferred.RowChanges.upsert)
    delete_by_equality = _InOneCommit(lambda: deferred.RowChanges.delete_by_equality)
    apply_changes = _InOneCommit(lambda: deferred.RowChanges.apply_changes)

    def append_queue(
        self,
        max_delay: float = 0.0,
        snapshot_properties: Mapping[str, str] = _NO_STRINGS,
        branch: str | None = MAIN_BRANCH,
    ) -> AppendQueue:
        """A queue for threads that append to this table: appends that wait for a commit share the next one.

        A commit waits ``max_delay`` seconds for more appends before it begins. ``refresh`` shows the rows of the queue
        in this object. Raises ``InvalidArgument``.
        """
        newest = Table(self._handle, self._state)
        return deferred.AppendQueue(newest.transaction, newest.refresh, max_delay, snapshot_properties, branch)

    def write_context(self) -> WriteContext:
        """The context to write data files for this table in another process, such as an executor; picklable.

        Commit the written files with ``transaction().append_files(files)``.
        """
        return deferred.WriteContext.from_metadata(self.metadata, self.io)

    def set_properties(self, properties: Mapping[str, Any] | None = None, **more: Any) -> Table:
        """Set table properties."""
        return self.transaction().set_properties(properties, **more).commit_transaction()

    def remove_properties(self, *keys: str) -> Table:
        """Remove table properties."""
        return self.transaction().remove_properties(*keys).commit_transaction()

    def _current(self) -> TableState:
        with self._handle.io.listeners.operation("load-table", self._handle.name):
            state = load_table(self._handle, self._state)
            if state is None:
                raise NoSuchTable(f"no table {self._handle.full_name}", table=self._handle.name)
            return state

    def access(self) -> TableAccess:
        """The newest version, for a service of the table. This object keeps its version until a change is committed."""
        if self._handle.strategy is None:
            return deferred.TableAccess(
                self.metadata, self.io, self.transaction, self.metadata_location, name=self._handle.name
            )
        newest = Table(self._handle, self._state).refresh()

        def finish(state: TableState) -> Table:
            newest._at(state)
            return self._at(state)

        def begin() -> Transaction[Table]:
            return deferred.Transaction(newest._handle, newest._state, finish=finish)

        return deferred.TableAccess(
            newest.metadata,
            newest.io,
            begin,
            newest.metadata_location,
            newest._newest,
            newest.name(),
            self._handle.strategy,
        )

    def _newest(self) -> tuple[TableMetadata, str]:
        self.refresh()
        return self.metadata, self.metadata_location

    def _at(self, state: TableState) -> Table:
        self._at_state(self._handle, state)
        return self

    def _at_state(self, handle: TableHandle, state: TableState) -> None:
        self._handle, self._state = handle.at(state), state
