"""The base of the checks of a catalog: a backend, and tables to test it with."""

from __future__ import annotations

import pytest
from icefield.abc import CatalogBackend, Committed, TableName
from icefield.commit import creation_of, current_of
from icefield.metadata import TableMetadata, decode_metadata, new_table_metadata
from icefield.schema import Schema
from icefield.types import LongType, NestedField

from icefield_testing.base import Suite

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True))


class CatalogChecks(Suite):
    """A group of checks of ``icefield.abc.CatalogBackend``."""

    def another(self, backend: CatalogBackend) -> CatalogBackend:
        """The same catalog as another process would open it."""
        return type(backend)(backend.name, backend.properties, backend.io)

    @pytest.fixture
    def backend(self) -> CatalogBackend:
        """A backend that is empty, except for objects that the store itself creates."""
        raise pytest.UsageError("give a fixture `backend` that returns an empty backend")

    def create_table(self, backend: CatalogBackend, name: TableName) -> None:
        """Create a table of one column."""
        location = backend.table_location(name)
        metadata = new_table_metadata(SCHEMA, location=location, properties={})
        assert isinstance(backend.strategy(name, location).commit(None, creation_of(metadata)), Committed)

    def _metadata_of(self, backend: CatalogBackend, name: TableName) -> TableMetadata:
        """The current metadata of a table."""
        current = current_of(backend.strategy(name))
        assert current is not None, f"there is no table {'.'.join(name)}"
        if current.metadata is not None:
            return current.metadata
        location = current.pointer.location
        return decode_metadata(backend.io.read_metadata(location), location)
