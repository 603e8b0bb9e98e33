"""New rows that an operation inserts besides its changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from icefield.manifest.data_file import DataFile
from icefield.schema import Schema
from icefield.transaction.action import ActionContext
from icefield.transaction.branch_head import Head
from icefield.transaction.matching import Mask
from icefield.transaction.row_level.changed_files import FileResults
from icefield.writing.context import WriteContext
from icefield.writing.data_writer import pieces_of, write_batches, write_conformed


class InsertedRows:
    """New rows. Each attempt inserts the rows that the table does not have; the same rows are written once."""

    def __init__(self, files: FileResults, schema: Schema | None = None) -> None:
        """``files`` marks and numbers the new files. ``schema`` is the schema that the rows conform to already."""
        self._files, self._schema = files, schema
        self._made: dict[tuple[bytes, int, int], list[DataFile]] = {}

    def write(
        self, head: Head, context: ActionContext, mask: Mask, rows: Callable[[], Iterable[pa.Table]]
    ) -> list[DataFile]:
        """Write the rows that ``mask`` chooses, and ``rows`` gives, for a head. Files of other attempts are retired."""
        metadata = head.metadata
        key = (np.packbits(mask).tobytes(), metadata.current_schema_id, metadata.default_spec_id)
        if mask.any() and key not in self._made:
            writing = WriteContext.from_metadata(metadata, context.io, operation_id=self._files.uuid)
            batches = (batch for table in rows() for batch in pieces_of(table))
            number = self._files.next_number()
            # If another commit has changed the schema meanwhile, the rows must be conformed again.
            write = write_conformed if writing.schema == self._schema else write_batches
            self._made[key] = write(writing, batches, task_id=number, note=context.written.add)
        for made, files in self._made.items():
            note = context.written.add if made == key else context.written.retire
            note(*(file.file_path for file in files))
        return self._made.get(key, [])
