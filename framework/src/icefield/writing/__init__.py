"""Writing data files: the side of a write that may run elsewhere."""

from icefield.manifest import DataFile
from icefield.writing.context import WriteContext
from icefield.writing.data_writer import write_batches

__all__ = ["DataFile", "WriteContext", "write_batches"]
