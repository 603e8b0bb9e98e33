"""The base of the checks of a catalog: a backend, and tables to test it with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import pytest
from icefield.abc import CatalogBackend, Committed, NamespaceName, Pointer, Proposal, TableName
from icefield.commit import creation_of, current_of
from icefield.metadata import TableMetadata, decode_metadata, new_table_metadata
from icefield.schema import Schema
from icefield.types import LongType, NestedField

from icefield_testing.base import Suite
from icefield_testing.service_faults import RequestFaults

RACERS = 8
SCHEMA = Schema(NestedField(1, "id", LongType(), required=True))
_SOON: Final = {
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "20",
    "commit.retry.total-timeout-ms": "20000",
    "commit.status-check.min-wait-ms": "1",
    "commit.status-check.max-wait-ms": "20",
}
"""Properties of the tables: a catalog or a service that retries waits only a little, and gives up soon."""


class CatalogChecks(Suite):
    """A group of checks of ``icefield.abc.CatalogBackend``."""

    namespaces_of_the_store: ClassVar[frozenset[NamespaceName]] = frozenset()
    """Namespaces that the store has from the start and that cannot be dropped."""

    properties_of_the_store: ClassVar[frozenset[str]] = frozenset()
    """Properties that the store gives every namespace, such as its location."""

    listing_page: ClassVar[int] = 100
    """The largest number of names in one page of the store; a check makes two more namespaces."""

    credentials: ClassVar[Sequence[Mapping[str, str]]] = ()
    """The ways to give credentials, each as the properties that belong together, such as
    ``({"my.user": "me", "my.password": "{secret}"},)``. The kit puts a secret in place of ``{secret}``, and searches
    for it. The service may refuse the secret, or be out of reach."""

    hold_seconds: ClassVar[float] = 0.2
    """The most seconds for which a request is held up while a rival acts; the rival may have to wait for a lock."""

    time_out_properties: ClassVar[Mapping[str, str]] = {}
    """Properties with which the catalog waits a second or so for the answer of its service, and repeats little. Without
    them, a service that never answers is not tried."""

    silence_seconds: ClassVar[float] = 15.0
    """The longest time that a call may take, with ``time_out_properties``, when the service never answers."""

    locks_expire: ClassVar[bool] = False
    """Whether a lock whose release is lost stays until it expires. If so, no next writer of the name is tried."""

    namespaces_read_by_rows: ClassVar[bool] = False
    """Whether the store's database may return a namespace partly before and partly after a change that is one
    transaction, as Apache Derby does below a Hive Metastore. If so, a namespace seen by halves is no fault."""

    unconditional_namespaces: ClassVar[bool] = False
    """Whether the store itself changes and deletes a namespace without any condition, as AWS Glue does. If so, a change
    beside another one of the same namespace, or a table that is created in a dropped one, may be lost, and these checks
    are left out. The plugin's page must say so."""

    @pytest.fixture
    def service(self) -> RequestFaults | None:
        """An object that can lose the catalog's requests to a service, such as a ``LossyProxy``; None skips checks."""
        return None

    def backend_through(self, service: RequestFaults, backend: CatalogBackend) -> CatalogBackend:
        """The same catalog with its requests sent through ``service``. By default, all requests already are."""
        return self.another(backend)

    def another(self, backend: CatalogBackend) -> CatalogBackend:
        """The same catalog as another process would open it."""
        return type(backend)(backend.name, backend.properties, backend.io)

    @pytest.fixture
    def backend(self) -> CatalogBackend:
        """A backend that is empty, except for objects that the store itself creates."""
        raise pytest.UsageError("give a fixture `backend` that returns an empty backend")

    def namespaces(self, backend: CatalogBackend) -> tuple[NamespaceName, ...]:
        """The top-level namespaces, except for the store's own."""
        return tuple(name for name in backend.list_namespaces(()).items if name not in self.namespaces_of_the_store)

    def properties(self, backend: CatalogBackend, namespace: NamespaceName) -> dict[str, str]:
        """The properties of a namespace, except for the properties that the store gives to every namespace."""
        found = backend.namespace_properties(namespace)
        assert found.keys() >= self.properties_of_the_store, "a property of the store is missing"
        return {key: value for key, value in found.items() if key not in self.properties_of_the_store}

    def create_table(self, backend: CatalogBackend, name: TableName) -> None:
        """Create a table of one column."""
        proposal = self._table_creation(backend, name)
        assert isinstance(backend.strategy(name, proposal.metadata.location).commit(None, proposal), Committed)

    def _table_creation(self, backend: CatalogBackend, name: TableName) -> Proposal:
        """The creation of a table of one column, at the location that the catalog gives to the name."""
        return creation_of(new_table_metadata(SCHEMA, location=backend.table_location(name), properties=_SOON))

    def _metadata_of(self, backend: CatalogBackend, name: TableName) -> TableMetadata:
        """The current metadata of a table."""
        return self._loaded(backend, name)[1]

    def _metadata_or_none(self, backend: CatalogBackend, name: TableName) -> TableMetadata | None:
        """The current metadata of a table; None if there is no table."""
        found = self._loaded_or_none(backend, name)
        return None if found is None else found[1]

    def _loaded(self, backend: CatalogBackend, name: TableName) -> tuple[Pointer, TableMetadata]:
        """The current pointer of a table, and its metadata."""
        found = self._loaded_or_none(backend, name)
        assert found is not None, f"there is no table {'.'.join(name)}"
        return found

    def _loaded_or_none(self, backend: CatalogBackend, name: TableName) -> tuple[Pointer, TableMetadata] | None:
        current = current_of(backend.strategy(name))
        if current is None:
            return None
        location = current.pointer.location
        return current.pointer, current.metadata or decode_metadata(backend.io.read_metadata(location), location)
