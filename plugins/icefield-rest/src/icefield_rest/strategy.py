"""The strategy of a table: the service decides, by the requirements of the change."""

from __future__ import annotations

import logging
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
    ValidationFailed,
)
from icefield.metadata import Snapshot, TableMetadata, TableRequirement
from icefield.toolkit import Backoff, SharedClients

from icefield_rest.answers import LoadedTable, as_committed
from icefield_rest.failures import ServiceRefusal, Uncertain, error_of
from icefield_rest.partly_committed import warn_partly_committed
from icefield_rest.service import Service
from icefield_rest.shown import not_shown
from icefield_rest.tables import Tables

_log = logging.getLogger(__name__)
_LOOKS: Final = 3
_MOST_NAMED: Final = 5
_FOR_GOOD: Final = frozenset(
    {
        "assert-table-uuid",
        "assert-ref-snapshot-id",
        "assert-last-assigned-field-id",
        "assert-last-assigned-partition-id",
    }
)
_SHARED: Final[SharedClients[Tables]] = SharedClients()
_LOOK_AGAIN: Final = Backoff(0.2, 2.0, jitter=0)


class RestStrategy(CommitStrategy):
    """Sends updates and requirements; the service applies them and returns the new table metadata."""

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
            made = as_committed(self._tables.commit(self.table, proposal, create=base is None))
        except Uncertain as lost:
            return self._settled(base, proposal, lost)
        except ServiceRefusal as refused:
            if refused.status == 409:
                # A proxy may have sent a creation twice: the UUID shows whether the table is ours.
                ours = self.outcome_of(base, proposal) if base is None else None
                return ours if isinstance(ours, Committed) else Conflict()
            raise self._refusal(refused, what, creates=base is None) from refused
        self._look_for_parts(proposal, made)
        return made

    def made(self, base: Pointer | None, proposal: Proposal) -> Committed | None:
        """The current table after the service acknowledged a commit without showing its result."""
        found = self._tables.load(self.table)
        if found is None:
            return None
        made = as_committed(found)
        log = made.metadata.metadata_log if made.metadata is not None else ()
        if base is not None and log and log[-1].metadata_file == base.location:  # no other commit has followed
            self._look_for_parts(proposal, made)
        return made

    def outcome_of(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict | None:
        """Find the outcome of a proposal with a lost reply in the table; None where the table does not show it."""
        found = self._tables.looked_for(self.table)
        return None if found is None else _outcome(base, proposal, found)

    def drop(self) -> None:
        self._tables.drop(self.table, purge=False)

    def credentials(self) -> str | None:
        return self._tables.service.connection.authenticator.says()

    def _look_for_parts(self, proposal: Proposal, made: Committed) -> None:
        """Warn of parts of a commit that the service left out. Raises nothing: the commit is made."""
        try:
            assert made.metadata is not None
            missing = not_shown(proposal.updates, proposal.metadata, made.metadata)
            warn_partly_committed(self._tables.service.name, self.table, missing)
        except Exception:
            _log.exception("what a commit of table '%s' made could not be compared", ".".join(self.table))

    def _refusal(self, refused: ServiceRefusal, what: str, *, creates: bool) -> IcefieldError:
        if refused.status == 404 and (creates or self._tables.says_missing(refused, self.table)):
            if creates or refused.kind == "NoSuchNamespace":
                name = ".".join(self.table[:-1])
                return NoSuchNamespace(f"no namespace {name}: {refused.said}", namespace=self.table[:-1])
            return NoSuchTable(f"no table {'.'.join(self.table)}: {refused.said}", table=self.table)
        if refused.kind == "AlreadyExists":
            return TableExists(f"{'.'.join(self.table)} exists already: {refused.said}", table=self.table)
        return error_of(refused, what)

    def _settled(self, base: Pointer | None, proposal: Proposal, lost: Uncertain) -> Committed | Conflict:
        """Load the table to determine the outcome of a commit with a lost or inconclusive reply."""
        what = f"committing {'.'.join(self.table)}"
        for look in range(1, _LOOKS + 1):
            found = self._tables.looked_for(self.table)
            outcome = None if found is None else _outcome(base, proposal, found)
            if outcome is not None:
                return outcome
            if found is not None and lost.conflicts and base is not None and not _added(proposal):
                return Conflict()  # no files are at stake, and to make the change twice makes no difference
            if lost.declined is not None and self._is_as_before(base, proposal, found):
                raise self._refusal(lost.declined, what, creates=base is None) from lost
            if look < _LOOKS:
                time.sleep(_LOOK_AGAIN.wait(look))
        raise CommitStateUnknown(
            f"the reply to {what} was lost, or does not say whether it happened ({lost}), and "
            f"{_lacks(proposal, found)}; no file was deleted: load the table again and look for the change",
            table=self.table,
        ) from lost

    def _is_as_before(self, base: Pointer | None, proposal: Proposal, found: LoadedTable | None) -> bool:
        """Whether the table is still at the version before a declined change, and no files are at stake.

        A table that does not show a change proves nothing, since a request may be under way for a long time. But if the
        service answers that it does not support the change, and the table has not changed meanwhile, the change was not
        made.
        """
        if base is None:
            return found is None and self._tables.is_gone(self.table)
        return found is not None and found.current.pointer.location == base.location and not _added(proposal)


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


def _outcome(base: Pointer | None, proposal: Proposal, found: LoadedTable) -> Committed | Conflict | None:
    """Return the outcome of a proposal that a table shows: committed, impossible (a conflict), or None if open."""
    current, metadata = found.current, found.current.metadata
    assert metadata is not None
    if base is None:
        return as_committed(found) if metadata.table_uuid == proposal.metadata.table_uuid else Conflict()
    if added := _added(proposal):
        if all(metadata.snapshot_by_id(snapshot.snapshot_id) is not None for snapshot in added):
            return as_committed(found)
        # A branch that has moved on will always refuse the request, even if it arrives late.
        return Conflict() if _moved(proposal, found) else None
    if not not_shown(proposal.updates, proposal.metadata, metadata) and current.pointer.location != base.location:
        return as_committed(found)
    return Conflict() if _moved(proposal, found) else None


def _lacks(proposal: Proposal, found: LoadedTable | None) -> str:
    """Describe the state of a table that does not show the outcome of a proposal."""
    if found is None or found.current.metadata is None:
        return "the table cannot be loaded"
    missing = not_shown(proposal.updates, proposal.metadata, found.current.metadata)
    return f"the table does not show {', '.join(list(missing)[:_MOST_NAMED]) or 'it'} now, which may come yet"


def _added(proposal: Proposal) -> list[Snapshot]:
    """The snapshots that a proposal adds."""
    return [update.snapshot for update in proposal.updates if update.action == "add-snapshot"]  # type: ignore[attr-defined]


def _moved(proposal: Proposal, found: LoadedTable) -> bool:
    """Whether the table was replaced or has changed so that the service will always reject the proposal.

    Only requirements that can never become true again count: the current schema of a table, for example, may return to
    the former one. A change without a snapshot may itself have made its requirement false, before another commit
    followed.
    """
    may_be_ours = not _added(proposal)
    return any(
        not _holds(requirement, found.current.metadata)
        and not (may_be_ours and not _holds(requirement, proposal.metadata))
        for requirement in proposal.requirements
        if requirement.type in _FOR_GOOD
    )


def _holds(requirement: TableRequirement, metadata: TableMetadata | None) -> bool:
    try:
        requirement.check(metadata)
    except ValidationFailed:
        return False
    return True
