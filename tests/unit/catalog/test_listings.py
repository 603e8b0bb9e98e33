"""Listings are read page by page, to their end."""

from __future__ import annotations

import pytest
from bounded import bounded
from icefield.abc import CatalogAbility, CatalogBackend, Page
from icefield.catalog import Catalog
from icefield.errors import InvalidArgument, InvalidMetadata
from icefield.plugins import Plugins
from icefield.storage import FileIO
from tables import memory_catalog


class _Paged(CatalogBackend):
    """A backend that lists two at a time."""

    def _page(self, names, token):
        start = int(token or 0)
        more = start + 2 < len(names)
        return Page(tuple(names[start : start + 2]), str(start + 2) if more else None)

    def list_namespaces(self, parent, *, token=None, size=None):
        return self._page([(*parent, str(n)) for n in range(5)], token)

    def list_tables(self, namespace, *, token=None, size=None):
        return self._page([(*namespace, str(n)) for n in range(4)], token)

    create_namespace = drop_namespace = namespace_properties = update_namespace_properties = None  # type: ignore
    table_location = strategy = None  # type: ignore


def test_listings_are_read_page_by_page():
    catalog = Catalog(_Paged("x", {}, FileIO(Plugins())))
    assert [name[-1] for name in catalog.list_namespaces()] == ["0", "1", "2", "3", "4"]
    assert [name[-1] for name in catalog.list_tables("db")] == ["0", "1", "2", "3"]
    with pytest.raises(InvalidArgument, match="nested"):
        catalog.list_tables("a.b")


class _AsTheServiceSays(_Paged):
    """A backend whose abilities depend on its properties."""

    @property
    def abilities(self):
        return frozenset({CatalogAbility.NESTED_NAMESPACES} if self.properties.get("levels") == "many" else ())


def test_abilities_are_asked_of_the_instance():
    catalog = Catalog(_AsTheServiceSays("x", {"levels": "many"}, FileIO(Plugins())))
    assert [name[-1] for name in catalog.list_tables("a.b")] == ["0", "1", "2", "3"]
    with pytest.raises(InvalidArgument, match="nested"):
        Catalog(_AsTheServiceSays("x", {}, FileIO(Plugins()))).list_tables("a.b")


@pytest.mark.slow
@pytest.mark.parametrize("names", [(), (("db", "t"),) * 1000, (("db", "x" * 60_000),) * 100])
def test_a_listing_whose_pages_do_not_end_is_one_error(names, monkeypatch):
    catalog = memory_catalog()
    for listing in ("list_tables", "list_namespaces"):
        monkeypatch.setattr(type(catalog.backend), listing, lambda *_, **__: Page(names, "again"))
    with bounded(20), pytest.raises(InvalidMetadata, match=r"the tables of db in catalog '\w+' do not end"):
        catalog.list_tables("db")
    with bounded(20), pytest.raises(InvalidMetadata, match=r"the namespaces of catalog '\w+' do not end"):
        catalog.list_namespaces()
