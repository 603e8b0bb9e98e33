"""The one retry loop: every change of every table goes through ``commit_table``.

A change is a function from a base to the metadata that should follow it. The loop publishes that metadata through
the table's strategy; when another commit came first it refreshes, lets the function re-validate and re-apply the
change to the new base, and tries again after a pause. What it cleans up is said in ``written_files``.
"""

# See docs/decisions/0044 and docs/decisions/0201.

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count

from icefield.abc import CommitConflict, CommitMade, Conflict, Proposal
from icefield.commit.retry_policy import RetryPolicy
from icefield.commit.state import TableHandle, TableState, current_of, load_table
from icefield.commit.written_files import WrittenFiles, discard, discard_unexposed
from icefield.errors import CommitFailed, CommitStateUnknown, FileMissing, IcefieldError, NoSuchTable, TableExists
from icefield.metadata import TableMetadata
from icefield.metadata.properties import COMMIT_RETRY_NUM_RETRIES
from icefield.metadata.snapshots import Snapshot
from icefield.metadata.updates import AddSnapshot

_log = logging.getLogger(__name__)


Build = Callable[[TableMetadata | None], Proposal | None]
"""From a base (None: the table is to be created) to what should follow it; None when there is nothing to change."""


@dataclass(slots=True)
class _Run:
    """One operation on its way through the loop."""

    handle: TableHandle
    build: Build
    written: WrittenFiles
    policy: RetryPolicy
    checks: RetryPolicy
    sleep: Callable[[float], None]
    started: float = field(default_factory=time.monotonic)
    attempt: int = 0
    attempt_seconds: float = math.inf
    """How long the shortest attempt took: the first may have opened connections and loaded code."""

    proposal: Proposal | None = None

    @property
    def snapshot(self) -> Snapshot | None:
        """The last snapshot that the latest attempt adds."""
        updates = self.proposal.updates if self.proposal is not None else ()
        return next((update.snapshot for update in reversed(updates) if isinstance(update, AddSnapshot)), None)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started


