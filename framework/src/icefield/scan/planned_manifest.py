"""Planned files in columns, manifest by manifest, for plans in other formats without an object for each file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from icefield.expressions import BooleanExpression
from icefield.manifest import ManifestEntries
from icefield.manifest.columns import NAMES
from icefield.partitioning.tuples import Ints
from icefield.scan.assigned_deletes import ScanDeletes
from icefield.scan.planned_files import PlannedFiles


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

    def __len__(self) -> int:
        return len(self.residual_groups)

    @classmethod
    def of(cls, planned: PlannedFiles) -> PlannedManifest:
        """Planned files in columns."""
        groups, residuals = planned.residual_groups()
        deletes = planned.deletes
        offsets, numbers = _no_deletes(len(planned)) if deletes is None else deletes.all()
        files = None if deletes is None else deletes.delete_files
        entries = planned.entries
        return cls(
            planned.place, entries.spec_id, _batch(entries), groups, residuals, np.asarray(offsets), numbers, files
        )

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


def _no_deletes(count: int) -> tuple[Ints, Ints]:
    return np.zeros(count + 1, np.int64), np.zeros(0, np.int64)


def _batch(entries: ManifestEntries) -> pa.RecordBatch:
    numbers = sorted(entries.read & NAMES.keys())
    return pa.RecordBatch.from_arrays([entries.column(each) for each in numbers], [NAMES[each] for each in numbers])
