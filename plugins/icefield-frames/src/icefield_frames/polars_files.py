"""Clean data files, which the Parquet reader of Polars reads itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from icefield.scan import FileScanTask
from icefield.schema import schema_to_arrow

from icefield_frames.clean_files import path_if_clean, takes_clean_files
from icefield_frames.selection import Selection

if TYPE_CHECKING:
    import polars as pl


def native_frame(polars: Any, selection: Selection, limit: int | None) -> pl.LazyFrame | None:
    """The columns of a selection as a lazy frame of Polars' own reader; None if the kernel must read a file.

    The row filter of the selection only leaves out files. ``limit`` is the number of rows to read at most.
    """
    scan = selection.scan
    if not takes_clean_files(scan):
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
        if left is not None and left <= 0:
            break
        path = path_if_clean(task, wanted, io)
        if path is None:
            return None
        paths.append(path)
        left = None if left is None else left - task.file.record_count
    return paths
