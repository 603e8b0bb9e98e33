"""Which metadata files are versions of a table, though it names only the last of them."""

# See docs/decisions/0224.

from __future__ import annotations

from collections.abc import Callable

from icefield.errors import IcefieldError
from icefield.metadata import TableMetadata, decode_metadata, inflated
from icefield.storage import FileIO


class Versions:
    """The metadata files that a version names, and those that these name, as far back as they can be read.

    The id in a metadata file does not tell: whoever copies a table copies its id. ``place_of`` gives one string for
    all locations of a file.
    """

    def __init__(
        self, io: FileIO, place_of: Callable[[str], str], metadata: TableMetadata, metadata_location: str | None
    ) -> None:
        self._io = io
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
