"""Writing data files: the side of a write that may run elsewhere."""

from icefield.writing.context import WriteContext
from icefield.writing.data_writer import write_batches

__all__ = ["WriteContext", "write_batches"]
