"""Refuses files in folders that several tables may use, before they are added to a table."""

from __future__ import annotations

from collections.abc import Iterable

from icefield import FileIO
from icefield.engine import folder_of, metadata_of_another, owned_only
from icefield.errors import InvalidArgument
from icefield.metadata import TableMetadata
from icefield.storage import LocationProvider, tables_noted


def refuse_shared_files(io: FileIO, metadata: TableMetadata, locations: Iterable[str]) -> None:
    """Refuse to add files that maintenance could later not tell from files that the table wrote itself.

    They are in a folder of data outside of the table's location, which tables may share, or in a location that another
    table has, too. Files elsewhere, outside of the table's folders, are known not to be the table's own.
    """
    if not owned_only(io, metadata):
        return
    location, stated = metadata.location.rstrip("/"), LocationProvider.from_metadata(metadata).data_folder
    home, data = (f"{folder_of(io, f'{each}/-')}/" for each in (location, stated))
    found = {f"{folder_of(io, each)}/": each for each in locations}
    is_inside = stated.startswith(f"{location}/") or data.startswith(home)
    shared = None if is_inside else next((at for each, at in found.items() if each.startswith(data)), None)
    at_home = next((at for each, at in found.items() if each.startswith(home)), None)
    if shared is None and at_home is not None:
        other = metadata_of_another(io.storage(location), location, metadata.table_uuid)
        shared = None if other is None else at_home
    if shared is None and is_inside and tables_noted(io, None, stated, metadata.table_uuid):
        shared = next((at for each, at in found.items() if each.startswith(data)), None)
    if shared is not None:
        raise InvalidArgument(
            f"{shared} is in a folder that other tables may use, and expiry would later delete it as a file of this "
            "table: append its rows instead, or copy it. Where no other table needs it, say so by the catalog's "
            "property location.owned-only=false",
            location=shared,
        )
