"""Planned files in columns, of which tasks are rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from icefield.expressions import BooleanExpression, Residuals
from icefield.manifest import DataFile, ManifestEntries
from icefield.manifest import schemas as f
from icefield.scan.assigned_deletes import AssignedDeletes
from icefield.scan.tasks import FileScanTask, PlannedTask


class PlannedFiles:
    """Files of one manifest that are to be read. Objects are made when one of the tasks is first asked for them.

    ``deletes`` are the delete files that apply, None when there are none. ``proven``, where it was asked for, states
    which files match whole by their statistics. ``place`` is the manifest's among those that are planned from.
    """

    __slots__ = ("_deletes", "_files", "_groups", "_residuals", "_sequences", "deletes", "entries", "place", "proven")

    def __init__(
        self,
        entries: ManifestEntries,
        residuals: Residuals,
        deletes: AssignedDeletes | None,
        proven: npt.NDArray[np.bool_] | None = None,
        place: int = 0,
    ) -> None:
        self.entries = entries
        self.proven = proven
        self.place = place
        self._residuals = residuals
        self.deletes = deletes
        self._files: list[DataFile] | None = None
        self._deletes: list[tuple[DataFile, ...]] | None = None
        self._groups: tuple[npt.NDArray[np.int64], list[BooleanExpression]] | None = None
        self._sequences: dict[int, list[Any]] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def tasks(self) -> Iterator[FileScanTask]:
        """One task for each file."""
        return (PlannedTask(self, row) for row in range(len(self.entries)))

    def file(self, row: int) -> DataFile:
        """The data file of a task."""
        files = self._files
        if files is None:
            # All at once: one by one would cost several times as much, and whoever asks for one asks for more.
            files = self._files = list(self.entries.data_files())
        return files[row]

    def residual(self, row: int) -> BooleanExpression:
        """What is left of the filter for the file, by its partition."""
        groups, residuals = self.residual_groups()
        return residuals[int(groups[row])]

    def residual_groups(self) -> tuple[npt.NDArray[np.int64], list[BooleanExpression]]:
        """The residual of each file, as its place in the list of distinct ones."""
        if self._groups is None:
            self._groups = self._residuals.partition_groups(self.entries.partition)
        return self._groups

    def delete_files(self, row: int) -> tuple[DataFile, ...]:
        """The delete files that apply to the file."""
        if self._deletes is None:
            # Those of all rows: whoever asks for one asks for more.
            self._deletes = [()] * len(self) if self.deletes is None else self.deletes.tuples()
        return self._deletes[row]

    def data_sequence_number(self, row: int) -> int | None:
        """The data sequence number of the file."""
        return self._number(f.SEQUENCE_NUMBER, row)

    def file_sequence_number(self, row: int) -> int | None:
        """The sequence number of the commit that added the file."""
        return self._number(f.FILE_SEQUENCE_NUMBER, row)

    def _number(self, number: int, row: int) -> int | None:
        values = self._sequences.get(number)
        if values is None:
            values = self._sequences[number] = self.entries.column(number).to_pylist()
        found: int | None = values[row]
        return found
