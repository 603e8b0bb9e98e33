"""The locations below which a server opens files for its clients."""

from __future__ import annotations

from icefield import Catalog
from icefield.abc import ServedCatalog
from icefield.errors import InvalidArgument, UnsafeCommit

from icefield_rest_server.settings import Settings


def limit_to_roots(catalog: Catalog, settings: Settings) -> None:
    """Restrict a catalog to files in its warehouse and in ``Settings.owned_folders``.

    Does so only with an authenticator or authorizer, and if the catalog states no roots. Raises ``UnsafeCommit`` where
    its warehouse is no location.
    """
    if (settings.authenticator is None and settings.authorizer is None) or catalog.io.has_roots:
        return
    warehouse = None if isinstance(catalog.backend, ServedCatalog) else catalog.properties.get("warehouse")
    try:
        catalog.io.limit_to([] if warehouse is None else [warehouse, *settings.owned_folders])
    except InvalidArgument as error:
        raise UnsafeCommit(
            f"catalog '{catalog.name}' states no warehouse that is a location, so that the server would open any file "
            "for its clients: give location.allowed-roots, a list of the locations below which files may be opened"
        ) from error
