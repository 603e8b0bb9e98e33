"""Opening a catalog by its name, and a table by its metadata file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icefield.abc import ServedCatalog
from icefield.catalog.catalog import Catalog, Location, metadata_at
from icefield.catalog.config import (
    backend_class,
    catalog_properties,
    check_names,
    configured_catalogs,
    default_catalog_name,
)
from icefield.catalog.table import Table
from icefield.commit import TableHandle, TableState
from icefield.errors import InvalidArgument
from icefield.metadata.properties import property_strings
from icefield.plugins import Plugins
from icefield.storage import FileIO, given_location, local_path, scheme_of
from icefield.toolkit.authority import add_named, split_location


def load_catalog(name: str | None = None, *, plugins: Plugins | None = None, **properties: Any) -> Catalog:
    """A catalog by its name, from arguments, the environment and ``icefield.toml`` (in this order).

    ``type`` selects the catalog backend. Without ``type``, the scheme of ``uri`` selects it, as plugins declare. With
    only a ``warehouse`` the backend is ``directory``. A relative ``warehouse`` is made absolute. Raises
    ``MissingPlugin`` for a type or scheme without a plugin, ``LocationRefused`` for a ``warehouse`` on another
    machine's disk.
    """
    called = name or default_catalog_name()
    found = catalog_properties(called, properties, plugins=plugins)
    check_names(found)
    plugins = _plugins(plugins, found)
    backend = backend_class(found, plugins)
    if backend is None:
        raise InvalidArgument(
            f"nothing is known of catalog '{called}': give type=... (such as 'directory') with its "
            "properties, or configure it in icefield.toml"
            + (f"; configured are: {', '.join(known)}" if (known := configured_catalogs()) else "")
        )
    if not issubclass(backend, ServedCatalog) and found.get("warehouse"):
        check = local_path if scheme_of(found["warehouse"]) == "file" else split_location
        check(found["warehouse"])  # refuses an invalid location before anything is written
    io = FileIO(plugins, found, catalog=called)
    io.listeners.check_names()
    return Catalog(backend(called, found, io))


def _plugins(given: Plugins | None, properties: Mapping[str, str]) -> Plugins:
    """The given plugins, else the installed plugins with the preferences in the properties."""
    if given is None:
        given = Plugins.configured(properties)
    given.check_preferences()
    return given


def open_table(
    metadata_location: Location, properties: Mapping[str, Any] | None = None, *, plugins: Plugins | None = None
) -> Table:
    """A read-only table from its metadata file, without a catalog.

    ``properties`` are catalog properties, such as ``location.map.<prefix>`` for a table that was moved, or credentials
    for the host or account in the location. Raises ``FileMissing``, ``InvalidMetadata``, and ``NoSuchTable`` for the
    tombstone of a dropped table.
    """
    location = given_location(metadata_location)
    found = property_strings(properties or {})
    check_names(found)
    io = FileIO(_plugins(plugins, found), add_named(found, location))
    state = TableState.at(location, metadata_at(io, location))
    return Table(TableHandle((state.metadata.location.rpartition("/")[2] or "table",), io), state)