def commit_table(
    handle: TableHandle,
    base: TableState | None,
    build: Build,
    *,
    written: WrittenFiles | None = None,
    policy: RetryPolicy | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> TableState:
    """Commit what ``build`` makes of the table, retrying conflicts; return the version that holds the change.

    ``base=None`` creates the table. Returns ``base`` itself when ``build`` finds nothing to change. ``policy``
    defaults to the table's own properties.

    Raises ``CommitFailed`` when retries did not settle a conflict, whatever ``build`` raises (``ValidationFailed``
    when the change cannot be re-applied), ``TableExists`` when a creation lost, ``NoSuchTable`` when the table was
    dropped meanwhile, and ``CommitStateUnknown`` when nobody can know what happened.
    """
    properties = base.metadata.properties if base is not None else {}
    if policy is None:
        policy = RetryPolicy.from_properties(properties) if base is not None else RetryPolicy(0)
    # Read now: a property that cannot be used must not come between a commit and its outcome.
    checks = RetryPolicy.of_status_checks(properties)
    run = _Run(handle, build, written if written is not None else WrittenFiles(), policy, checks, sleep)
    try:
        return _settle(run, base)
    except BaseException:  # an interrupt is one
        discard_unexposed(handle, run.written)
        raise


def _settle(run: _Run, base: TableState | None) -> TableState:
    """Attempts until one is the last."""
    while True:
        run.attempt += 1
        began = time.monotonic()
        outcome = _attempt(run, base)
        run.attempt_seconds = min(run.attempt_seconds, time.monotonic() - began)
        if not isinstance(outcome, Conflict):
            return outcome
        refreshed = _after_conflict(run, base, outcome)
        if _holds_ours(run, refreshed):
            run.written.exposed = True
            return _committed(run, refreshed)
        base = refreshed


def _attempt(run: _Run, base: TableState | None) -> TableState | Conflict:
    """Build on ``base`` and publish: the new version, ``base`` when nothing changes, or the conflict that was met."""
    try:
        proposal = run.build(base.metadata if base is not None else None)
    except FileMissing:
        if base is None or _surely_unchanged(run, base):
            raise
        return Conflict()  # what it was built on has expired meanwhile
    if proposal is None:
        assert base is not None, "a creation always has something to commit"
        discard(run.handle, run.written.all())
        return base
    if base is not None:
        proposal = replace(proposal, metadata=run.handle.logged(proposal.metadata, base))
    run.proposal = proposal
    outcome = _publish(run, base, proposal)
    return outcome if isinstance(outcome, Conflict) else _committed(run, outcome)


def _publish(run: _Run, base: TableState | None, proposal: Proposal) -> TableState | Conflict:
    """The one call that makes a change visible, with its failures sorted.

    An interrupt in it leaves open whether the change is visible: the files stay.
    """
    strategy = run.handle.writable()
    run.written.exposed = True
    try:
        outcome = strategy.commit(base.pointer if base is not None else None, proposal)
    except CommitStateUnknown as error:
        found = _find_ours(run)
        if found is None:
            raise
        _log.warning("the reply to a commit of '%s' was lost, but the table shows it: %s", run.handle.full_name, error)
        return found
    except Exception as error:
        if isinstance(error, IcefieldError) and error.retryable and base is not None:
            run.written.exposed = False
            return Conflict()
        # The contract says that nothing became visible. A strategy that is wrong about it must not cost data.
        run.written.exposed = not _surely_unchanged(run, base)
        raise
    if isinstance(outcome, Conflict):
        run.written.exposed = False
        return outcome
    return TableState.after(outcome, proposal, base)


def _committed(run: _Run, state: TableState) -> TableState:
    """Everything after the atomic step: nothing here may fail."""
    discard(run.handle, run.written.retired())
    snapshot = run.snapshot
    event = CommitMade(
        table=run.handle.name,
        metadata_location=state.pointer.location,
        snapshot_id=snapshot.snapshot_id if snapshot is not None else None,
        operation=snapshot.summary.get("operation") if snapshot is not None else None,
        attempts=run.attempt,
        seconds=run.elapsed,
        catalog=run.handle.io.catalog,
        table_uuid=str(state.metadata.table_uuid),
        sequence_number=snapshot.sequence_number if snapshot is not None else None,
        summary=snapshot.summary if snapshot is not None else {},
    )
    run.handle.io.plugins.emit(event)
    return state


def _after_conflict(run: _Run, base: TableState | None, conflict: Conflict) -> TableState:
    """Pause and return the version to try next, or give up."""
    location = base.pointer.location if base is not None else None
    current = conflict.current.location if conflict.current is not None else None
    run.handle.io.plugins.emit(CommitConflict(run.handle.name, run.attempt, location, current))
    if base is None:
        raise TableExists(f"table '{run.handle.full_name}' exists already", table=run.handle.name)
    last = run.policy.gives_up(run.attempt, run.elapsed)
    if not last:
        run.sleep(run.policy.wait_seconds(run.attempt, attempt_seconds=run.attempt_seconds))
    # A table that was dropped and created again may have the same name for its version.
    refreshed = load_table(run.handle, base, read_again=True)
    if refreshed is None:
        message = f"table '{run.handle.full_name}' was dropped while it was being changed"
        raise NoSuchTable(message, table=run.handle.name)
    if last and not _holds_ours(run, refreshed):
        raise _lost(run, refreshed)
    return refreshed


def _lost(run: _Run, winner: TableState) -> CommitFailed:
    """The error for a conflict that retries did not settle: it names what it lost to."""
    snapshot = winner.metadata.current_snapshot()
    what = f"current is {winner.pointer.location}"
    if snapshot is not None:
        what += f" with snapshot {snapshot.snapshot_id} ({snapshot.summary.get('operation', 'operation not stated')})"
    return CommitFailed(
        f"commit to '{run.handle.full_name}' lost to other commits {run.attempt} times in {run.elapsed:.1f} s, and "
        f"nothing was changed; {what}. Try again, or raise the table property '{COMMIT_RETRY_NUM_RETRIES.name}' (now "
        f"{run.policy.num_retries})",
        table=run.handle.name,
        attempts=run.attempt,
        location=winner.pointer.location,
        snapshot_id=snapshot.snapshot_id if snapshot is not None else None,
    )


def _find_ours(run: _Run) -> TableState | None:
    """Look for the proposal in the table, more than once: the store may be down, and the request still on its way.

    Whatever is not there may come yet, so finding nothing proves nothing.
    """
    if run.snapshot is None:
        return None  # no version could be distinguished from another's
    began = time.monotonic()
    for attempt in count(1):
        found = _look(run)
        if found is not None and _holds_ours(run, found):
            return found
        if run.checks.gives_up(attempt, time.monotonic() - began):
            break
        run.sleep(run.checks.wait_seconds(attempt, lambda _, longest: longest))
    return None


def _look(run: _Run) -> TableState | None:
    try:
        return load_table(run.handle)
    except Exception:
        return None


def _holds_ours(run: _Run, state: TableState) -> bool:
    """Whether a version provably contains the proposal.

    Snapshot ids are random and this one was drawn by this operation: a table that holds it holds this commit, however
    the reply was lost. A proposal without a snapshot leaves no such mark.
    """
    ours = run.snapshot
    return ours is not None and state.metadata.snapshot_by_id(ours.snapshot_id) is not None


def _surely_unchanged(run: _Run, base: TableState | None) -> bool:
    try:
        current = current_of(run.handle.writable())
    except Exception:
        return False
    if base is None or current is None:
        return base is None and current is None
    return current.pointer.location == base.pointer.location
