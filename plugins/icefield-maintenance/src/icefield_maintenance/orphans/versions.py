"""Which metadata files are versions of a table, though it names only the last of them."""

from __future__ import annotations

from collections.abc import Callable

from icefield.errors import IcefieldError
from icefield.metadata import TableMetadata, decode_metadata, inflated
from icefield.storage import FileIO
from icefield.toolkit import version_of
from icefield.toolkit.table_folders import is_damaged, is_of_another


class Versions:
    """The metadata files that a version names, and those that these name, as far back as they can be read.

    The id in a metadata file does not tell: whoever copies a table copies its id. ``place_of`` gives one string for
    all locations of a file.
    """

    def __init__(
        self, io: FileIO, place_of: Callable[[str], str], metadata: TableMetadata, metadata_location: str | None
    ) -> None:
        self._io = io
        self._uuid = metadata.table_uuid
        self._folder = None if metadata_location is None else place_of(f"{metadata_location.rpartition('/')[0]}/-")
        self._place_of = place_of
        self._places: set[str] = set() if metadata_location is None else {place_of(metadata_location)}
        self._oldest: str | None = None
        self._take(metadata)

    def has(self, location: str) -> bool:
        """Whether a metadata file is a version of the table."""
        place = self._place_of(location)
        while place not in self._places and self._oldest is not None:
            self._look_further_back(self._oldest)
        return place in self._places

    def add(self, metadata: TableMetadata, metadata_location: str) -> None:
        """Add a newer version, and those that it names."""
        self._places.add(self._place_of(metadata_location))
        self._take(metadata)

    def is_of_another_table(self, location: str) -> bool:
        """Whether a metadata file that is no version is that of another table, or of a second name of the table.

        A file that a commit wrote and lost, or that is damaged, is not. Where the table is found by its path every
        version in its folder is its own; a version in another's folder is what that folder's table is found by.
        """
        if self.has(location):
            return False
        storage = self._io.storage(location)
        if is_of_another(storage, location, self._uuid):
            return True
        is_found_by_path = version_of(location) is not None and not is_damaged(storage, location)
        return is_found_by_path and self._place_of(f"{location.rpartition('/')[0]}/-") != self._folder

    def _look_further_back(self, oldest: str) -> None:
        self._oldest = None
        try:
            metadata = decode_metadata(inflated(self._io.read_metadata(oldest), oldest), oldest)
        except (IcefieldError, OSError):
            return  # what it named is nobody's, as far as can be known
        self._take(metadata)

    def _take(self, metadata: TableMetadata) -> None:
        log = metadata.metadata_log
        named = {self._place_of(entry.metadata_file) for entry in log}
        if not named <= self._places:
            self._oldest = log[0].metadata_file
            self._places |= named
