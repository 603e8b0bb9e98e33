"""Changes of several tables that become visible in one step, where the catalog can do that."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from types import TracebackType
from typing import Self

from icefield.abc import CatalogAbility, CatalogBackend, CommitMade, Conflict, Proposal, TableChange, TableName
from icefield.catalog.identifiers import string_of, table_name
from icefield.commit import RetryPolicy, TableHandle, TableState, discard, discard_unexposed, load_table
from icefield.errors import (
    CommitFailed,
    CommitStateUnknown,
    IcefieldError,
    InvalidArgument,
    NoSuchTable,
    NotSupportedByCatalog,
)
from icefield.metadata.snapshots import Snapshot
from icefield.metadata.updates import AddSnapshot
from icefield.transaction import Transaction


@dataclass(slots=True)
class _Part:
    """What is staged for one table."""

    handle: TableHandle
    state: TableState
    staged: Transaction[None]
    proposal: Proposal | None = None

    @property
    def snapshots(self) -> list[Snapshot]:
        """The snapshots that the latest attempt adds."""
        updates = self.proposal.updates if self.proposal is not None else ()
        return [update.snapshot for update in updates if isinstance(update, AddSnapshot)]

    def change(self) -> TableChange | None:
        """The change on the newest version of the table; None where nothing is to be done."""
        state = load_table(self.handle, self.state)
        if state is None:
            raise NoSuchTable(f"table '{self.handle.full_name}' was dropped", table=self.handle.name)
        self.state = state
        self.proposal = self.staged.proposal(state.metadata)
        if self.proposal is None:
            return None
        self.proposal = replace(self.proposal, metadata=self.handle.logged(self.proposal.metadata, state))
        return TableChange(self.handle.name, state.pointer, self.proposal)

    def is_there(self) -> bool:
        """Whether the table provably holds the latest attempt: by a snapshot, whose id was drawn here."""
        found = load_table(self.handle)
        added = self.snapshots
        return (
            found is not None
            and bool(added)
            and all(found.metadata.snapshot_by_id(each.snapshot_id) is not None for each in added)
        )


class CatalogTransaction:
    """Stages changes of tables and commits them together: all of it is visible then, or nothing.

    Use it as a context manager: ``with catalog.transaction() as tx: tx.table("db.a").append(rows)``. Leaving it by an
    exception discards every file that was written.
    """

    def __init__(self, backend: CatalogBackend, load: Callable[[TableName], tuple[TableHandle, TableState]]) -> None:
        self._backend, self._load = backend, load
        self._parts: dict[TableName, _Part] = {}
        self._open = True

    def table(self, identifier: str | tuple[str, ...]) -> Transaction[None]:
        """What stages changes of a table: its ``append``, ``delete``, ``update_schema`` and all the others.

        Raises ``NoSuchTable``, and ``NotSupportedByCatalog`` for a second table where the catalog cannot change
        several in one step.
        """
        self._check_open()
        name = table_name(identifier)
        part = self._parts.get(name)
        if part is None:
            if self._parts and CatalogAbility.MULTI_TABLE not in self._backend.abilities:
                raise NotSupportedByCatalog(
                    f"catalog '{self._backend.name}' cannot change several tables in one step: commit them one by one"
                )
            handle, state = self._load(name)
            staged: Transaction[None] = Transaction(handle, state, finish=lambda _: None)
            part = self._parts[name] = _Part(handle.at(state), state, staged)
        return part.staged

    def commit_transaction(self) -> None:
        """Make everything visible in one step.

        Where another commit comes first, everything is applied again to what it left. Raises ``CommitFailed``,
        ``ValidationFailed``, ``CommitStateUnknown``, ``NoSuchTable``.
        """
        self._check_open()
        self._open = False
        parts = list(self._parts.values())
        if len(parts) < 2:
            for part in parts:
                part.staged.commit_transaction()
            return
        try:
            self._settle(parts)
        except BaseException:  # an interrupt is one
            self._discard()
            raise

    def abort(self) -> None:
        """Give the transaction up, and delete the files that it wrote."""
        if self._open:
            self._open = False
            self._discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()
        elif self._open:
            self.commit_transaction()

    def _settle(self, parts: list[_Part]) -> None:
        def attempt() -> bool:
            changes = [change for part in parts if (change := part.change()) is not None]
            return not changes or self._published(parts, changes)

        attempts, seconds = commit_until_settled(
            attempt, lambda: {part.handle.name: part.state.metadata.properties for part in parts}
        )
        self._finish(parts, attempts, seconds)

    def _published(self, parts: list[_Part], changes: list[TableChange]) -> bool:
        """Whether the changes are visible; False where another commit came first."""
        _expose(parts, True)
        try:
            outcome = self._backend.commit_tables(changes)
        except CommitStateUnknown:
            with suppress(IcefieldError):  # who cannot look does not know either
                if all(part.is_there() for part in parts if part.proposal is not None):
                    return True
            raise
        except IcefieldError as error:
            _expose(parts, False)
            if error.retryable:
                return False
            raise
        if isinstance(outcome, Conflict):
            _expose(parts, False)
            return False
        locations = {change.table: made.pointer.location for change, made in zip(changes, outcome, strict=True)}
        for part in parts:
            if part.handle.name in locations:
                part.state = replace(
                    part.state, pointer=replace(part.state.pointer, location=locations[part.handle.name])
                )
        return True

    def _finish(self, parts: list[_Part], attempts: int, seconds: float) -> None:
        """Everything after the atomic step: nothing here may fail."""
        for part in parts:
            written = part.staged.context.written
            if part.proposal is None:
                discard(part.handle, written.all())
                continue
            discard(part.handle, written.retired())
            last = part.snapshots[-1] if part.snapshots else None
            part.handle.io.plugins.emit(
                CommitMade(
                    table=part.handle.name,
                    metadata_location=part.state.pointer.location,
                    snapshot_id=last.snapshot_id if last is not None else None,
                    operation=last.summary.get("operation") if last is not None else None,
                    attempts=attempts,
                    seconds=seconds,
                    catalog=part.handle.io.catalog,
                    table_uuid=str(part.state.metadata.table_uuid),
                    sequence_number=last.sequence_number if last is not None else None,
                    summary=last.summary if last is not None else {},
                )
            )

    def _discard(self) -> None:
        for part in self._parts.values():
            discard_unexposed(part.handle, part.staged.context.written)

    def _check_open(self) -> None:
        if not self._open:
            raise InvalidArgument("this transaction has ended; begin a new one")


def commit_until_settled(
    attempt: Callable[[], bool], tables: Callable[[], Mapping[TableName, Mapping[str, str]]]
) -> tuple[int, float]:
    """Try a change of several tables until ``attempt`` says that it is visible: how often, and for how many seconds.

    ``tables`` gives their properties by name, after an attempt; the table that allows the most retries decides. Raises
    ``CommitFailed`` when retries did not settle a conflict, and what ``attempt`` raises.
    """
    began = time.monotonic()
    for tried in count(1):
        if attempt():
            return tried, time.monotonic() - began
        found = tables()
        policy = max(map(RetryPolicy.from_properties, found.values()), key=lambda each: each.num_retries)
        if policy.gives_up(tried, time.monotonic() - began):
            names = ", ".join(map(string_of, found))
            raise CommitFailed(
                f"a change of the tables {names:.500} lost to other commits {tried} times, and nothing was changed; "
                "try again",
                attempts=tried,
            )
        time.sleep(policy.wait_seconds(tried))
    raise AssertionError("unreachable")


def _expose(parts: list[_Part], exposed: bool) -> None:
    for part in parts:
        part.staged.context.written.exposed = exposed
