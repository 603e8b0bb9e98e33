"""Deletes files of losing attempts: no task's message names them, and their names contain the operation."""

from __future__ import annotations

from collections.abc import Iterable

from icefield.abc import AttemptFiles
from icefield.writing import DataFile, WriteContext


def sweep(context: WriteContext, kept: Iterable[DataFile] = ()) -> None:
    """Delete every file of the operation that is not kept. Raises nothing: leftovers are orphans for maintenance.

    It lists the table's data, so it is for jobs with failed or repeated tasks. A worker that is killed cannot clean up,
    and Spark does not pass on the reports of failed tasks.
    """
    traces = AttemptFiles(context.io, context.locations.data_folder, context.operation_id)
    traces.sweep(file.file_path for file in kept)
