"""Deletes files of losing attempts: no task's message names them, and their names contain the operation."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from icefield.abc import AttemptFiles
from icefield.errors import IcefieldError
from icefield.writing import DataFile, WriteContext


def sweep(context: WriteContext, kept: Iterable[DataFile] = ()) -> None:
    """Delete every file of the operation that is not kept. Raises nothing: leftovers are orphans for maintenance.

    It lists the table's data, so it is for jobs with failed or repeated tasks. A worker that is killed cannot clean up,
    and Spark does not pass on the reports of failed tasks.
    """
    sweep_traces(_traces(context), (file.file_path for file in kept))


def sweep_traces(traces: AttemptFiles, kept: Iterable[str] = ()) -> None:
    """Delete every file of the traces that is not kept; as ``sweep``."""
    names = {_name(location) for location in kept}
    with suppress(IcefieldError, OSError):
        found = [info.location for info in traces.io.list_files(f"{traces.folder}/")]
        lost = [each for each in found if traces.mark in _name(each) and _name(each) not in names]
        traces.io.delete_many(lost)


def _traces(context: WriteContext) -> AttemptFiles:
    return AttemptFiles(context.io, context.locations.data_folder, context.operation_id)


def _name(location: str) -> str:
    return location.rpartition("/")[2]
