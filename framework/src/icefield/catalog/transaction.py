"""Atomic changes of several tables, for catalogs that support them, and changes by the updates of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace

from icefield.abc import CatalogBackend, Committed, Conflict, MultiTableCatalog, Proposal, TableChange, TableName
from icefield.catalog.identifiers import table_name
from icefield.commit import (
    NO_LOOK,
    Change,
    RetryPolicy,
    TableHandle,
    TableState,
    discard,
    discard_unexposed,
    holds,
    is_newest,
    load_table,
    settle,
    snapshots_of,
    tell_conflict,
    tell_made,
)
from icefield.errors import CommitFailed, InvalidArgument, NoSuchTable, NotSupportedByCatalog
from icefield.metadata import TableMetadata, TableRequirement, TableUpdate
from icefield.metadata.requirements import AssertCreate, check
from icefield.metadata.updates.apply import apply_updates, created_by
from icefield.metadata.updates.definitions import AddSchema
from icefield.metadata.updates.table import RemoveProperties, SetLocation, SetProperties
from icefield.transaction import Transaction

CheckTable = Callable[[TableName, TableMetadata | None, TableMetadata], None]
"""Called with a table's name and its metadata before (None for a new table) and after a change; raises to refuse it."""


@dataclass(slots=True)
class _Part:
    """The staged changes of one table."""

    handle: TableHandle
    state: TableState
    staged: Transaction[None]
    proposal: Proposal | None = None

    def restaged(self) -> Staged:
        """The changes, applied to the newest version of the table."""
        state = load_table(self.handle, self.state)
        if state is None:
            raise NoSuchTable(f"table '{self.handle.full_name}' was dropped", table=self.handle.name)
        self.state = state
        self.proposal = self.staged.proposal(state.metadata)
        if self.proposal is not None:
            self.proposal = replace(self.proposal, metadata=self.handle.logged(self.proposal.metadata, state))
        return Staged(self.handle, state, self.proposal)


@dataclass(slots=True)
class Staged:
    """The change of one table within a change of several tables; ``proposal`` is None if there is nothing to change."""

    handle: TableHandle
    base: TableState | None
    proposal: Proposal | None

    def change(self) -> TableChange | None:
        """The change in the form of the catalog contract."""
        if self.proposal is None:
            return None
        return TableChange(self.handle.name, self.base.pointer if self.base is not None else None, self.proposal)


