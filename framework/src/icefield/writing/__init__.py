"""Writing data files and delete files: the part of a write that may run on executors."""

from icefield.manifest import DataFile, DataFileContent
from icefield.writing.context import WriteContext
from icefield.writing.data_writer import write_batches
from icefield.writing.deletes import (
    DeleteContext,
    DeletedRows,
    write_deletion_vectors,
    write_equality_deletes,
    write_position_deletes,
)

__all__ = [
    "DataFile",
    "DataFileContent",
    "DeleteContext",
    "DeletedRows",
    "WriteContext",
    "write_batches",
    "write_deletion_vectors",
    "write_equality_deletes",
    "write_position_deletes",
]
