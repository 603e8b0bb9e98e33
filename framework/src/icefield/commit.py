"""The one retry loop: every change of every table goes through ``commit_table``.

A change is a function from a base to the metadata that should follow it. The loop publishes that metadata through
the table's strategy; when another commit came first it refreshes, lets the function re-validate and re-apply the
change to the new base, and tries again after a pause. It also holds the rules of cleaning up, which are three:

1. only files that this operation wrote are ever deleted (``WrittenFiles``);
2. nothing is deleted while the outcome of a commit is unknown;
3. a failure to clean up is logged and never hides the outcome.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from icefield.abc import CommitConflict, CommitMade, CommitStrategy, Conflict, Pointer
from icefield.errors import (
    CommitFailed,
    CommitStateUnknown,
    FileMissing,
    IcefieldError,
    InvalidMetadata,
    NoSuchTable,
    NotSupportedByCatalog,
    TableExists,
)
from icefield.file_io import FileIO
from icefield.metadata import TableMetadata, decode_metadata, with_metadata_log
from icefield.properties import (
    COMMIT_RETRY_MAX_WAIT_MS,
    COMMIT_RETRY_MIN_WAIT_MS,
    COMMIT_RETRY_NUM_RETRIES,
    COMMIT_RETRY_TOTAL_TIMEOUT_MS,
    COMMIT_STATUS_CHECK_MAX_WAIT_MS,
    COMMIT_STATUS_CHECK_MIN_WAIT_MS,
    COMMIT_STATUS_CHECK_NUM_RETRIES,
    COMMIT_STATUS_CHECK_TOTAL_TIMEOUT_MS,
    get_int,
)

_log = logging.getLogger(__name__)

# A metastore may delete the metadata file that a pointer names between reading the one and opening the other.
_LOAD_TRIES = 5

_DOUBLINGS = 5
_SLOW_GROWTH = 0.1


@dataclass(frozen=True, slots=True)
class TableState:
    """One version of a table: the pointer to its metadata file, and what the file holds."""

    pointer: Pointer
    metadata: TableMetadata

    @classmethod
    def at(cls, location: str, metadata: TableMetadata) -> TableState:
        """The version that a metadata file holds."""
        return cls(Pointer(location), metadata)


@dataclass(frozen=True, slots=True)
class TableHandle:
    """What is needed to load and commit one table: its name, its file IO and its strategy.

    ``strategy`` is None for a table that was opened without a catalog, which can only be read.
    """

    name: tuple[str, ...]
    io: FileIO
    strategy: CommitStrategy | None = None

    @property
    def text(self) -> str:
        """The name as people write it: ``db.events``."""
        return ".".join(self.name)

    def writable(self) -> CommitStrategy:
        """The strategy. Raises ``NotSupportedByCatalog`` for a table that can only be read."""
        if self.strategy is None:
            raise NotSupportedByCatalog(
                f"table '{self.text}' was opened from a metadata file, without a catalog, and can only be read; "
                "load it through a catalog to change it",
                table=self.name,
            )
        return self.strategy


def load_table(handle: TableHandle, known: TableState | None = None, *, read_again: bool = False) -> TableState | None:
    """The current version of a table, or None when there is no table.

    The metadata file is read only if the pointer has moved on from ``known``. With ``read_again`` it is read unless it
    is certain that it is the same file: that of a table that was dropped and created again may have the same location.
    Raises ``InvalidMetadata`` when the table under that name is another one than ``known`` (its uuid differs).
    """
    strategy = handle.writable()
    for tries_left in reversed(range(_LOAD_TRIES)):
        pointer = strategy.load()
        if pointer is None:
            return None
        if known is not None and pointer.location == known.pointer.location:
            same = pointer.stamp is not None and pointer.stamp == known.pointer.stamp
            if same or not (read_again and strategy.reuses_locations):
                return known
        try:
            metadata = decode_metadata(handle.io.read(pointer.location), pointer.location)
        except FileMissing:
            if not tries_left:
                raise
            continue
        _same_table(handle, known, metadata, pointer)
        return TableState(pointer, metadata)
    raise AssertionError("unreachable")


def _same_table(handle: TableHandle, known: TableState | None, metadata: TableMetadata, pointer: Pointer) -> None:
    before = known.metadata.table_uuid if known is not None else None
    # A v1 table may be given its uuid by a later commit.
    if before is not None and metadata.table_uuid != before:
        raise InvalidMetadata(
            f"table '{handle.text}' is not the table that was loaded: its uuid was {before} and is now "
            f"{metadata.table_uuid} in {pointer.location}; load the table again",
            table=handle.name,
            location=pointer.location,
        )


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When to try again, times in milliseconds: a commit, or to find out what became of one whose reply was lost."""

    num_retries: int = 4
    min_wait_ms: int = 100
    max_wait_ms: int = 60_000
    total_timeout_ms: int = 1_800_000

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> RetryPolicy:
        """Of commits, from the table properties ``commit.retry.*``."""
        return cls(
            num_retries=get_int(properties, COMMIT_RETRY_NUM_RETRIES),
            min_wait_ms=get_int(properties, COMMIT_RETRY_MIN_WAIT_MS),
            max_wait_ms=get_int(properties, COMMIT_RETRY_MAX_WAIT_MS),
            total_timeout_ms=get_int(properties, COMMIT_RETRY_TOTAL_TIMEOUT_MS),
        )

    @classmethod
    def of_status_checks(cls, properties: Mapping[str, str]) -> RetryPolicy:
        """Of looking after a lost reply, from the table properties ``commit.status-check.*``."""
        return cls(
            num_retries=get_int(properties, COMMIT_STATUS_CHECK_NUM_RETRIES),
            min_wait_ms=get_int(properties, COMMIT_STATUS_CHECK_MIN_WAIT_MS),
            max_wait_ms=get_int(properties, COMMIT_STATUS_CHECK_MAX_WAIT_MS),
            total_timeout_ms=get_int(properties, COMMIT_STATUS_CHECK_TOTAL_TIMEOUT_MS),
        )

    def wait_seconds(
        self,
        attempt: int,
        draw: Callable[[float, float], float] = random.uniform,
        *,
        attempt_seconds: float = 0.0,
    ) -> float:
        """How long to pause after failed attempt ``attempt`` (from 1): exponential, with full jitter.

        Full jitter spreads the losers over the whole interval; they would otherwise meet again. The interval doubles
        five times and grows slowly from there: 32 times what an attempt takes keeps some dozens of writers apart, and
        a writer that has bad luck must not sleep for a minute while the others pass it by. ``attempt_seconds`` is how
        long an attempt takes here, since intervals shorter than that spread nothing.
        """
        doublings = min(attempt - 1, _DOUBLINGS) + _SLOW_GROWTH * max(0, attempt - 1 - _DOUBLINGS)
        scale = max(self.min_wait_ms, attempt_seconds * 500) if self.min_wait_ms else 0
        longest = min(self.max_wait_ms, scale * 2 ** min(doublings, 40))
        return draw(0, longest) / 1000

    def gives_up(self, attempt: int, elapsed_seconds: float) -> bool:
        """Whether failed attempt ``attempt`` was the last."""
        return attempt > self.num_retries or elapsed_seconds * 1000 >= self.total_timeout_ms


