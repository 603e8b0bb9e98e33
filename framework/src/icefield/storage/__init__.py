"""One view over all file systems, and the locations of a table's files."""

from icefield.storage.canonical import CanonicalLocations
from icefield.storage.file_io import FileIO, local_path
from icefield.storage.locations import LocationProvider, given_location
from icefield.toolkit.authority import scheme_of

__all__ = ["CanonicalLocations", "FileIO", "LocationProvider", "given_location", "local_path", "scheme_of"]
