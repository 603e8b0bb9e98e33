"""One view over all file systems, and the locations of a table's files."""

from icefield.storage.canonical import CanonicalLocations
from icefield.storage.deleting import delete_files
from icefield.storage.file_io import FileIO, local_path
from icefield.storage.locations import LocationProvider, given_location
from icefield.storage.owned import OwnedFiles, folders_of
from icefield.storage.places import Places, PlaceSet
from icefield.storage.table_files import TableFiles
from icefield.toolkit.authority import scheme_of

__all__ = [
    "CanonicalLocations",
    "FileIO",
    "LocationProvider",
    "OwnedFiles",
    "PlaceSet",
    "Places",
    "TableFiles",
    "delete_files",
    "folders_of",
    "given_location",
    "local_path",
    "scheme_of",
]
