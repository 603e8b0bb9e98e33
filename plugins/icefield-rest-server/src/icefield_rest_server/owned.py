"""The files that the server deletes for a client: the table's own files, not other files named by its manifests."""

from __future__ import annotations

import time

from icefield.metadata import TableMetadata

from icefield_rest_server.answers import Refused
from icefield_rest_server.owned_folders import OwnedFiles
from icefield_rest_server.places import stated_folders
from icefield_rest_server.state import State

Name = tuple[str, ...]


def owned_files(state: State, name: Name, metadata: TableMetadata) -> OwnedFiles:
    """Return the files that a table owns. Raises ``Refused`` where they are not determined in time.

    Only folders below the location of the table's namespace and below ``Settings.owned_folders`` count; without an
    authorizer, folders below the warehouse count, too. Files below a folder of another table belong to that table.
    """
    home, settings = state.places.home(name[:-1]), state.settings
    own = [] if home is None else [home]
    within = [*own, *settings.owned_folders]
    warehouse = state.catalog.properties.get("warehouse", "")
    if settings.authorizer is None and "://" in warehouse:
        within.append(warehouse)
    io = state.catalog.io.relative_to(metadata.location)
    stated = stated_folders(metadata)
    owned = OwnedFiles(io, stated, within)
    near = OwnedFiles(io, stated, own).below == owned.below
    end = time.monotonic() + settings.max_seconds / 2
    others: set[str] = set()
    for folders in state.places.taken_from(name, metadata, near=near):
        others.update(folders)
        if time.monotonic() > end:
            message = "there are too many tables to find out in time which files are this one's own: drop it without"
            raise Refused(503, "ServiceUnavailableException", f"{message} purging; nothing was done")
    return OwnedFiles(io, stated, within, others)
