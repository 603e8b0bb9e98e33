"""A single view over all file systems, and the locations of a table's files."""

from icefield.storage.canonical import CanonicalLocations
from icefield.storage.deleting import delete_files
from icefield.storage.file_io import FileIO
from icefield.storage.hashing import Hashes, path_hashes
from icefield.storage.local_paths import local_path
from icefield.storage.locations import JOB_FOLDER, LocationProvider, given_location
from icefield.storage.neighbours import refuse_twins, tables_noted
from icefield.storage.owned import OwnedFiles, folders_of
from icefield.storage.places import HashedLocations, LocationSet, Mask
from icefield.storage.table_files import TableFiles, folders_in
from icefield.toolkit.authority import scheme_of

__all__ = [
    "JOB_FOLDER",
    "CanonicalLocations",
    "FileIO",
    "HashedLocations",
    "Hashes",
    "LocationProvider",
    "LocationSet",
    "Mask",
    "OwnedFiles",
    "TableFiles",
    "delete_files",
    "folders_in",
    "folders_of",
    "given_location",
    "local_path",
    "path_hashes",
    "refuse_twins",
    "scheme_of",
    "tables_noted",
]
