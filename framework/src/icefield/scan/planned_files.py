"""Planned files in columns; each row is a task."""

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
    """The planned files of one manifest. ``DataFile`` objects are created when a task first needs them.

    ``deletes`` are the delete files that apply; None without deletes. ``proven`` marks the files that match as a whole
    by their statistics; None unless requested. ``place`` is the position of the manifest in the planner's list.
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
            # All files at once: callers need most of them, and single conversions are several times slower.
            files = self._files = list(self.entries.data_files())
        return files[row]

    def residual(self, row: int) -> BooleanExpression:
        """The residual filter of the file, by its partition."""
        groups, residuals = self.residual_groups()
        return residuals[int(groups[row])]

    def residual_groups(self) -> tuple[npt.NDArray[np.int64], list[BooleanExpression]]:
        """The residual of each file, as an index into the list of distinct residuals."""
        if self._groups is None:
            self._groups = self._residuals.partition_groups(self.entries.partition)
        return self._groups

    def delete_files(self, row: int) -> tuple[DataFile, ...]:
        """The delete files that apply to the file."""
        if self._deletes is None:
            # For all rows at once: callers need most of them.
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
