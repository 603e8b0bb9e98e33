"""Planned files in columns; each row is a task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.base.concurrency import lazy
from icefield.base.notebooks import html_of
from icefield.expressions import BooleanExpression, Residuals
from icefield.manifest import DataFile, ManifestEntries
from icefield.manifest import schemas as f
from icefield.manifest.columns import NAMES
from icefield.scan.deletes.assigned import AssignedDeletes, ScanDeletes
from icefield.scan.tasks import FileScanTask, PlannedTask, TaskRows
from icefield.types.arrow.equality import Ints


@dataclass(eq=False)
class PlannedFiles(TaskRows):
    """The planned files of one manifest. ``DataFile`` objects are created when a task first needs them.

    ``deletes`` are the delete files that apply; None without deletes. ``proven`` marks the files that match as a whole
    by their statistics; None unless requested. ``place`` is the position of the manifest in the planner's list.
    """

    entries: ManifestEntries
    residuals: Residuals
    deletes: AssignedDeletes | None
    proven: npt.NDArray[np.bool_] | None = None
    place: int = 0

    def __len__(self) -> int:
        return len(self.entries)

    def tasks(self, rows: Iterable[int] | None = None) -> Iterator[FileScanTask]:
        """The tasks of some files by their rows, or else one for each file."""
        return (PlannedTask(self, row) for row in (range(len(self.entries)) if rows is None else rows))

    def file(self, row: int) -> DataFile:
        """The data file of a task."""
        return self._files[row]

    def residual(self, row: int) -> BooleanExpression:
        """The residual filter of the file, by its partition."""
        groups, residuals = self.residual_groups
        return residuals[int(groups[row])]

    def delete_files(self, row: int) -> tuple[DataFile, ...]:
        """The delete files that apply to the file."""
        return self.deletes.tuples[row] if self.deletes else ()

    def data_sequence_number(self, row: int) -> int | None:
        """The data sequence number of the file."""
        return self._sequence_numbers[0][row]

    def file_sequence_number(self, row: int) -> int | None:
        """The sequence number of the commit that added the file."""
        return self._sequence_numbers[1][row]

    @lazy
    def residual_groups(self) -> tuple[Ints, list[BooleanExpression]]:
        """The residual of each file, as an index into the list of distinct residuals."""
        return self.residuals.partition_groups(self.entries.partition)

    @lazy
    def _files(self) -> list[DataFile]:
        # All files at once: callers need most of them, and single conversions are several times slower.
        return list(self.entries.data_files())

    @lazy
    def _sequence_numbers(self) -> tuple[list[int | None], ...]:
        columns = (f.SEQUENCE_NUMBER, f.FILE_SEQUENCE_NUMBER)
        return tuple(self.entries.column(number).to_pylist() for number in columns)


@dataclass(frozen=True, slots=True)
class PlannedManifest:
    """The planned files of one manifest.

    ``place`` is the position of the manifest in the planner's list. ``files`` has the columns of the entries by the
    names of the format (spec: "Manifests"), ``partition`` with the fields of the manifest's partition spec.
    ``residuals[residual_groups[row]]`` is the residual filter of a file. The delete files of a file are
    ``delete_numbers[delete_offsets[row]:delete_offsets[row + 1]]``; the numbers are the same for all manifests of a
    plan.
    """

    place: int
    spec_id: int
    files: pa.RecordBatch
    residual_groups: Ints
    residuals: Sequence[BooleanExpression]
    delete_offsets: Ints
    delete_numbers: Ints
    _deletes: ScanDeletes | None = field(default=None, repr=False)

    _repr_html_ = html_of

    def __repr__(self) -> str:
        return f"PlannedManifest(place={self.place}, spec_id={self.spec_id}, files={len(self)})"

    def __len__(self) -> int:
        return len(self.residual_groups)

    @classmethod
    def of(cls, planned: PlannedFiles) -> PlannedManifest:
        """Planned files in columns."""
        groups, residuals = planned.residual_groups
        deletes = planned.deletes
        offsets, numbers, files = np.zeros(len(planned) + 1, np.int64), np.zeros(0, np.int64), None
        if deletes is not None:
            (offsets, numbers), files = deletes.all(), deletes.delete_files
        entries = planned.entries
        return cls(planned.place, entries.spec_id, _batch(entries), groups, residuals, offsets, numbers, files)

    def slice(self, start: int, stop: int) -> PlannedManifest:
        """A range of consecutive files."""
        offsets = self.delete_offsets[start : stop + 1]
        return PlannedManifest(
            self.place,
            self.spec_id,
            self.files.slice(start, stop - start),
            self.residual_groups[start:stop],
            self.residuals,
            offsets - offsets[0],
            self.delete_numbers[offsets[0] : offsets[-1]],
            self._deletes,
        )

    def delete_files(self, numbers: Ints) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Delete files in columns, as ``files`` has them, with their partition spec.

        ``numbers`` are ascending and distinct. The result has one batch for each manifest, in order.
        """
        if self._deletes is not None:
            for entries in self._deletes.entries(numbers):
                yield entries.spec_id, _batch(entries)


def _batch(entries: ManifestEntries) -> pa.RecordBatch:
    numbers = sorted(entries.read & NAMES.keys())
    return pa.RecordBatch.from_arrays([entries.column(each) for each in numbers], [NAMES[each] for each in numbers])
