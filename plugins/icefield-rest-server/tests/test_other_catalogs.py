"""The server before catalogs that can do less than ``sql``: directories, and a Hive Metastore."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from catalogs import properties_of
from icefield import Catalog, FileIO, Plugins, Table
from icefield.abc import CatalogAbility
from icefield.errors import NotSupportedByCatalog
from icefield_rest.backend import RestBackend
from rest_behaviour import AsksTheCatalog, Served


@pytest.mark.soak
@pytest.mark.slow
class TestOverADirectory(Served, AsksTheCatalog):
    @pytest.fixture(scope="class")
    @classmethod
    def behind(cls, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
        return properties_of("create", tmp_path_factory.mktemp("served"))

    def is_metastore(self, catalog: Catalog) -> bool:
        return False  # though the service's client does not see it

    def _check_refused(self, catalog: Catalog, table: Table, properties: Mapping[str, str]) -> None:
        for change in (
            lambda: table.set_properties(properties),
            lambda: self.create(catalog, f"{table.name()[0]}.refused", **properties),
        ):
            with pytest.raises(NotSupportedByCatalog, match=r"write\.metadata\."):  # the service's own refusal
                change()
        assert self.held_again(catalog, table).metadata == table.metadata
        assert catalog.list_tables(table.name()[0]) == [table.name()]


class _Flat(RestBackend):
    """The client, told what the protocol cannot say: that namespaces have one level."""

    @property
    def abilities(self) -> frozenset[CatalogAbility]:
        return super().abilities - {CatalogAbility.NESTED_NAMESPACES}


@pytest.mark.soak
@pytest.mark.slow
class TestOverHive(Served, AsksTheCatalog):
    @pytest.fixture(scope="class")
    @classmethod
    def behind(cls, hive: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
        return {"type": "hive", "uri": hive, "warehouse": f"file://{tmp_path_factory.mktemp('served')}/warehouse"}

    @pytest.fixture
    def catalog(self, service: str) -> Iterator[Catalog]:
        properties = {"uri": service}
        with Catalog(_Flat("test", properties, FileIO(Plugins.installed(), properties))) as catalog:
            yield catalog