class WrittenFiles:
    """The files that one operation wrote, and which of them its latest attempt has no use for.

    A manifest is written once and referred to by every attempt; a manifest list serves one attempt only. A file is
    kept after a success unless it was retired, so that forgetting to say so costs an orphan and never data.
    """

    def __init__(self) -> None:
        self._retired: dict[str, bool] = {}

    def add(self, *locations: str) -> None:
        """Note files that were written, or that are of use again."""
        self._retired.update(dict.fromkeys(locations, False))

    def retire(self, *locations: str) -> None:
        """Note that the attempt that is being built does not refer to these files of an earlier one."""
        self._retired.update((location, True) for location in locations if location in self._retired)

    def all(self) -> list[str]:
        """Every file that was written, in the order of writing."""
        return list(self._retired)

    def retired(self) -> list[str]:
        """The files that the latest attempt does not refer to."""
        return [location for location, retired in self._retired.items() if retired]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an attempt would make of its base: the new metadata, and the snapshot in it, for listeners."""

    metadata: TableMetadata
    snapshot_id: int | None = None
    operation: str | None = None


Build = Callable[[TableMetadata | None], "Proposal | None"]
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
    attempt_seconds: float = 0.0
    proposal: Proposal | None = None

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
    dropped meanwhile, and ``CommitStateUnknown`` when nobody can tell what happened.
    """
    properties = base.metadata.properties if base is not None else {}
    if policy is None:
        policy = RetryPolicy.from_properties(properties) if base is not None else RetryPolicy(0)
    # Read now: a property that cannot be used must not come between a commit and its outcome.
    checks = RetryPolicy.of_status_checks(properties)
    run = _Run(handle, build, written if written is not None else WrittenFiles(), policy, checks, sleep)
    while True:
        run.attempt += 1
        began = time.monotonic()
        outcome = _attempt(run, base)
        run.attempt_seconds = time.monotonic() - began
        if not isinstance(outcome, Conflict):
            return outcome
        refreshed = _after_conflict(run, base, outcome)
        if _holds_ours(run, refreshed):
            return _committed(run, refreshed)
        base = refreshed


