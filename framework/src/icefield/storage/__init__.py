"""A single view over all file systems, and the locations of a table's files."""

from icefield.storage.deleting import delete_files
from icefield.storage.encrypted_files import NewFile
from icefield.storage.file_io import FileIO
from icefield.storage.local_paths import local_path
from icefield.storage.locations import JOB_FOLDER, LocationProvider, given_location
from icefield.storage.neighbours import refuse_twins, tables_noted
from icefield.storage.places import HashedLocations, Hashes, LocationSet, Mask, path_hashes
from icefield.storage.table_files import TableFiles, folders_in, folders_of
from icefield.toolkit.authority import scheme_of

__all__ = [
    "JOB_FOLDER",
    "FileIO",
    "HashedLocations",
    "Hashes",
    "LocationProvider",
    "LocationSet",
    "Mask",
    "NewFile",
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
