"""A single view over all file systems, and the locations of a table's files."""

from icefield.base.lazy_names import public_names
from icefield.storage.deleting import delete_files as delete_files
from icefield.storage.encrypted_files import NewFile as NewFile
from icefield.storage.file_io import FileIO as FileIO
from icefield.storage.local_paths import local_path as local_path
from icefield.storage.locations import JOB_FOLDER as JOB_FOLDER
from icefield.storage.locations import LocationProvider as LocationProvider
from icefield.storage.locations import given_location as given_location
from icefield.storage.neighbours import refuse_twins as refuse_twins
from icefield.storage.neighbours import tables_noted as tables_noted
from icefield.storage.places import HashedLocations as HashedLocations
from icefield.storage.places import Hashes as Hashes
from icefield.storage.places import LocationSet as LocationSet
from icefield.storage.places import Mask as Mask
from icefield.storage.places import path_hashes as path_hashes
from icefield.storage.table_files import TableFiles as TableFiles
from icefield.storage.table_files import folders_in as folders_in
from icefield.storage.table_files import folders_of as folders_of
from icefield.toolkit.authority import scheme_of as scheme_of

__all__ = public_names(__name__)
