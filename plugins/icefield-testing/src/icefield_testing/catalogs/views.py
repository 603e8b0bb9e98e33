"""Checks of the views of a catalog."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from icefield import Catalog
from icefield.abc import CatalogAbility, CatalogBackend, Conflict, CurrentView, TableName, ViewCatalog, ViewProposal
from icefield.errors import NoSuchNamespace, NoSuchView, NotSupportedByCatalog, TableExists, ViewExists
from icefield.metadata import (
    SetViewProperties,
    ViewRepresentation,
    ViewVersion,
    apply_view_updates,
    new_view_metadata,
    view_creation_updates,
)

from icefield_testing.catalogs.base import SCHEMA, CatalogChecks

_VIEW: TableName = ("a", "v")


class ViewChecks(CatalogChecks):
    """Checks of views, for a ``ViewCatalog``."""

    def test_a_created_view_is_listed_and_loads_or_is_refused(self, backend: CatalogBackend) -> None:
        """If this fails, look at ``commit_view`` without a base, ``list_views`` and ``load_view``."""
        backend.create_namespace(("a",), {})
        if not isinstance(backend, ViewCatalog):
            own = ViewCatalog.__abstractmethods__ - CatalogBackend.__abstractmethods__
            assert not {name for name in own if hasattr(backend, name)}, "nothing calls these: subclass ViewCatalog"
            with pytest.raises(NotSupportedByCatalog):
                Catalog(backend).list_views(("a",))
            return
        backend.create_namespace(("b",), {})
        assert backend.load_view(_VIEW) is None
        created = self._new_view(backend, _VIEW)
        found = self._loaded_view(self.another(backend), _VIEW)
        assert found.metadata.view_uuid == created.metadata.view_uuid
        assert found.metadata.current_version().sql == {"spark": "SELECT 1 AS id"}
        assert backend.list_views(("a",)).items == (_VIEW,)
        assert backend.list_views(("b",)).items == ()
        assert backend.list_tables(("a",)).items == (), "a view is no table"

    def test_a_view_takes_no_name_that_is_taken(self, backend: CatalogBackend) -> None:
        """If this fails, creating a view replaces a view or a table of its name."""
        backend = self._with_views(backend)
        backend.create_namespace(("a",), {})
        created = self._new_view(backend, _VIEW)
        try:
            again = backend.commit_view(_VIEW, None, self._view_creation(backend, _VIEW))
        except ViewExists:
            again = None  # either says that another came first
        assert again is None, "a view was created over another"
        assert self._loaded_view(backend, _VIEW).metadata.view_uuid == created.metadata.view_uuid
        self.create_table(backend, ("a", "t"))
        with pytest.raises(TableExists):
            backend.commit_view(("a", "t"), None, self._view_creation(backend, ("a", "t")))
        assert backend.list_tables(("a",)).items == (("a", "t"),)

    def test_a_table_takes_no_name_of_a_view(self, backend: CatalogBackend) -> None:
        """If this fails, creating or renaming a table, or renaming a view, gives one name to a table and a view."""
        backend = self._with_views(backend)
        backend.create_namespace(("a",), {})
        self._new_view(backend, _VIEW)
        proposal = self._table_creation(backend, _VIEW)
        with suppress(TableExists, ViewExists):  # either says that the name is taken
            made = backend.strategy(_VIEW, proposal.metadata.location).commit(None, proposal)
            assert isinstance(made, Conflict), "a table was created over a view"
        self.create_table(backend, ("a", "t"))
        if CatalogAbility.RENAME in backend.abilities:
            with pytest.raises((TableExists, ViewExists)):
                backend.rename_table(("a", "t"), _VIEW)
        with pytest.raises((TableExists, ViewExists)):
            backend.rename_view(_VIEW, ("a", "t"))
        assert backend.list_tables(("a",)).items == (("a", "t"),)
        assert backend.list_views(("a",)).items == (_VIEW,)

    def test_a_view_is_created_in_a_namespace_only(self, backend: CatalogBackend) -> None:
        """If this fails, ``commit_view`` does not look for the namespace."""
        backend = self._with_views(backend)
        backend.create_namespace(("a",), {})
        with pytest.raises(NoSuchNamespace):
            backend.commit_view(("no", "v"), None, self._view_creation(backend, _VIEW))

    def test_no_change_of_a_view_is_lost(self, backend: CatalogBackend) -> None:
        """If this fails, ``commit_view`` replaces the view whatever its current version is."""
        backend = self._with_views(backend)
        backend.create_namespace(("a",), {})
        base = self._new_view(backend, _VIEW)
        assert backend.commit_view(_VIEW, base, self._view_change(base, "first")) is not None
        late = backend.commit_view(_VIEW, base, self._view_change(base, "second"))
        properties = self._loaded_view(backend, _VIEW).metadata.properties
        assert properties.get("first") == "1", "a change on an old version undid the one that came before"
        assert (properties.get("second") == "1") == (late is not None), "what is said of a change is not so"

    def test_a_view_is_renamed_and_dropped(self, backend: CatalogBackend) -> None:
        """If this fails, look at ``rename_view`` and ``drop_view``: the old name goes, and nothing is replaced."""
        backend = self._with_views(backend)
        backend.create_namespace(("a",), {})
        backend.create_namespace(("b",), {})
        uuid = self._new_view(backend, _VIEW).metadata.view_uuid
        self._new_view(backend, ("a", "other"))
        with pytest.raises(ViewExists):
            backend.rename_view(_VIEW, ("a", "other"))
        with pytest.raises(NoSuchView):
            backend.rename_view(("a", "no"), ("a", "w"))
        with pytest.raises(NoSuchNamespace):
            backend.rename_view(_VIEW, ("no", "v"))
        backend.rename_view(_VIEW, ("b", "w"))
        assert backend.load_view(_VIEW) is None
        assert self._loaded_view(backend, ("b", "w")).metadata.view_uuid == uuid
        assert backend.list_views(("a",)).items == (("a", "other"),)
        backend.drop_view(("b", "w"))
        assert backend.load_view(("b", "w")) is None
        assert backend.list_views(("b",)).items == ()
        with pytest.raises(NoSuchView):
            backend.drop_view(("b", "w"))

    def _with_views(self, backend: CatalogBackend) -> ViewCatalog:
        if not isinstance(backend, ViewCatalog):
            pytest.skip("the backend is no ViewCatalog")
        return backend

    def _view_creation(self, backend: CatalogBackend, view: TableName) -> ViewProposal:
        query = ViewRepresentation("sql", "SELECT 1 AS id", "spark")
        version = ViewVersion(1, time.time_ns() // 1_000_000, 0, {"engine-name": "kit"}, (query,), ("a",))
        metadata = new_view_metadata(SCHEMA, version, backend.table_location(view))
        return ViewProposal(metadata, view_creation_updates(metadata))

    def _new_view(self, backend: ViewCatalog, view: TableName) -> CurrentView:
        created = backend.commit_view(view, None, self._view_creation(backend, view))
        assert created is not None, "nobody else was there"
        return created

    def _loaded_view(self, backend: CatalogBackend, view: TableName) -> CurrentView:
        assert isinstance(backend, ViewCatalog)
        found = backend.load_view(view)
        assert found is not None, f"there is no view {'.'.join(view)}"
        return found

    def _view_change(self, base: CurrentView, key: str) -> ViewProposal:
        updates = (SetViewProperties({key: "1"}),)
        return ViewProposal(apply_view_updates(base.metadata, updates), updates)