def _attempt(run: _Run, base: TableState | None) -> TableState | Conflict:
    """Build on ``base`` and publish: the new version, ``base`` when nothing changes, or the conflict that was met."""
    try:
        proposal = run.build(base.metadata if base is not None else None)
    except BaseException:
        # No attempt of this operation can be visible here: earlier ones lost, this one was not published.
        discard(run.handle, run.written.all())
        raise
    if proposal is None:
        assert base is not None, "a creation always has something to commit"
        discard(run.handle, run.written.all())
        return base
    if base is not None:
        # Where the file is found by everyone who reads the table's own locations, with a map or without.
        replaced = run.handle.io.unmapped(base.pointer.location, base.metadata.location)
        metadata = with_metadata_log(proposal.metadata, replaced, base.metadata.last_updated_ms)
        proposal = replace(proposal, metadata=metadata)
    run.proposal = proposal
    outcome = _publish(run, base, proposal.metadata)
    return outcome if isinstance(outcome, Conflict) else _committed(run, outcome)


def _publish(run: _Run, base: TableState | None, metadata: TableMetadata) -> TableState | Conflict:
    """The one call that makes a change visible, with its failures sorted."""
    try:
        outcome = run.handle.writable().commit(base.pointer if base is not None else None, metadata)
    except CommitStateUnknown as error:
        found = _find_ours(run)
        if found is None:
            raise
        _log.warning("the reply to a commit of '%s' was lost, but the table shows it: %s", run.handle.text, error)
        return found
    except Exception as error:
        if isinstance(error, IcefieldError) and error.retryable and base is not None:
            return Conflict()
        # The contract says that nothing became visible. A strategy that is wrong about it must not cost data.
        if _surely_unchanged(run, base):
            discard(run.handle, run.written.all())
        raise
    return outcome if isinstance(outcome, Conflict) else TableState(outcome.pointer, metadata)


def _committed(run: _Run, state: TableState) -> TableState:
    """Everything after the atomic step: nothing here may fail."""
    discard(run.handle, run.written.retired())
    proposal = run.proposal
    event = CommitMade(
        table=run.handle.name,
        metadata_location=state.pointer.location,
        snapshot_id=proposal.snapshot_id if proposal is not None else None,
        operation=proposal.operation if proposal is not None else None,
        attempts=run.attempt,
        seconds=run.elapsed,
    )
    run.handle.io.plugins.emit(event)
    return state


def _after_conflict(run: _Run, base: TableState | None, conflict: Conflict) -> TableState:
    """Pause and return the version to try next, or give up."""
    location = base.pointer.location if base is not None else None
    current = conflict.current.location if conflict.current is not None else None
    run.handle.io.plugins.emit(CommitConflict(run.handle.name, run.attempt, location, current))
    try:
        if base is None:
            raise TableExists(f"table '{run.handle.text}' exists already", table=run.handle.name)
        last = run.policy.gives_up(run.attempt, run.elapsed)
        if not last:
            run.sleep(run.policy.wait_seconds(run.attempt, attempt_seconds=run.attempt_seconds))
        # A table that was dropped and created again may have the same name for its version.
        refreshed = load_table(run.handle, base, read_again=True)
        if refreshed is None:
            message = f"table '{run.handle.text}' was dropped while it was being changed"
            raise NoSuchTable(message, table=run.handle.name)
        if last and not _holds_ours(run, refreshed):
            raise _lost(run, refreshed)
    except BaseException:
        discard(run.handle, run.written.all())
        raise
    return refreshed


def _lost(run: _Run, winner: TableState) -> CommitFailed:
    """The error for a conflict that retries did not settle: it names what it lost to."""
    snapshot = winner.metadata.current_snapshot()
    what = f"current is {winner.pointer.location}"
    if snapshot is not None:
        what += f" with snapshot {snapshot.snapshot_id} ({snapshot.summary.get('operation', 'operation not told')})"
    return CommitFailed(
        f"commit to '{run.handle.text}' lost to other commits {run.attempt} times in {run.elapsed:.1f} s, and nothing "
        f"was changed; {what}. Try again, or raise the table property '{COMMIT_RETRY_NUM_RETRIES.name}' (now "
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
    if run.proposal is None or run.proposal.snapshot_id is None:
        return None  # no version could be told from another's
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
    proposal = run.proposal
    if proposal is None or proposal.snapshot_id is None:
        return False
    return state.metadata.snapshot_by_id(proposal.snapshot_id) is not None


def _surely_unchanged(run: _Run, base: TableState | None) -> bool:
    try:
        pointer = run.handle.writable().load()
    except Exception:
        return False
    if base is None or pointer is None:
        return base is None and pointer is None
    return pointer.location == base.pointer.location


def discard(handle: TableHandle, locations: list[str]) -> None:
    """Delete files that no version refers to. A failure leaves orphans, is logged and raises nothing."""
    if not locations:
        return
    try:
        handle.io.delete_many(locations)
    except Exception:
        _log.warning(
            "could not delete %d files that '%s' does not refer to: %s", len(locations), handle.text, locations
        )
