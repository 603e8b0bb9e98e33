"""A selection of files by folders, however their locations are spelled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from icefield import FileIO
from icefield.storage import HashedLocations


class OwnedFiles:
    """Selects the files below one of the folders ``below`` and below none of ``others``, however they are spelled.

    Folders of ``below`` count only if they are deeper than one of ``within``.
    """

    def __init__(self, io: FileIO, below: Iterable[str], within: Iterable[str], others: Iterable[str] = ()) -> None:
        self._places = HashedLocations(io, "", follows_links=True)
        roots, folders = set(map(self._folder, within)), set(map(self._folder, below))
        deep = {each for each in folders if any(each != root and each.startswith(root) for root in roots)}
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


def _any_starts(places: pa.StringArray, folders: Sequence[str]) -> pa.BooleanArray:
    found = pa.repeat(pa.scalar(False), len(places))
    for folder in folders:
        found = pc.or_(found, pc.starts_with(places, folder))
    return found
