"""The strategy of a table: the service decides, by the requirements of the change."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from icefield.abc import CommitStrategy, Committed, Conflict, Current, FileSystem, Pointer, Proposal, TableName
from icefield.errors import (
    CommitStateUnknown,
    IcefieldError,
    NoSuchNamespace,
    NoSuchTable,
    TableExists,
)
from icefield.metadata import Snapshot, apply_updates
from icefield.toolkit import Backoff, SharedClients

from icefield_rest.answers import Loaded, as_committed
from icefield_rest.failures import Refused, Uncertain, error_of
from icefield_rest.service import Service
from icefield_rest.tables import Tables

_LOOKS: Final = 3
_SHARED: Final[SharedClients[Tables]] = SharedClients()
_LOOK_AGAIN: Final = Backoff(0.2, 2.0, jitter=0)


class RestStrategy(CommitStrategy):
    """Sends updates and requirements; what the service makes of them is the table."""

    reuses_locations = False

    def __init__(
        self,
        table: TableName,
        location: str,
        file_system: FileSystem,
        properties: Mapping[str, str],
        tables: Tables,
    ) -> None:
        super().__init__(table, location, file_system, properties)
        self._tables = tables

    def __reduce__(self) -> tuple[Any, ...]:
        service = self._tables.service
        given = (self.table, self.location, self.file_system, self.properties)
        return _rebuilt, (*given, service.name, service.given)

    def load(self) -> Current | None:
        found = self._tables.load(self.table)
        return None if found is None else found.current

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        what = f"committing {'.'.join(self.table)}"
        try:
            return as_committed(self._tables.commit(self.table, proposal, create=base is None))
        except Uncertain as lost:
            return self._settled(base, proposal, lost)
        except Refused as refused:
            if refused.status == 409:
                # Something on the way may have sent a creation twice: the uuid says whose table is there.
                ours = self.outcome_of(base, proposal) if base is None else None
                return ours if isinstance(ours, Committed) else Conflict()
            raise self._refusal(refused, what, creates=base is None) from refused

    def made(self) -> Committed | None:
        """The table as it is after a commit that was acknowledged."""
        found = self._tables.load(self.table)
        return None if found is None else as_committed(found)

    def outcome_of(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict | None:
        """What the table shows of a proposal whose reply was lost; None where it shows nothing."""
        found = self._tables.looked_for(self.table)
        return None if found is None else _outcome(base, proposal, found)

    def drop(self) -> None:
        self._tables.drop(self.table, purge=False)

    def credentials(self) -> str | None:
        return self._tables.service.connection.authenticator.says()

    def _refusal(self, refused: Refused, what: str, *, creates: bool) -> IcefieldError:
        if refused.status == 404 and refused.modelled:
            if creates or refused.kind == "NoSuchNamespace":
                name = ".".join(self.table[:-1])
                return NoSuchNamespace(f"no namespace {name}: {refused.said}", namespace=self.table[:-1])
            return NoSuchTable(f"no table {'.'.join(self.table)}: {refused.said}", table=self.table)
        if refused.kind == "AlreadyExists":
            return TableExists(f"{'.'.join(self.table)} exists already: {refused.said}", table=self.table)
        return error_of(refused, what)

    def _settled(self, base: Pointer | None, proposal: Proposal, lost: Uncertain) -> Committed | Conflict:
        """Find out by looking what became of a commit whose reply was lost."""
        for look in range(1, _LOOKS + 1):
            found = self._tables.looked_for(self.table)
            outcome = None if found is None else _outcome(base, proposal, found)
            if outcome is not None:
                return outcome
            if found is not None and lost.conflicts and base is not None and not _added(proposal):
                return Conflict()  # no files are at stake, and to make the change twice makes no difference
            if look < _LOOKS:
                time.sleep(_LOOK_AGAIN.wait(look))
        raise CommitStateUnknown(
            f"the reply to committing {'.'.join(self.table)} was lost ({lost}), and the catalog does not show whether "
            "it happened; no file was deleted: load the table again and look for the change",
            table=self.table,
        ) from lost


def _rebuilt(
    table: TableName,
    location: str,
    file_system: FileSystem,
    properties: Mapping[str, str],
    name: str,
    given: Mapping[str, str],
) -> RestStrategy:
    """A strategy in another process, which asks the service with a connection of its own."""
    key = (name, tuple(sorted(given.items())))
    tables = _SHARED.get(key, lambda: Tables(Service(name, given)))
    return RestStrategy(table, location, file_system, properties, tables)


def _outcome(base: Pointer | None, proposal: Proposal, found: Loaded) -> Committed | Conflict | None:
    """What a table shows of a proposal: that it is in it, that it can no longer be, or, by None, neither."""
    current, metadata = found.current, found.current.metadata
    assert metadata is not None
    if base is None:
        return as_committed(found) if metadata.table_uuid == proposal.metadata.table_uuid else Conflict()
    if added := _added(proposal):
        if all(metadata.snapshot_by_id(snapshot.snapshot_id) is not None for snapshot in added):
            return as_committed(found)
        # A branch that has moved on refuses the request for good, whenever it arrives.
        return Conflict() if _moved(proposal, found) else None
    if current.pointer.location == base.location:
        return None
    try:
        holds = apply_updates(metadata, proposal.updates) is metadata
    except IcefieldError:
        holds = False
    return as_committed(found) if holds else None


def _added(proposal: Proposal) -> list[Snapshot]:
    """The snapshots that a proposal adds."""
    return [update.snapshot for update in proposal.updates if update.action == "add-snapshot"]  # type: ignore[attr-defined]


def _moved(proposal: Proposal, found: Loaded) -> bool:
    """Whether a branch or tag that the proposal relies on is elsewhere."""
    metadata = found.current.metadata
    assert metadata is not None
    for requirement in proposal.requirements:
        if requirement.type == "assert-ref-snapshot-id":
            ref = metadata.refs.get(requirement.ref)  # type: ignore[attr-defined]
            if (None if ref is None else ref.snapshot_id) != requirement.snapshot_id:  # type: ignore[attr-defined]
                return True
    return False
