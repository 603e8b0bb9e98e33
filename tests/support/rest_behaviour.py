"""Catalogs of the REST server in another process, for the suites of the kit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from icefield import Catalog, load_catalog
from icefield_testing.behaviour.base import BehaviourChecks
from icefield_testing.behaviour.creation import CreationChecks
from icefield_testing.behaviour.files import FileChecks
from icefield_testing.behaviour.names import NameChecks
from icefield_testing.behaviour.namespaces import NamespaceChecks
from rest_judged import judgement
from rest_process import serving


class Served(BehaviourChecks):
    """Checks of behaviour through a server. Give a fixture ``behind``: the properties of the catalog behind it.

    The OpenAPI description of the protocol judges every request of every client, also of other processes.
    """

    @pytest.fixture(scope="class")
    @classmethod
    def behind(cls) -> dict[str, str]:
        raise pytest.UsageError("give a fixture `behind`")

    @pytest.fixture(scope="class")
    @classmethod
    def service(cls, behind: dict[str, str]) -> Iterator[str]:
        """The address of a server that the tests share; each test works in its own namespaces."""
        with serving(behind, judged=True) as uri:
            yield uri
            judgement(uri)

    @pytest.fixture(autouse=True)
    def more_services(self, behind: dict[str, str]) -> Iterator[None]:
        with ExitStack() as self.stack:
            self.properties_behind = behind
            yield

    @pytest.fixture
    def catalog(self, service: str) -> Iterator[Catalog]:
        with load_catalog("test", type="rest", uri=service) as catalog:
            yield catalog

    def another(self, catalog: Catalog, **properties: str) -> Catalog:
        """Open the catalog again. With a location map, start a server with the map, as it reads and writes metadata."""
        maps = {key: value for key, value in properties.items() if key.startswith("location.map.")}
        if maps:
            properties["uri"] = self.stack.enter_context(serving({**self.properties_behind, **maps}))
        return super().another(catalog, **properties)


class AsksTheCatalog(NamespaceChecks, CreationChecks, NameChecks, FileChecks):
    """The checks that depend on the catalog behind the server; changes of tables are the same over every catalog."""