class ChangeOfTables(Change[dict[TableName, Committed]]):
    """A change of several tables on its way through the retry loop.

    ``stage`` returns the changes based on the current versions. ``expose`` is told whether a version may refer to the
    written files.
    """

    def __init__(
        self,
        backend: MultiTableCatalog,
        stage: Callable[[], Sequence[Staged]],
        expose: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self.backend, self._stage, self._expose = backend, stage, expose
        self.parts: Sequence[Staged] = ()

    @property
    def name(self) -> str:  # type: ignore[override]
        """The names of the tables."""
        return ", ".join(".".join(part.handle.name) for part in self.parts)[:500]

    @property
    def _properties(self) -> list[Mapping[str, str]]:
        return [{} if part.base is None else part.base.metadata.properties for part in self.parts]

    @property
    def policy(self) -> RetryPolicy:  # type: ignore[override]
        """The policy of the table that allows the most retries."""
        return max(map(RetryPolicy.from_properties, self._properties), key=lambda each: each.num_retries)

    @property
    def checks(self) -> RetryPolicy:  # type: ignore[override]
        """The policy of the table that allows the most status checks; one check without a snapshot."""
        if not any(snapshots_of(part.proposal) for part in self.parts):
            return NO_LOOK
        return max(map(RetryPolicy.of_status_checks, self._properties), key=lambda each: each.num_retries)

    def prepare(self) -> dict[TableName, Committed] | None:
        self.parts = self._stage()
        return None if self._changed() else {}

    def publish(self) -> dict[TableName, Committed] | Conflict:
        changes = [change for part in self.parts if (change := part.change()) is not None]
        self._expose(True)
        outcome = self.backend.commit_tables(changes)
        if isinstance(outcome, Conflict):
            return outcome
        return {change.table: made for change, made in zip(changes, outcome, strict=True)}

    def rejected(self) -> None:
        self._expose(False)

    def failed(self, error: Exception) -> Exception:
        raised = super().failed(error)
        self._expose(raised is not error)
        return raised

    def found(self) -> dict[TableName, Committed] | None:
        """The current tables, if all staged snapshots are visible; None otherwise, or if no snapshot is staged.

        A table without a staged snapshot changed in the same step as the others.
        """
        made, marked = {}, False
        for part in self._changed():
            state = load_table(part.handle)
            marks = bool(snapshots_of(part.proposal))
            if state is None or (marks and not holds(state, part.proposal)):
                return None
            made[part.handle.name] = Committed(state.pointer, metadata=state.metadata)
            marked = marked or marks
        return made if marked else None

    def tell(self, attempt: int, conflict: Conflict) -> None:
        for part in self._changed():
            tell_conflict(part.handle, part.base, attempt, Conflict())

    def renew(self) -> dict[TableName, Committed] | None:
        found = self.found()
        if found is not None:
            self._expose(True)
        return found

    def lost(self, attempts: int, seconds: float) -> CommitFailed:
        return CommitFailed(
            f"a change of the tables {self.name} lost to other commits {attempts} times, and nothing was changed; "
            "try again",
            attempts=attempts,
        )

    def _changed(self) -> list[Staged]:
        return [part for part in self.parts if part.proposal is not None]


def settle_tables(change: ChangeOfTables, operations: Mapping[TableName, str]) -> dict[TableName, Committed]:
    """Settle a change of several tables. Listeners are told of an operation, and of a commit, for each table."""
    listeners = change.backend.io.listeners
    with ExitStack() as stack:
        told = {
            name: stack.enter_context(listeners.operation(operation, name, nested=False))
            for name, operation in operations.items()
        }
        settled = settle(change)
        for part in change.parts:
            made = settled.result.get(part.handle.name)
            if made is not None and part.proposal is not None:
                state = TableState.after(made, part.proposal, part.base)
                tell_made(part.handle, part.base, state, part.proposal, settled, told[part.handle.name])
    return settled.result


def changes_several(backend: CatalogBackend) -> MultiTableCatalog:
    """The backend as a ``MultiTableCatalog``. Raises ``NotSupportedByCatalog`` if it is none."""
    if isinstance(backend, MultiTableCatalog):
        return backend
    raise NotSupportedByCatalog(
        f"catalog '{backend.name}' cannot change several tables in one step: commit them one by one"
    )


@dataclass(frozen=True, slots=True)
class TableUpdates:
    """A change of one table: the protocol's updates, and their requirements.

    ``judge`` is called with the result of each attempt, before anything is written.
    """

    table: TableName
    updates: tuple[TableUpdate, ...]
    requirements: tuple[TableRequirement, ...] = ()
    judge: CheckTable | None = None

    @property
    def creates(self) -> bool:
        """Whether the table must not exist yet."""
        return any(isinstance(requirement, AssertCreate) for requirement in self.requirements)

    @property
    def moves(self) -> bool:
        """Whether the change may move the location of the table's files."""
        return any(isinstance(update, SetLocation | SetProperties | RemoveProperties) for update in self.updates)

    def applied(self, base: TableMetadata | None) -> TableMetadata:
        """The metadata after the change. Raises the errors of ``check`` and of ``apply_updates``."""
        check(self.requirements, base)
        if base is None:
            made = created_by(self.updates)
        else:
            made = apply_updates(base, (_without_old_number(update, base) for update in self.updates))
        if self.judge is not None:
            self.judge(self.table, base, made)
        return made

    def proposal(self, base: TableMetadata | None) -> Proposal | None:
        """The proposal on a base, None for a new table; no proposal if there is nothing to change."""
        made = self.applied(base)
        if made is base:
            return None
        return Proposal(made, self.updates, self.requirements, base, self.judge is not None)


def _without_old_number(update: TableUpdate, base: TableMetadata) -> TableUpdate:
    """Remove the last column id of an update if it is below the table's.

    Java states the last id of the new schema, which may be lower and is irrelevant.
    """
    if isinstance(update, AddSchema) and (update.last_column_id or 0) < base.last_column_id:
        return AddSchema(update.schema)
    return update


class CatalogTransaction(AbstractContextManager["CatalogTransaction"]):
    """Stages changes of tables and commits them together: either all of them become visible, or none.

    Use it as a context manager: ``with catalog.transaction() as tx: tx.table("db.a").append(rows)``. Leaving it by an
    exception discards every file that was written.
    """

    def __init__(self, backend: CatalogBackend, load: Callable[[TableName], tuple[TableHandle, TableState]]) -> None:
        self._backend, self._load = backend, load
        self._parts: dict[TableName, _Part] = {}
        self._open = True

    def table(self, identifier: str | tuple[str, ...]) -> Transaction[None]:
        """The transaction of one table, with ``append``, ``delete``, ``update_schema`` and all other changes.

        Raises ``NoSuchTable``, and ``NotSupportedByCatalog`` for a second table where the catalog cannot change
        several in one step.
        """
        self._check_open()
        name = table_name(identifier)
        part = self._parts.get(name)
        if part is None:
            if self._parts:
                changes_several(self._backend)
            handle, state = self._load(name)
            staged: Transaction[None] = Transaction(handle, state, finish=lambda _: None)
            part = self._parts[name] = _Part(handle.at(state), state, staged)
        return part.staged

    def commit_transaction(self) -> None:
        """Make all changes visible in one step.

        If another commit comes first, all changes are applied again to the new version. Raises ``CommitFailed``,
        ``ValidationFailed``, ``CommitStateUnknown``, ``NoSuchTable``.
        """
        self._check_open()
        self._open = False
        parts = list(self._parts.values())
        if len(parts) < 2:
            for part in parts:
                part.staged.commit_transaction()
            return
        for part in parts:
            part.staged.end()
        try:
            self._settle(parts)
        except BaseException:  # including interrupts
            self._discard()
            raise

    def abort(self) -> None:
        """Abort the transaction, and delete the files that it wrote."""
        if self._open:
            self._open = False
            self._discard()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abort()
        elif self._open:
            self.commit_transaction()

    def _settle(self, parts: list[_Part]) -> None:
        def expose(exposed: bool) -> None:
            for part in parts:
                part.staged.context.written.exposed = exposed

        def stage() -> list[Staged]:
            while True:
                staged = [each.restaged() for each in parts]
                # No commit tells whether a table without a change stayed as it was when the others were read.
                if all(each.proposal is not None or is_newest(each.handle, each.state) for each in parts):
                    return staged

        change = ChangeOfTables(changes_several(self._backend), stage, expose)
        made = settle_tables(change, {part.handle.name: "commit" for part in parts})
        # No step after this may fail.
        for part in parts:
            written = part.staged.context.written
            discard(part.handle, written.retired() if part.handle.name in made else written.all())

    def _discard(self) -> None:
        for part in self._parts.values():
            part.staged.end()
            discard_unexposed(part.handle, part.staged.context.written)

    def _check_open(self) -> None:
        if not self._open:
            raise InvalidArgument("this transaction has ended; begin a new one")
