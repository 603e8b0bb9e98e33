"""Checks of the locations of tables, and of files that a refused change leaves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from icefield import Catalog
from icefield.abc import (
    CatalogAbility,
    CatalogBackend,
    Committed,
    Conflict,
    FileSystemAbility,
    MultiTableCatalog,
    NamespaceName,
    ServedCatalog,
    TableName,
    ViewCatalog,
)
from icefield.commit import change_of, creation_of, current_of
from icefield.errors import AccessDenied, IcefieldError
from icefield.metadata import SetProperties, new_table_metadata
from icefield.storage import FileIO

from icefield_testing.catalogs.base import SCHEMA
from icefield_testing.catalogs.several_tables import TABLES, SeveralTablesChecks
from icefield_testing.catalogs.views import ViewChecks

_VIEW: TableName = ("a", "v")


class PlaceChecks(ViewChecks, SeveralTablesChecks):
    """Checks of ``table_location``, and of files and names that a change leaves."""

    def test_each_table_has_a_location_of_its_own(self, backend: CatalogBackend) -> None:
        """If this fails, two tables share a folder, so that purging one deletes the files of the other; or a location
        ends with a slash: look at ``table_location``."""
        spaces: list[NamespaceName] = [("a",), ("b",)]
        if CatalogAbility.NESTED_NAMESPACES in backend.abilities:
            spaces.append(("a", "b"))
        for space in spaces:
            backend.create_namespace(space, {})
        names = [(*space, table) for space in spaces for table in ("t", "u")]
        places = {name: backend.table_location(name) for name in names}
        for name, place in places.items():
            assert not place.endswith("/"), f"the location of {'.'.join(name)} ends with a slash: {place}"
            assert place == backend.table_location(name), f"the location of {'.'.join(name)} is another each time"
            for other, another in places.items():
                apart = other == name or not f"{another}/".startswith(f"{place}/")
                assert apart, f"{'.'.join(other)} would be in the folder of {'.'.join(name)}: {another}"
        self.create_table(backend, names[0])
        assert self._metadata_of(backend, names[0]).location == places[names[0]]

    def test_a_table_or_view_that_is_gone_is_not_revived(self, backend: CatalogBackend) -> None:
        """If this fails, a commit on a base of before makes a table that was dropped or renamed, since the pointer is
        not compared when there is none; or ``commit_view`` with a base makes a view that was dropped."""
        backend.create_namespace(("a",), {})
        for name in TABLES:
            self.create_table(backend, name)
            strategy = backend.strategy(name)
            pointer, metadata = self._loaded(backend, name)
            proposal = change_of(metadata, [SetProperties({"late": "1"})])
            is_renamed = name == TABLES[1] and CatalogAbility.RENAME in backend.abilities
            if is_renamed:
                backend.rename_table(name, ("a", "renamed"))
            else:
                backend.strategy(name).drop()
            with suppress(IcefieldError):
                made = strategy.commit(pointer, proposal)
                assert isinstance(made, Conflict), (
                    f"a commit to a table that is {'renamed' if is_renamed else 'dropped'}"
                )
            revived = current_of(backend.strategy(name)) is not None or name in backend.list_tables(("a",)).items
            assert not revived, f"a late commit revives a table that was {'renamed' if is_renamed else 'dropped'}"
        if isinstance(backend, ViewCatalog):
            base = self._new_view(backend, _VIEW)
            backend.drop_view(_VIEW)
            with suppress(IcefieldError):
                late = backend.commit_view(_VIEW, base, self._view_change(base, "late"))
                assert late is None, "a change of a view that was dropped is said to be made"
            assert backend.load_view(_VIEW) is None, "a late change revives a view that was dropped"

    def test_a_table_is_created_in_a_namespace_only(self, backend: CatalogBackend) -> None:
        """If this fails, a table is created in a namespace that is missing, or that was dropped meanwhile, and no
        listing leads to it: look for the namespace in the step that writes the name, or let the table make it."""
        for space in (("dropped",), ("missing",)):
            backend.create_namespace(space, {})
            name = (*space, "t")
            proposal = self._table_creation(backend, name)
            strategy = backend.strategy(name, proposal.metadata.location)
            backend.drop_namespace(space)
            if space == ("missing",):
                strategy = backend.strategy(name, proposal.metadata.location)
            error: Exception | None = None
            try:
                made = strategy.commit(None, proposal)
            except IcefieldError as raised:
                error = raised
            is_made = error is None and not isinstance(made, Conflict)
            is_there = current_of(backend.strategy(name)) is not None
            assert is_there == is_made, f"a table in a {space[0]} namespace is there: {is_there}, said: {error or made}"
            if is_there:
                listed = space in self.namespaces(backend) and name in backend.list_tables(space).items
                assert listed, f"a table was created in a {space[0]} namespace, and no listing leads to it"

    # -- files of refused changes

    def test_a_refused_change_leaves_no_file(self, backend: CatalogBackend) -> None:
        """If this fails, a change of a table, of several tables or of a view writes its metadata file, is refused, and
        leaves the file to nobody: delete it after a ``Conflict`` and every error that is sure, and only then."""
        self._two_tables(backend)
        taken, other = TABLES
        stale = [self._table_change(backend, name, {"by": "me"}) for name in (other, taken)]
        self._evolve(backend, taken)
        io = self._io(backend, taken)
        places = [self._metadata_of(backend, name).location for name in TABLES]
        before = self._files(io, *places)
        self._is_refused(lambda: backend.strategy(taken).commit(stale[1].base, stale[1].proposal))
        self._left(io, before, "a change of a table on an old base", *places)
        if isinstance(backend, MultiTableCatalog):
            self._is_refused(lambda: backend.commit_tables(stale))
            self._left(io, before, "a change of several tables", *places)
        if isinstance(backend, ViewCatalog):
            self._new_view(backend, _VIEW)
            self._refuses_views(backend)

    def test_a_table_that_is_refused_its_name_leaves_no_file(self, backend: CatalogBackend) -> None:
        """If this fails, the name of a new table belongs to another or to a view, or its namespace is gone, and the
        metadata file of the refused creation is left: delete it after every error that is sure."""
        backend.create_namespace(("a",), {})
        self.create_table(backend, TABLES[0])
        io = self._io(backend, TABLES[0])
        refused = {TABLES[0]: "the creation of a table over another"}
        if isinstance(backend, ViewCatalog):
            self._new_view(backend, _VIEW)
            refused[_VIEW] = "the creation of a table over a view"
        backend.create_namespace(("gone",), {})
        refused["gone", "t"] = "the creation of a table in a namespace that is dropped"
        for name, what in refused.items():
            location = backend.table_location(("a", "new"))
            try:
                strategy = backend.strategy(name, location)
            except IcefieldError:  # the catalog chooses the location by the name
                location = backend.table_location(name)
                strategy = backend.strategy(name, location)
            metadata = new_table_metadata(SCHEMA, location=location, properties={})
            if name[:-1] == ("gone",):
                backend.drop_namespace(name[:-1])
            before = self._files(io, location)
            with suppress(IcefieldError):
                if isinstance(strategy.commit(None, creation_of(metadata)), Committed):
                    assert name[:-1] == ("gone",), f"{what} is not refused"  # the table may make its namespace
                    continue
            self._left(io, before, what, location)

    def test_several_tables_lose_their_old_metadata_files_where_a_property_says_so(
        self, backend: CatalogBackend
    ) -> None:
        """If this fails, ``commit_tables`` ignores ``write.metadata.delete-after-commit.enabled``, and old metadata
        files stay for ever: call ``MetastoreStrategy.delete_old`` for each table after the swap."""
        if not isinstance(backend, MultiTableCatalog) or isinstance(backend, ServedCatalog):
            pytest.skip("the catalog does not commit several tables itself")
        self._two_tables(backend)
        first = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
        old: dict[TableName, list[str]] = {name: [] for name in TABLES}
        for values in (first, {"n": "1"}, {"n": "2"}, {"n": "3"}):
            for name, before in old.items():
                before.append(self._loaded(backend, name)[0].location)
            Catalog(backend).commit_tables([(name, [SetProperties(values)], ()) for name in TABLES])
        for name, (*gone, kept) in old.items():
            there = self._files(self._io(backend, name), kept.rpartition("/")[0])
            left = [each for each in gone if each in there]
            assert not left, f"{len(left)} of {len(gone)} old metadata files of {'.'.join(name)} are left"
            assert kept in there, "a metadata file is deleted that the log of the table names"

    def _refuses_views(self, backend: ViewCatalog) -> None:
        """Create a view over another, and change it on an old base."""
        base = self._loaded_view(backend, _VIEW)
        stale = self._view_change(base, "late")
        assert backend.commit_view(_VIEW, base, self._view_change(base, "first")) is not None
        creation = self._view_creation(backend, _VIEW)
        places = [base.metadata.location, creation.metadata.location]
        before = self._files(backend.io, *places)
        self._is_refused(lambda: backend.commit_view(_VIEW, None, creation))
        self._left(backend.io, before, "the creation of a view over another", *places)
        with suppress(IcefieldError):
            if backend.commit_view(_VIEW, base, stale) is not None:
                before = self._files(backend.io, *places)  # a service may apply a change to a later version
        self._left(backend.io, before, "a change of a view", *places)

    # -- helpers

    def _is_refused(self, change: Callable[[], object]) -> None:
        with suppress(IcefieldError):
            made = change()
            assert made is None or isinstance(made, Conflict), f"a change that must be refused gives {made!r}"

    def _io(self, backend: CatalogBackend, table: TableName) -> FileIO:
        """The file IO of a table, with the credentials that the catalog hands out for it."""
        current = current_of(backend.strategy(table))
        assert current is not None
        return backend.io.for_table(None, current.properties, current.access)

    def _files(self, io: FileIO, *folders: str) -> set[str]:
        """The files below the folders."""
        found: set[str] = set()
        for folder in folders:
            system = io.storage(folder)
            if FileSystemAbility.LIST not in system.abilities:
                pytest.skip(f"{folder} cannot be listed")
            try:
                found |= {info.location for info in system.list_files(folder)}
            except AccessDenied as error:
                pytest.skip(f"the catalog gives no access to {folder}: {error}")
        return found

    def _left(self, io: FileIO, before: set[str], what: str, *folders: str) -> None:
        left = sorted(self._files(io, *folders) - before)
        assert not left, f"{what} is refused, and {len(left)} files are left: {', '.join(left)}"
