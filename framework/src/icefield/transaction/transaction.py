"""A transaction: a list of actions that become visible together, as one new version of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from icefield.abc import Proposal
from icefield.commit import (
    TableHandle,
    TableState,
    WrittenFiles,
    change_of,
    commit_table,
    creation_of,
    discard_unexposed,
    load_table,
)
from icefield.errors import InvalidArgument, NoSuchTable
from icefield.metadata import MAIN_BRANCH, TableMetadata, TableUpdate
from icefield.metadata.properties import FORMAT_VERSION
from icefield.metadata.requirements import TableRequirement, check
from icefield.metadata.updates.apply import MetadataBuilder, apply_updates
from icefield.plugins import Extensible
from icefield.storage import FileIO
from icefield.storage.neighbours import check_move
from icefield.transaction.action import Action, ActionContext, warn_of_lost
from icefield.transaction.branches.manage_snapshots import ManageSnapshots
from icefield.transaction.head.branch_head import checked_branch, head_of
from icefield.transaction.metadata_changes.update_properties import UpdateLocation, UpdateProperties
from icefield.transaction.row_changes import RowChanges

if TYPE_CHECKING:
    from icefield_import import add_files as _add_files

R = TypeVar("R")


class Transaction(RowChanges, Extensible, Generic[R]):
    """Stages actions and commits them as one version.

    Use it as a context manager: leaving it commits; leaving it by an exception discards every file that was written.
    Actions on the table's shape (schema, spec, properties, ...) are seen at once by later actions. Actions on its
    data are applied when the transaction commits, in order, each on the result of the actions before it.
    """

    services: ClassVar[str] = "transaction-services"

    if TYPE_CHECKING:  # the service of icefield-import
        add_files = _add_files

    def __init__(
        self,
        handle: TableHandle,
        state: TableState | None,
        *,
        created: TableMetadata | None = None,
        finish: Callable[[TableState], R],
    ) -> None:
        base = state.metadata if state is not None else created
        if base is None:
            raise InvalidArgument("a transaction needs a table, or the metadata of one to create")
        handle.writable()
        self._handle = handle
        self._state = state
        self._created = created
        self._shape = base
        self._finish = finish
        self._actions: list[Action] = []
        self._context = ActionContext(handle.name, handle.io, WrittenFiles())
        self._open = True

    def mark_files(self, marker: str) -> None:
        """Put a string into the names of the manifests and manifest lists that the commit writes.

        The caller can recognize these files by it if the process is killed before it can commit or clean up.
        """
        self._context = replace(self._context, marker=f"{marker}-")

    # -- the table after the commit -------------------------------------------------------------------------------

    @property
    def shape(self) -> TableMetadata:
        """The metadata with the staged changes of schema, specs, order, properties and location, but not of data."""
        return self._shape

    @property
    def context(self) -> ActionContext:
        """The context of the actions."""
        return self._context

    @property
    def io(self) -> FileIO:
        """The file IO of the table's files."""
        return self._handle.io

    def preview(self) -> TableMetadata:
        """The metadata that a commit would make now, on the version that the transaction began with.

        Applies every staged action, and so writes manifests; the commit uses them again.
        """
        self._check_open()
        base = self._state.metadata if self._state is not None else self._created
        proposal = self.proposal(base)
        return proposal.metadata if proposal is not None else self._shape

    # -- staging --------------------------------------------------------------------------------------------------

    def stage(self, action: Action) -> None:
        """Add an action. An action that shapes the table is checked at once."""
        self._check_open()
        if action.shapes:
            changes = action.apply(self._shape, self._context_of(self._shape))
            check(changes.requirements, self._shape)
            if not changes.updates:
                return
            shaped = apply_updates(self._shape, changes.updates)
            if self._state is not None:
                pointer = self._state.pointer.location
                # Another table's location, and any other location for a table under two names, is refused.
                check_move(self._handle.io, self._handle.writable(), self._shape, shaped, pointer)
            self._shape = shaped
        self._actions.append(action)

    def expect_branch(self, branch: str | None) -> None:
        """Raise ``NoSuchSnapshot`` or ``InvalidArgument`` for a branch that takes no commit."""
        name = checked_branch(branch) or MAIN_BRANCH
        if name == MAIN_BRANCH or self._shape.head(name) is not None:
            return
        if not any(isinstance(action, ManageSnapshots) for action in self._actions):
            current = self._current()  # another commit may have created it meanwhile
            head_of(self._shape if current is None else current.metadata, name)

    def set_properties(self, properties: Mapping[str, Any] | None = None, **more: Any) -> Self:
        """Stage table properties to set."""
        UpdateProperties(self.stage).set(properties, **more).commit()
        self._context.io.plugins.table_properties.warn_of_names({**(properties or {}), **more})
        return self

    def remove_properties(self, *keys: str) -> Self:
        """Stage table properties to remove."""
        UpdateProperties(self.stage).remove(*keys).commit()
        return self

    def update_location(self, location: str) -> Self:
        """Stage another base location for new files. Raises ``LocationInUse`` for another table's location."""
        UpdateLocation(self.stage, location).commit()
        return self

    def upgrade_table_version(self, format_version: int) -> Self:
        """Stage a higher format version."""
        return self.set_properties({FORMAT_VERSION.name: format_version})

    # -- the end --------------------------------------------------------------------------------------------------

    def commit_transaction(self) -> R:
        """Make everything visible in one step, and return the table. Without staged actions nothing is done.

        Raises ``CommitFailed``, ``ValidationFailed``, ``CommitStateUnknown``, ``TableExists`` for a creation that lost.
        """
        self._check_open()
        written = self._context.written
        try:
            self._open = False
            if self._state is not None and not self._actions:
                return self._finish(self._state)
            # Data was written since the table was loaded: load the other writers' commits before the first attempt.
            probable = self._is_probably_current()
            base = self._state if probable else self._current()
            result = commit_table(self._handle, base, self.proposal, written=written, is_probable=probable)
        except BaseException:  # an interrupt is one
            discard_unexposed(self._handle, written)
            raise
        return self._finish(result)

    def abort(self) -> None:
        """Abandon the transaction, and delete the files that it wrote."""
        if self._open:
            self._open = False
            discard_unexposed(self._handle, self._context.written)

    def end(self) -> None:
        """End it without a commit of its own: its ``proposal`` was committed, or its files were deleted."""
        self._open = False

    def __del__(self) -> None:
        if getattr(self, "_open", False) and (self._actions or self._created is not None):
            warn_of_lost(
                f"a transaction of table '{self._handle.full_name}' was dropped with its changes: call "
                "commit_transaction() or abort(), or use it in a 'with' block"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is not None:
                self.abort()
            elif self._open:
                self.commit_transaction()
        except BaseException:  # an interrupt between two steps
            discard_unexposed(self._handle, self._context.written)
            raise

    def _is_probably_current(self) -> bool:
        """Whether the version of the transaction is probably current. A wrong answer takes a retry."""
        state = self._state
        if state is None or any(name.startswith("commit.retry.") for name in state.metadata.properties):
            return False  # a property that limits retries must not
        return self._handle.writable().is_probably_current(state.pointer)

    def _current(self) -> TableState | None:
        if self._state is None:
            return None
        current = load_table(self._handle, self._state)
        if current is None:
            raise NoSuchTable(f"table '{self._handle.full_name}' was dropped", table=self._handle.name)
        return current

    def proposal(self, base: TableMetadata | None) -> Proposal | None:
        """The proposal that a commit on a base would make, for commits of several tables; None for no change.

        Applies every action to the base, one after another. ``base`` is None for a table to create.
        """
        start = base if base is not None else self._created
        assert start is not None
        updates: list[TableUpdate] = []
        requirements: list[TableRequirement] = []
        # One change, so that the logs show one step for the whole transaction.
        builder, metadata = MetadataBuilder(start), start
        for action in self._actions:
            changes = action.apply(metadata, self._context_of(metadata))
            check(changes.requirements, metadata)
            if changes.updates:
                updates += changes.updates
                requirements += changes.requirements
                metadata = builder.apply(changes.updates)
        if base is None:
            return creation_of(start, updates, metadata)
        return None if metadata is base else change_of(base, updates, requirements, metadata)

    def _context_of(self, metadata: TableMetadata) -> ActionContext:
        """The context with a file IO that encrypts the new files of an encrypted table."""
        return replace(self._context, io=self._context.io.encrypting(metadata))

    def _check_open(self) -> None:
        if not self._open:
            raise InvalidArgument("this transaction has ended; begin a new one")
