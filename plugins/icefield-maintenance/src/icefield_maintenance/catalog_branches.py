"""Branches over many tables of a catalog: created, compared, merged and dropped in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icefield.abc import MultiTableCatalog
from icefield.errors import InvalidArgument, NotSupportedByCatalog
from icefield.metadata import MAIN_BRANCH, TableMetadata
from icefield.transaction import ManageSnapshots

from icefield_maintenance.tend.costs import total

if TYPE_CHECKING:
    from icefield import Catalog

Name = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchDifference:
    """The difference between a branch and ``main`` in one table, in snapshots since their last common one.

    ``ahead`` are the snapshots of the branch alone, ``behind`` those of ``main`` alone. A branch is merged where it is
    ahead and not behind. ``added_records`` and ``deleted_records`` are the rows of the snapshots ahead, as their
    summaries state them.
    """

    table: str
    ahead: int
    behind: int
    added_records: int = 0
    deleted_records: int = 0


class CatalogBranches:
    """The branches of one name in many tables of a catalog, as ``CatalogBranches(catalog)``.

    Changes of several tables are one commit: all of them become visible, or none. They need a catalog that changes
    several tables in one step (``MultiTableCatalog``); others raise ``NotSupportedByCatalog`` before anything is
    changed. Changes of one table work everywhere.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def create(self, name: str, tables: Iterable[str | Name]) -> tuple[str, ...]:
        """Create a branch at the current snapshot of each table, and return the names of the tables.

        A table without a snapshot gets an empty one on the branch. Raises ``InvalidArgument`` if a table has a branch
        or tag of that name, or if no table is given, ``NoSuchTable``, and errors of commits.
        """
        found = [self._catalog.load_table(each).name() for each in tables]
        if not found:
            raise InvalidArgument(f"branch '{name}' needs a table: name one at least")
        return self._changed(found, lambda change: change.create_branch(None, name))

    def list(self) -> dict[str, tuple[str, ...]]:
        """The names of all branches but ``main``, each with its tables. Reads the metadata of every table."""
        found: dict[str, list[str]] = {}
        for table in self._catalog.walk_tables():
            for name, ref in self._catalog.load_table(table).refs().items():
                if ref.is_branch and name != MAIN_BRANCH:
                    found.setdefault(name, []).append(".".join(table))
        return {name: tuple(sorted(found[name])) for name in sorted(found)}

    def diff(self, name: str) -> tuple[BranchDifference, ...]:
        """The differences of the branch from ``main``, for each table that has it. Raises ``InvalidArgument``."""
        return tuple(_difference(self._catalog.load_table(each).metadata, each, name) for each in self._having(name))

    def merge(self, name: str) -> tuple[str, ...]:
        """Move ``main`` forward to the branch in all tables that have it, and return the tables that change.

        The branch stays. Raises ``InvalidArgument`` if ``main`` has snapshots that the branch lacks; nothing is
        changed then.
        """
        ahead = [each.table for each in self.diff(name) if each.ahead or each.behind]
        tables = [each for each in self._having(name) if ".".join(each) in ahead]
        return self._changed(tables, lambda change: change.fast_forward(MAIN_BRANCH, name))

    def drop(self, name: str) -> tuple[str, ...]:
        """Drop the branch from all tables that have it, and return these. Its snapshots stay until they expire."""
        if name == MAIN_BRANCH:
            raise InvalidArgument("the branch 'main' of a table cannot be dropped")
        return self._changed(self._having(name), lambda change: change.remove_branch(name))

    def _changed(self, tables: Sequence[Name], change: Callable[[ManageSnapshots], ManageSnapshots]) -> tuple[str, ...]:
        backend = self._catalog.backend
        if len(tables) > 1 and not isinstance(backend, MultiTableCatalog):
            raise NotSupportedByCatalog(
                f"catalog '{backend.name}' cannot change the {len(tables)} tables in one step: catalogs of the types "
                "sql and rest can; or change a branch of each table by table.manage_snapshots()"
            )
        with self._catalog.transaction() as transaction:
            for each in tables:
                change(ManageSnapshots(transaction.table(each).stage)).commit()
        return tuple(".".join(each) for each in tables)

    def _having(self, name: str) -> Sequence[Name]:
        """The tables that have the branch, sorted. Raises ``InvalidArgument`` if none has it."""
        found = []
        for table in self._catalog.walk_tables():
            ref = self._catalog.load_table(table).refs().get(name)
            if ref is not None and ref.is_branch:
                found.append(table)
        if not found:
            raise InvalidArgument(f"no table of catalog '{self._catalog.name}' has a branch '{name}'")
        return sorted(found)


def _difference(metadata: TableMetadata, table: Name, name: str) -> BranchDifference:
    heads = [metadata.head(name), metadata.head(MAIN_BRANCH)]
    own, main = ([] if head is None else [*metadata.ancestor_ids(head)] for head in heads)
    of_own, of_main = set(own), set(main)
    ahead = [each for each in own if each not in of_main]
    behind = [each for each in main if each not in of_own]
    snapshots = [metadata.snapshot_by_id(each) for each in ahead]
    added, deleted = (
        sum(total(each.summary.get(key)) for each in snapshots if each is not None)
        for key in ("added-records", "deleted-records")
    )
    return BranchDifference(
        table=".".join(table), ahead=len(ahead), behind=len(behind), added_records=added, deleted_records=deleted
    )
