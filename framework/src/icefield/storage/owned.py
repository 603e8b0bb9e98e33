"""The files that one table owns: below its folders, and below no folder of another table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icefield.metadata import TableMetadata
from icefield.storage.file_io import FileIO
from icefield.storage.locations import LocationProvider
from icefield.storage.places import HashedLocations


class OwnedFiles:
    """Selects the files below one of the folders ``below`` and below none of ``others``, however they are spelled.

    Folders of ``below`` count only if they are deeper than one of ``within``.
    """

    def __init__(self, io: FileIO, below: Iterable[str], within: Iterable[str], others: Iterable[str] = ()) -> None:
        self._places = HashedLocations(io, "", follows_links=True)
        roots = set(map(self._folder, within))
        deep = {folder for each in below for folder in [self._folder(each)] if _is_deeper(folder, roots)}
        self.below = tuple(sorted(deep))
        """The folders that count, in canonical form."""
        self._others = sorted(map(self._folder, others))

    def of(self, locations: Sequence[str]) -> list[str]:
        """The owned files among ``locations``."""
        if not locations:
            return []
        places = self._places.column(pa.array(locations, pa.string()))
        owned = _any_starts(places, self.below)
        if pc.any(owned).as_py():
            owned = pc.and_not(owned, _any_starts(places, self._others))
        found: list[str] = pa.array(locations, pa.string()).filter(owned).to_pylist()
        return found

    def _folder(self, location: str) -> str:
        return self._places.place(location.rstrip("/") + "/x")[:-1]


def folders_of(metadata: TableMetadata) -> tuple[str, ...]:
    """The folders for a table's files by its own metadata: its location, and its folders of data and metadata."""
    placed = LocationProvider.from_metadata(metadata)
    return metadata.location, placed.data_folder, placed.metadata_folder


def _is_deeper(folder: str, roots: set[str]) -> bool:
    return any(folder != root and folder.startswith(root) for root in roots)


def _any_starts(places: pa.StringArray, folders: Sequence[str]) -> pa.BooleanArray:
    found = pa.repeat(pa.scalar(False), len(places))
    for folder in folders:
        found = pc.or_(found, pc.starts_with(places, folder))
    return found
