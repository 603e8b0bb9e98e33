"""The commit of several tables: their metadata files first, then every pointer in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from icefield.abc import Committed, Conflict, Pointer, TableChange, TableName
from icefield.errors import CommitStateUnknown, IcefieldError, TableExists
from icefield.toolkit import delete_quietly

from icefield_sql.database import Database
from icefield_sql.engines import DatabaseConnectionLost, NameTaken
from icefield_sql.strategy import SqlStrategy, is_view, taken_by_view

_log = logging.getLogger(__name__)

_Staged = tuple[SqlStrategy, TableChange, Pointer]


class _Lost(Exception):
    """A pointer differs from the base of its change."""


def commit_together(
    database: Database, changes: Sequence[TableChange], strategy: Callable[[TableName, str], SqlStrategy]
) -> tuple[Committed, ...] | Conflict:
    """Commit changes of several tables: see ``MultiTableCatalog.commit_tables``."""
    staged: list[_Staged] = []
    try:
        # All writers lock the rows in one order, so that two of them wait instead of ending in a deadlock.
        for change in sorted(changes, key=lambda change: change.table):
            each = strategy(change.table, change.proposal.metadata.location)
            staged.append((each, change, each.stage(change.base, change.proposal)))
        swap_all(database, staged)
    except _Lost:
        _discard(staged)
        return Conflict()
    except NameTaken as error:
        _discard(staged)
        raise _taken(database, changes) from error
    except DatabaseConnectionLost as lost:
        _settle(staged, lost)
    except IcefieldError:
        _discard(staged)
        raise
    for each, change, _ in staged:
        each.delete_old(change.base, change.proposal)
    by_name = {each.table: Committed(pointer) for each, _, pointer in staged}
    return tuple(by_name[change.table] for change in changes)


def swap_all(database: Database, staged: Sequence[_Staged]) -> None:
    """Swap all pointers in one transaction. It is rolled back if a pointer differs from the base of its change."""
    with database.transaction() as connection:
        for each, change, pointer in staged:
            if not each.swap_in(connection, None if change.base is None else change.base.location, pointer.location):
                raise _Lost


def _settle(staged: Sequence[_Staged], lost: Exception) -> None:
    """Read the pointers: a single new pointer proves that all of them were swapped."""
    try:
        if any(each.read_pointer() == pointer.location for each, _, pointer in staged):
            return
    except Exception as error:
        _log.warning("the catalog cannot be looked at: %s", type(error).__name__)
    names = ", ".join(".".join(each.table) for each, _, _ in staged)
    raise CommitStateUnknown(
        f"the reply to committing the tables {names:.500} was lost and the catalog does not say yet whether it "
        "happened; no file was deleted: load the tables again and look for the change"
    ) from lost


def _discard(staged: Sequence[_Staged]) -> None:
    for each, _, pointer in staged:
        delete_quietly(each.file_system, pointer.location)


def _taken(database: Database, changes: Sequence[TableChange]) -> TableExists:
    """The error for a new table with a name that is taken."""
    created = [change.table for change in changes if change.base is None]
    for table in created:
        if is_view(database, table):
            return taken_by_view(database, table)
    names = " or ".join(".".join(table) for table in created)
    return TableExists(f"table {names:.500} exists already in catalog '{database.catalog}'")
