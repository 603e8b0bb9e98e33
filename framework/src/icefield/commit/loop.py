"""The commit of a change to one table, with retries: every change of a table uses ``commit_table``.

A change is a function from a base to the next metadata. It is published through the table's strategy. When another
commit came first, the base is refreshed, and the function re-validates and re-applies the change to it. The rules of
cleaning up are in ``written_files``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from icefield.abc import CommitConflict, CommitMade, Conflict, Proposal
from icefield.commit.retry_policy import RetryPolicy
from icefield.commit.settling import Change, Settled, settle
from icefield.commit.state import TableHandle, TableState, is_newest, load_table
from icefield.commit.written_files import WrittenFiles, discard, discard_unexposed
from icefield.errors import (
    CommitFailed,
    FileMissing,
    IcefieldError,
    InvalidArgument,
    InvalidMetadata,
    NoSuchSnapshot,
    NoSuchTable,
    TableExists,
)
from icefield.metadata import AddSnapshot, Operation, Snapshot, TableMetadata
from icefield.metadata.properties import COMMIT_RETRY_NUM_RETRIES, COMMIT_RETRY_TOTAL_TIMEOUT_MS
from icefield.plugins import ToldOperation

NO_LOOK = RetryPolicy(0)
"""The policy of status checks for a change without a snapshot: one check."""

_OF_AN_OLD_BASE: Final = (FileMissing, InvalidArgument, InvalidMetadata, NoSuchSnapshot)

Build = Callable[[TableMetadata | None], Proposal | None]
"""Builds the proposal from a base (None for a new table); returns None when there is nothing to change."""


def commit_table(
    handle: TableHandle,
    base: TableState | None,
    build: Build,
    *,
    written: WrittenFiles | None = None,
    is_probable: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> TableState:
    """Commit the proposal of ``build``, with retries after conflicts; return the version with the change.

    ``base=None`` creates the table. Returns ``base`` itself when ``build`` finds nothing to change. A base that
    ``is_probable`` may be an old version: it decides neither an error nor that there is nothing to change. Without a
    number of retries in the table's properties, an append is tried again until ``commit.retry.total-timeout-ms`` is
    over, as long as other commits come first.

    Raises ``CommitFailed`` when retries did not settle a conflict, ``TableExists`` when a creation lost,
    ``NoSuchTable`` when the table was dropped meanwhile, and ``CommitStateUnknown`` when the outcome is unknown. Errors
    of ``build`` are raised, such as ``ValidationFailed`` when the change cannot be re-applied.
    """
    change = _TableAttempts(handle, base, build, WrittenFiles() if written is None else written, is_probable)
    with handle.io.listeners.operation("create-table" if base is None else "commit", handle.name) as operation:
        try:
            settled = settle(change, sleep)
        except BaseException:  # including interrupts
            discard_unexposed(handle, change.written)
            raise
        if change.is_published:
            discard(handle, change.written.retired())
            tell_made(handle, change.replaced, settled.result, change.proposal, settled, operation)
        else:  # there was nothing to change
            discard(handle, change.written.all())
    return settled.result


def snapshots_of(proposal: Proposal | None) -> list[Snapshot]:
    """The snapshots that a proposal adds."""
    updates = proposal.updates if proposal is not None else ()
    return [update.snapshot for update in updates if isinstance(update, AddSnapshot)]


def snapshot_of(proposal: Proposal | None) -> Snapshot | None:
    """The last snapshot that a proposal adds."""
    found = snapshots_of(proposal)
    return found[-1] if found else None


def _appends(proposal: Proposal | None) -> bool:
    """Whether a proposal adds rows and nothing else, so that a retry writes little and rarely fails."""
    made = snapshots_of(proposal)
    return bool(made) and all(snapshot.summary.get("operation") == Operation.APPEND for snapshot in made)


def holds(state: TableState, proposal: Proposal | None) -> bool:
    """Whether a version provably contains a proposal.

    This operation drew random snapshot ids: a table with these ids contains this commit, even if the reply was lost. A
    proposal without a snapshot leaves no such evidence.
    """
    ours = snapshots_of(proposal)
    return bool(ours) and all(state.metadata.snapshot_by_id(each.snapshot_id) is not None for each in ours)


def tell_made(
    handle: TableHandle,
    base: TableState | None,
    state: TableState,
    proposal: Proposal | None,
    settled: Settled[Any],
    operation: ToldOperation,
) -> None:
    """Tell listeners that a commit is visible. ``operation`` will tell the properties that it changed."""
    if not handle.io.listeners:
        return
    operation.changed({} if base is None else base.metadata.properties, state.metadata.properties)
    snapshot = snapshot_of(proposal)
    handle.io.listeners.tell(
        CommitMade(
            table=handle.name,
            metadata_location=state.pointer.location,
            snapshot_id=snapshot.snapshot_id if snapshot is not None else None,
            operation=snapshot.summary.get("operation") if snapshot is not None else None,
            attempts=settled.attempts,
            seconds=settled.seconds,
            catalog=handle.io.catalog,
            table_uuid=str(state.metadata.table_uuid),
            sequence_number=snapshot.sequence_number if snapshot is not None else None,
            summary=dict(snapshot.summary) if snapshot is not None else {},
            location=state.metadata.location,
            schema=state.metadata.schema(),
        )
    )


def tell_conflict(handle: TableHandle, base: TableState | None, attempt: int, conflict: Conflict) -> None:
    """Tell listeners that an attempt lost to another commit."""
    location = base.pointer.location if base is not None else None
    current = conflict.current.location if conflict.current is not None else None
    handle.io.listeners.tell(CommitConflict(handle.name, attempt, location, current))


class _TableAttempts(Change[TableState]):
    """A change of one table on its way through the loop."""

    def __init__(
        self, handle: TableHandle, base: TableState | None, build: Build, written: WrittenFiles, is_probable: bool
    ) -> None:
        self.handle, self.base, self.build, self.written = handle, base, build, written
        self.name, self.repeats = handle.full_name, base is not None
        properties = base.metadata.properties if base is not None else {}
        self.policy = RetryPolicy.from_properties(properties)
        self._counts = COMMIT_RETRY_NUM_RETRIES.name in properties
        # Parsed here, because an invalid property must not raise an error after the commit.
        self._checks = RetryPolicy.of_status_checks(properties)
        self._is_probable = is_probable
        self.proposal: Proposal | None = None
        self.replaced: TableState | None = None
        """The base of the proposal."""
        self.is_published = False

    @property
    def checks(self) -> RetryPolicy:  # type: ignore[override]
        return self._checks if snapshots_of(self.proposal) else NO_LOOK

    def prepare(self) -> TableState | Conflict | None:
        base = self.base
        try:
            proposal = self.build(base.metadata if base is not None else None)
        except IcefieldError as error:
            may_pass = self._is_probable or isinstance(error, _OF_AN_OLD_BASE)
            if base is None or not may_pass or self._surely_unchanged():
                raise
            return Conflict()  # a later commit removed a file of the base, or made a branch or spec that it lacks
        if proposal is None:
            assert base is not None, "a creation always has something to commit"
            if self._is_probable and not self._surely_unchanged():
                return Conflict()
            self.is_published = False
            return base
        if base is not None:
            proposal = replace(proposal, metadata=self.handle.logged(proposal.metadata, base))
        self.proposal, self.replaced, self.is_published = proposal, base, True
        return None

    def publish(self) -> TableState | Conflict:
        proposal, base = self.proposal, self.base
        assert proposal is not None
        strategy = self.handle.writable()
        at = base.pointer if base is not None else None
        self.written.exposed = True  # after an interrupt of the commit the change may be visible: the files stay
        outcome = strategy.commit(at, proposal)
        return outcome if isinstance(outcome, Conflict) else TableState.after(outcome, proposal, base)

    def rejected(self) -> None:
        self.written.exposed = False

    def failed(self, error: Exception) -> Exception:
        unchanged = self._surely_unchanged()
        self.written.exposed = not unchanged
        return error if unchanged else super().failed(error)

    def found(self) -> TableState | None:
        if not snapshots_of(self.proposal):
            return None
        state = load_table(self.handle)
        return state if state is not None and holds(state, self.proposal) else None

    def tell(self, attempt: int, conflict: Conflict) -> None:
        tell_conflict(self.handle, self.base, attempt, conflict)
        if self.base is None:
            raise TableExists(f"table '{self.name}' exists already", table=self.handle.name)

    def renew(self) -> TableState | None:
        self._is_probable = False
        before, self.base = self.base, load_table(self.handle, self.base)
        if self.base is None:
            message = f"table '{self.name}' was dropped while it was being changed"
            raise NoSuchTable(message, table=self.handle.name)
        if not holds(self.base, self.proposal):
            # A table that stays the same shows a failure that more tries would not mend.
            moved = before is not None and before.pointer.location != self.base.pointer.location
            self.uncounted += moved and not self._counts and _appends(self.proposal)
            return None
        self.written.exposed = self.is_published = True
        return self.base

    def lost(self, attempts: int, seconds: float) -> CommitFailed:
        winner = self.base
        assert winner is not None
        snapshot = winner.metadata.current_snapshot()
        what = f"current is {winner.pointer.location}"
        if snapshot is not None:
            operation = snapshot.summary.get("operation", "operation not stated")
            what += f" with snapshot {snapshot.snapshot_id} ({operation})"
        return CommitFailed(
            f"commit to '{self.name}' lost to other commits {attempts} times in {seconds:.1f} s, and nothing was "
            f"changed; {what}. Try again, or raise the table property {self._bound(attempts)}",
            table=self.handle.name,
            attempts=attempts,
            location=winner.pointer.location,
            snapshot_id=snapshot.snapshot_id if snapshot is not None else None,
        )

    def _bound(self, attempts: int) -> str:
        if attempts - self.uncounted > self.policy.num_retries:
            return f"'{COMMIT_RETRY_NUM_RETRIES.name}' (now {self.policy.num_retries})"
        return f"'{COMMIT_RETRY_TOTAL_TIMEOUT_MS.name}' (now {self.policy.total_timeout_ms})"

    def _surely_unchanged(self) -> bool:
        try:
            return is_newest(self.handle, self.base)
        except Exception:  # such as for another table at the location of the base
            return False
