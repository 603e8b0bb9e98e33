"""Frames of Ray, Daft and Dask as rows for a table: workers write data files, and one commit adds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from icefield.abc import AttemptFiles
from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysTrue, as_expression, bind
from icefield.writing import DataFile, WriteContext, write_batches

from icefield_frames.libraries import method_of
from icefield_frames.parts import PLANNING

_ENGINES: Final = {"ray": "ray_sources", "daft": "daft_writes", "dask": "dask_frames"}
"""The modules that write frames of a library."""

_BUFFER_BYTES: Final = 256 << 20
"""The bytes of rows that one task holds at most: a worker runs a task for each core."""


@dataclass(frozen=True, repr=False)
class PartWriter:
    """Writes the rows of one task, on a worker. Picklable; it holds the access to files, and no other credential."""

    context: WriteContext

    def write(self, batches: Iterable[pa.RecordBatch]) -> list[DataFile]:
        """Write rows into data files. An error leaves none; a task that is tried again writes files of other names."""
        return write_batches(self.context, iter(batches), attempt=uuid4().int >> 97)

    def check(self, columns: pa.Schema) -> None:
        """Raise ``InvalidArgument`` for columns that the table cannot hold, before a task runs."""
        write_batches(self.context, columns.empty_table())

    def __repr__(self) -> str:  # engines print the arguments of tasks
        return "PartWriter()"


def write_on_workers(
    table: Any,
    frame: Any,
    overwrite: Any = None,
    *,
    branch: str | None = "main",
    snapshot_properties: Mapping[str, str] | None = None,
) -> Any:
    """Add the rows of a Ray dataset, or of a Dask or Daft frame: workers write the files, and one commit adds them.

    ``overwrite``: a filter of the rows that are deleted in the same commit, such as ``"day = '2024-01-31'"``; True for
    all rows. ``branch`` and ``snapshot_properties`` are those of ``append``, and so is the ``WriteResult``.

    If a task or the commit fails, nothing of the rows is visible, and the files of all tasks are deleted. Files of a
    task that an engine ran twice are deleted too. If the driver dies, its files are left to
    ``maintenance.remove_orphan_files``. Raises ``InvalidArgument`` for other frames, and for rows that the table cannot
    hold.
    """
    write = _writer_of(frame)
    target = None if overwrite is None else AlwaysTrue() if overwrite is True else as_expression(overwrite)
    if target is not None:
        bind(table.schema(), target)
    check = table.transaction()
    try:
        check.expect_branch(branch)
    finally:
        check.end()
    context = table.write_context()
    context = replace(context, io=context.io.for_workers(PLANNING), workers=1, buffer_bytes=_BUFFER_BYTES)
    traces = AttemptFiles(table.io, context.locations.data_folder, context.operation_id)
    try:
        files = write(frame, PartWriter(context))
    except BaseException:
        traces.sweep()
        raise
    try:
        with table.transaction() as transaction:
            # From here on the transaction deletes the files, unless they are committed or may be.
            transaction.context.written.add(*(file.file_path for file in files))
            if target is None:
                result = transaction.append_files(files, snapshot_properties or {}, branch)
            else:
                result = transaction.overwrite_files(files, target, snapshot_properties or {}, branch=branch)
    finally:
        traces.sweep(file.file_path for file in files)
    return result


def _writer_of(frame: Any) -> Callable[[Any, PartWriter], list[DataFile]]:
    library = type(frame).__module__.partition(".")[0]
    if library not in _ENGINES:
        raise InvalidArgument(
            f"write_on_workers takes a Ray dataset, a Dask frame or a Daft frame, not {type(frame).__name__}; "
            "append takes rows of this process"
        )
    found: Callable[[Any, PartWriter], list[DataFile]] = import_module(f"icefield_frames.{_ENGINES[library]}").write
    return found


WRITE_ON_WORKERS = method_of(write_on_workers)
"""The service ``table.write_on_workers``."""
