"""Writing data files and delete files: the part of a write that may run on executors."""

from icefield.base.lazy_names import public_names
from icefield.manifest import DataFile as DataFile
from icefield.manifest import DataFileContent as DataFileContent
from icefield.writing.context import WriteContext as WriteContext
from icefield.writing.data_writer import write_batches as write_batches
from icefield.writing.deletes import DeleteContext as DeleteContext
from icefield.writing.deletes import DeletedRows as DeletedRows
from icefield.writing.deletes import write_deletion_vectors as write_deletion_vectors
from icefield.writing.deletes import write_equality_deletes as write_equality_deletes
from icefield.writing.deletes import write_position_deletes as write_position_deletes

__all__ = public_names(__name__)
