"""Branches over many tables of a catalog: created, compared, merged and dropped in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from icefield.abc import MultiTableCatalog
from icefield.errors import InvalidArgument, NoSuchTable, NotSupportedByCatalog
from icefield.metadata import MAIN_BRANCH, AssertRefSnapshotID, Operation, TableMetadata
from icefield.transaction import Action, ActionContext, Changes, ManageSnapshots

from icefield_maintenance.tend.costs import total

if TYPE_CHECKING:
    from icefield import Catalog

Name = tuple[str, ...]
A = TypeVar("A", bound=Action)


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchDifference:
    """The difference between a branch and ``main`` in one table, in snapshots since their last common one.

    ``ahead`` is the number of snapshots of the branch alone, ``behind`` of those of ``main`` alone. A branch that is
    ahead can be merged unless it is also behind. ``added_records`` and ``deleted_records`` are the rows of the
    snapshots ahead, by their summaries: without equality deletes, and with all rows of a file that was rewritten to
    change some of its rows. Compaction adds and deletes no rows. With ``has_lost_history``, the snapshots from ``main``
    to the branch have expired, so that the branch cannot be merged.
    """

    table: str
    ahead: int
    behind: int
    added_records: int = 0
    deleted_records: int = 0
    has_lost_history: bool = False


class BranchChange(ManageSnapshots):
    """A change of a branch that fails if the branch or ``main`` has moved since the change was prepared.

    The tables of a catalog are read one after another. The requirements ensure that all of them are as they were at one
    moment: a REST catalog checks nothing else.
    """

    def __init__(self, stage: Callable[[Action], None], name: str) -> None:
        super().__init__(stage)
        self._name = name

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The change, with its requirements."""
        changes = super().apply(base, context)
        stay = (AssertRefSnapshotID(each, base.head(each)) for each in (MAIN_BRANCH, self._name))
        return replace(changes, requirements=(*changes.requirements, *stay))


