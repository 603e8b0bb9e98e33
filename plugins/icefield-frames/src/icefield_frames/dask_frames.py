"""Scans as data frames of Dask, and their partitions as data files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from icefield.writing import DataFile

from icefield_frames.libraries import library, method_of
from icefield_frames.pandas_frames import DtypeBackend, types_mapper
from icefield_frames.parts import Part, parts_of
from icefield_frames.selection import arrow_schema
from icefield_frames.worker_writes import PartWriter

if TYPE_CHECKING:
    import dask.dataframe as dd


def to_dask(scan: Any, *, dtype_backend: DtypeBackend = "pyarrow") -> dd.DataFrame:
    """The rows as a Dask data frame, with a partition for each group of scan tasks.

    Workers read the files, and only the columns that a computation needs. Dask hands on no filters: filter the scan.
    ``dtype_backend``: see ``to_pandas``; with ``"pyarrow"``, the default, all partitions have the types of the table.
    Raises ``MissingPlugin`` if Dask is not installed.
    """
    frames = library("dask", "to_dask", "dataframe")
    schema = arrow_schema(scan)
    nothing = PartFrames(dtype_backend).frame(schema.empty_table())
    parts = parts_of(scan, schema, at_least=library("dask", "to_dask", "system").CPU_COUNT)
    if not parts:
        found: dd.DataFrame = frames.from_pandas(nothing, npartitions=1)
        return found
    found = frames.from_map(PartFrames(dtype_backend), parts, meta=nothing, label="icefield")
    return found


class PartFrames:
    """The function that reads a partition, on a worker."""

    def __init__(self, dtype_backend: DtypeBackend) -> None:
        self._backend = dtype_backend

    def __call__(self, part: Part, columns: list[str] | None = None) -> Any:
        """The rows of a part as a frame of pandas."""
        return self.frame(part.table(None if columns is None else tuple(columns)))

    def frame(self, rows: pa.Table) -> Any:
        """Rows as a frame of pandas."""
        return rows.to_pandas(types_mapper=types_mapper(self._backend))


def write(frame: Any, writer: PartWriter) -> list[DataFile]:
    """Write each partition of a frame by a task of Dask."""
    writer.check(_arrow(frame._meta).schema)
    dask = library("dask", "write_on_workers")
    found = dask.compute(*(dask.delayed(_write)(part, writer) for part in frame.to_delayed()))
    return [file for files in found for file in files]


def _write(frame: Any, writer: PartWriter) -> list[DataFile]:
    return writer.write(iter(_arrow(frame).to_batches()))


def _arrow(frame: Any) -> pa.Table:
    """A frame of pandas as a table; an index without a name is left out."""
    return pa.Table.from_pandas(frame, preserve_index=None if frame.index.name is not None else False)


TO_DASK = method_of(to_dask)
"""The service ``scan.to_dask``."""
