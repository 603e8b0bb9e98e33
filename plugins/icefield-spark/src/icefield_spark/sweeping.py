"""What attempts that lost left behind: files that no task's message names, found by the operation in their names."""

# See docs/decisions/0087.

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from icefield.errors import IcefieldError
from icefield.writing import DataFile, WriteContext


def sweep(context: WriteContext, kept: Iterable[DataFile] = ()) -> None:
    """Delete every file of the operation that is not kept. Raises nothing: what stays is an orphan for upkeep.

    It lists the table's data, so that it is for jobs some task of which failed or was tried twice. A worker that is
    killed cannot clean up, and Spark does not pass on what failed tasks reported.
    """
    names = {_name(file.file_path) for file in kept}
    with suppress(IcefieldError, OSError):
        found = [info.location for info in context.io.list_files(f"{context.locations.data_folder}/")]
        lost = [each for each in found if context.operation_id in _name(each) and _name(each) not in names]
        context.io.delete_many(lost)


def _name(location: str) -> str:
    return location.rpartition("/")[2]