class MergeBranch(BranchChange):
    """Moves ``main`` forward to a branch; changes nothing if ``main`` has all snapshots of the branch.

    ``moves``: whether the last call of ``apply`` moved ``main``.
    """

    moves = False

    def __init__(self, stage: Callable[[Action], None], name: str) -> None:
        super().__init__(stage, name)
        self.fast_forward(MAIN_BRANCH, name)

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The move. Raises ``InvalidArgument`` if ``main`` has snapshots that the branch lacks."""
        main = base.head(MAIN_BRANCH)
        self.moves = main is None or base.head(self._name) not in {*base.ancestor_ids(main)}
        return super().apply(base, context) if self.moves else Changes()


class CatalogBranches:
    """The branches of one name in many tables of a catalog, as ``CatalogBranches(catalog)``.

    Changes of several tables are one commit: all of them become visible, or none. They need a catalog that changes
    several tables in one step (``MultiTableCatalog``); others raise ``NotSupportedByCatalog`` before anything is
    changed. Changes of one table work everywhere.

    ``tables`` are the tables in which branches are looked for, all tables of the catalog by default. Each is read, so
    a user without the right to read all of them names some.
    """

    def __init__(self, catalog: Catalog, tables: Iterable[str | Name] | None = None) -> None:
        self._catalog = catalog
        self._tables = None if tables is None else tuple(tables)

    def create(self, name: str, tables: Iterable[str | Name]) -> tuple[str, ...]:
        """Create a branch at the current snapshot of each table, and return the names of the tables.

        A table without a snapshot gets an empty one on the branch. Raises ``InvalidArgument`` if a table has a branch
        or tag of that name, or if no table is given, ``NoSuchTable``, and errors of commits.
        """
        found = {each.name(): each.refs() for each in map(self._catalog.load_table, tables)}
        if not found:
            raise InvalidArgument(f"branch '{name}' needs a table: name one at least")
        if taken := [table for table, refs in found.items() if name in refs]:
            raise InvalidArgument(f"a branch or tag '{name}' is already in {_listed(taken)}", ref=name)
        self._change([*found], lambda stage: BranchChange(stage, name).create_branch(None, name))
        return _joined(found)

    def list(self) -> dict[str, tuple[str, ...]]:
        """The names of all branches but ``main``, each with its tables. Reads the metadata of every table."""
        found: dict[str, list[Name]] = {}
        for table, metadata in self._loaded():
            for name, ref in metadata.refs.items():
                if ref.is_branch and name != MAIN_BRANCH:
                    found.setdefault(name, []).append(table)
        return {name: _joined(found[name]) for name in sorted(found)}

    def diff(self, name: str) -> tuple[BranchDifference, ...]:
        """The differences of the branch from ``main``, for each table that has it. Raises ``InvalidArgument``."""
        return tuple(self._differences(name).values())

    def merge(self, name: str) -> tuple[str, ...]:
        """Move ``main`` forward to the branch in all tables where it is ahead, and return these tables.

        The branch stays. Raises ``InvalidArgument`` if the branch is ahead in a table whose ``main`` has snapshots that
        the branch lacks, or whose snapshots between the two have expired; nothing is changed then.
        """
        found = self._differences(name)
        ahead = {table: each for table, each in found.items() if each.ahead}
        if lost := [table for table, each in ahead.items() if each.has_lost_history]:
            raise InvalidArgument(
                f"branch '{name}' cannot be merged: the snapshots between main and the branch have expired in "
                f"{_listed(lost)}. Where main has not changed since, table.manage_snapshots().replace_branch moves it",
                ref=name,
            )
        if refused := [table for table, each in ahead.items() if each.behind]:
            raise InvalidArgument(
                f"branch '{name}' cannot be merged: main has snapshots that the branch lacks in {_listed(refused)}",
                ref=name,
            )
        # The other tables take part, so that a commit to the branch of several tables meanwhile is merged whole.
        tables = [*(found if isinstance(self._catalog.backend, MultiTableCatalog) else ahead)]
        merges = self._change(tables, lambda stage: MergeBranch(stage, name))
        return _joined(table for table, each in zip(tables, merges, strict=True) if each.moves)

    def drop(self, name: str) -> tuple[str, ...]:
        """Drop the branch from all tables that have it, and return these. Its snapshots stay until they expire."""
        found = [table for table, _ in self._having(name)]
        self._change(found, lambda stage: ManageSnapshots(stage).remove_branch(name))
        return _joined(found)

    def _change(self, tables: Sequence[Name], change: Callable[[Callable[[Action], None]], A]) -> Sequence[A]:
        """Commit the action that ``change`` makes for each table, all in one step."""
        backend = self._catalog.backend
        if len(tables) > 1 and not isinstance(backend, MultiTableCatalog):
            raise NotSupportedByCatalog(
                f"catalog '{backend.name}' cannot change the {len(tables)} tables in one step: catalogs of the types "
                "sql and rest can; or change a branch of each table by table.manage_snapshots()"
            )
        with self._catalog.transaction() as transaction:
            actions = []
            for each in tables:
                actions.append(change(transaction.table(each).stage))
                actions[-1].commit()
        return actions

    def _differences(self, name: str) -> dict[Name, BranchDifference]:
        return {table: _difference(metadata, table, name) for table, metadata in self._having(name)}

    def _having(self, name: str) -> Iterator[tuple[Name, TableMetadata]]:
        """The tables that have the branch, sorted by their names. Raises ``InvalidArgument`` if none has it."""
        if name == MAIN_BRANCH:
            raise InvalidArgument(f"'{name}' is the table itself: name a branch beside it", ref=name)
        has_any = False
        for table, metadata in self._loaded():
            ref = metadata.refs.get(name)
            if ref is not None and ref.is_branch:
                has_any = True
                yield table, metadata
        if not has_any:
            raise InvalidArgument(f"no table of catalog '{self._catalog.name}' has a branch '{name}'")

    def _loaded(self) -> Iterator[tuple[Name, TableMetadata]]:
        """The tables, sorted by their names. Those that are dropped meanwhile are left out, unless they were named."""
        if self._tables is not None:
            found = {table.name(): table.metadata for table in map(self._catalog.load_table, self._tables)}
            yield from sorted(found.items(), key=lambda each: each[0])
            return
        for name in sorted(self._catalog.walk_tables()):
            with suppress(NoSuchTable):
                yield name, self._catalog.load_table(name).metadata


def _joined(tables: Iterable[Name]) -> tuple[str, ...]:
    return tuple(".".join(each) for each in tables)


def _listed(tables: Sequence[Name]) -> str:
    more = f", and {len(tables) - 5:,} more" if len(tables) > 5 else ""
    return ", ".join(_joined(tables[:5])) + more


def _difference(metadata: TableMetadata, table: Name, name: str) -> BranchDifference:
    heads = [metadata.head(name), metadata.head(MAIN_BRANCH)]
    own, main = ([] if head is None else [*metadata.ancestor_ids(head)] for head in heads)
    of_own, of_main = set(own), set(main)
    ahead = [each for each in metadata.ancestors(heads[0]) if each.snapshot_id not in of_main]
    behind = [each for each in main if each not in of_own]
    changing = [each.summary for each in ahead if each.operation is not Operation.REPLACE]
    added, *deleted = (
        sum(total(summary.get(key)) for summary in changing)
        for key in ("added-records", "deleted-records", "added-position-deletes", "removed-position-deletes")
    )
    return BranchDifference(
        table=".".join(table),
        ahead=len(ahead),
        behind=len(behind),
        added_records=added,
        deleted_records=max(0, deleted[0] + deleted[1] - deleted[2]),
        has_lost_history=bool(ahead and main) and len(ahead) == len(own) and ahead[-1].parent_snapshot_id is not None,
    )
