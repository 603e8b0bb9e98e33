"""The metadata files that are versions of a table, beside the last version."""

from __future__ import annotations

from collections.abc import Callable

from icefield.abc import FileSystem
from icefield.engine import is_of_another, table_uuid_in
from icefield.errors import FileMissing, IcefieldError, InvalidMetadata
from icefield.metadata import TableMetadata, decode_metadata, inflated
from icefield.storage import FileIO
from icefield.toolkit import version_of


class Versions:
    """The metadata files in the log of a version, and in the logs of earlier versions, as far as they can be read.

    The uuid does not identify the versions of a table, since a copy of a table has the same uuid. ``place_of`` gives
    one string for all locations of a file.
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
        """Add a newer version, and the metadata files in its log."""
        self._places.add(self._place_of(metadata_location))
        self._take(metadata)

    def is_of_another_table(self, location: str) -> bool:
        """Whether a metadata file is no version of the table, but of another table or of a second name of the table.

        A file of a lost commit, or a damaged file, is not. If a table is found by its path, each version in its folder
        is its own. A version in another folder belongs to the table that is found by that folder.
        """
        if self.has(location):
            return False
        storage = self._io.storage(location)
        if is_of_another(storage, location, self._uuid):
            return True
        is_found_by_path = version_of(location) is not None and not _is_damaged(storage, location)
        return is_found_by_path and self._place_of(f"{location.rpartition('/')[0]}/-") != self._folder

    def _look_further_back(self, oldest: str) -> None:
        self._oldest = None
        try:
            metadata = decode_metadata(inflated(self._io.read_metadata(oldest), oldest), oldest)
        except (IcefieldError, OSError):
            return  # its log cannot be read: no table is known to own the files in it
        self._take(metadata)

    def _take(self, metadata: TableMetadata) -> None:
        log = metadata.metadata_log
        named = {self._place_of(entry.metadata_file) for entry in log}
        if not named <= self._places:
            self._oldest = log[0].metadata_file
            self._places |= named


def _is_damaged(system: FileSystem, metadata_file: str) -> bool:
    """Whether a metadata file cannot be read."""
    try:
        table_uuid_in(system, metadata_file)
    except (FileMissing, InvalidMetadata):
        return True
    return False
