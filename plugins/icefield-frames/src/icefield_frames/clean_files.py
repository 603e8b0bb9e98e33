"""Clean data files, which the Parquet reader of another library reads itself.

A file is clean if it is a Parquet file on a local disk without deletes, and has the columns of the query under their
ids, names and types. The kernel reads all others. Both give the same rows.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from icefield.errors import IcefieldError, UnsupportedFeature
from icefield.expressions import AlwaysTrue
from icefield.scan import FileScanTask

from icefield_frames.selection import is_of_files

_FIELD_ID: Final = b"PARQUET:field_id"


def takes_clean_files(scan: Any) -> bool:
    """Whether another library may read clean files of a scan: it has no filter and no limit of its own."""
    if not is_of_files(scan) or scan.limit is not None or scan.dictionary_columns:
        return False
    return isinstance(scan.row_filter, AlwaysTrue)


def path_if_clean(task: FileScanTask, wanted: pa.Schema, io: Any) -> str | None:
    """The local path of a file that has all columns under their ids, names and types; None for another file."""
    file = task.file
    if task.delete_files or not task.is_whole_file or file.file_format.lower() != "parquet" or file.key_metadata:
        return None
    try:
        with io.open_input(file.file_path) as opened, ExitStack() as held:
            path: str = held.enter_context(opened.local_path(0))
            schema, rows = _footer(path, file.file_size_in_bytes)
    except (UnsupportedFeature, IcefieldError, OSError, pa.ArrowException):
        return None  # no local file, or a damaged one, whose error the kernel states
    return path if rows == file.record_count and all(_is_same(schema, field) for field in wanted) else None


def _is_same(schema: pa.Schema, wanted: pa.Field) -> bool:
    """Whether a file has a column under its name, id and type, nested ids included."""
    index = schema.get_field_index(wanted.name)
    if index < 0:
        return False
    found = schema.field(index)
    same_id = (found.metadata or {}).get(_FIELD_ID) == (wanted.metadata or {}).get(_FIELD_ID)
    return same_id and bool(found.type.equals(wanted.type, check_metadata=True))


@lru_cache(maxsize=4096)
def _footer(path: str, size: int) -> tuple[pa.Schema, int]:
    """The schema and the number of rows of a Parquet file. Data files never change."""
    metadata = pq.read_metadata(path)
    return metadata.schema.to_arrow_schema(), metadata.num_rows
