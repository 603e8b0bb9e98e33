"""Clean data files, which the Parquet reader of Polars reads itself.

A file is clean if it is a Parquet file on a local disk without deletes, and has the columns of the query under their
ids, names and types. The kernel reads all others. Both give the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from icefield.errors import IcefieldError, UnsupportedFeature
from icefield.expressions import AlwaysTrue
from icefield.scan import FileScanTask
from icefield.schema import schema_to_arrow

from icefield_frames.selection import Selection, is_of_files

if TYPE_CHECKING:
    import polars as pl

_FIELD_ID: Final = b"PARQUET:field_id"


def native_frame(polars: Any, selection: Selection, limit: int | None) -> pl.LazyFrame | None:
    """The columns of a selection as a lazy frame of Polars' own reader; None if the kernel must read a file.

    The row filter of the selection only leaves out files. ``limit`` is the number of rows to read at most.
    """
    scan = selection.scan
    if not is_of_files(scan) or scan.limit is not None or scan.dictionary_columns:
        return None
    if not isinstance(scan.row_filter, AlwaysTrue):
        return None
    wanted = schema_to_arrow(selection.context.projection)
    if not len(wanted):
        return None
    paths = _clean_paths(selection.files(), wanted, selection.context.io, limit)
    if not paths:
        return None
    frame: pl.LazyFrame = polars.scan_parquet(paths, hive_partitioning=False, glob=False).select(wanted.names)
    expected = polars.from_arrow(wanted.empty_table()).schema
    return frame if frame.collect_schema() == expected else None


def _clean_paths(tasks: Iterable[FileScanTask], wanted: pa.Schema, io: Any, limit: int | None) -> list[str] | None:
    paths: list[str] = []
    left = limit
    for task in tasks:
        file = task.file
        if left is not None and left <= 0:
            break
        if task.delete_files or not task.is_whole_file or file.file_format.lower() != "parquet":
            return None
        try:
            with io.open_input(file.file_path) as opened, ExitStack() as held:
                path = held.enter_context(opened.local_path(0))
                schema, rows = _footer(path, file.file_size_in_bytes)
        except (UnsupportedFeature, IcefieldError, OSError, pa.ArrowException):
            return None  # no local file, or a damaged one, whose error the kernel states
        if rows != file.record_count or not all(_is_same(schema, field) for field in wanted):
            return None
        paths.append(path)
        left = None if left is None else left - rows
    return paths


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
