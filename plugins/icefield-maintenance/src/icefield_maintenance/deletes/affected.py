"""The data files affected by a rewrite of deletes, partition by partition."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import numpy as np
from icefield import manifest as f
from icefield.engine import partition_keys, tuple_groups
from icefield.manifest import DataFile, ManifestEntries
from icefield.scan import FileScanTask

from icefield_maintenance.deletes.survey import DeleteSurvey, Ints

_AT_ONCE: Final = 4096
"""The number of data files in a batch of ``Affected`` objects."""

MOST_IN_A_PIECE: Final = 16_384
"""The most data files of a partition in one piece. Each further piece has its own delete files."""

Wanted = Callable[[DataFile], bool]


@dataclass(frozen=True, slots=True)
class Affected:
    """A data file and its wanted delete files.

    ``partition`` identifies its partition. ``number`` is the highest data sequence number of all deletes that apply.
    """

    task: FileScanTask
    partition: int
    number: int

    @property
    def key(self) -> tuple[Any, ...]:
        """Everything that affects the file's result: its path, its sequence number and its delete files."""
        deletes = tuple((one.file_path, one.content_offset) for one in self.task.delete_files)
        return self.task.file.file_path, self.task.data_sequence_number, deletes


def pieces(survey: DeleteSurvey, parts: Sequence[ManifestEntries], wanted: Wanted) -> Iterator[list[Affected]]:
    """Data files in pieces of one partition each, with their wanted delete files."""
    for _, members in groupby(_affected(survey, parts, wanted), attrgetter("partition")):
        piece: list[Affected] = []
        for each in members:
            piece.append(each)
            if len(piece) == MOST_IN_A_PIECE:
                yield piece
                piece = []
        if piece:
            yield piece


def _affected(survey: DeleteSurvey, parts: Sequence[ManifestEntries], wanted: Wanted) -> Iterator[Affected]:
    groups = _groups(parts)
    owners = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    starts = np.cumsum([0, *map(len, parts)])
    order = np.argsort(groups, kind="stable")
    for start in range(0, len(order), _AT_ONCE):
        some = order[start : start + _AT_ONCE]
        made: dict[int, Affected] = {}
        for owner in np.unique(owners[some]).tolist():
            chosen = some[owners[some] == owner]
            made |= _made(survey, parts[owner], chosen - starts[owner], chosen, groups, wanted)
        for number in some.tolist():
            yield made[number]


def _made(
    survey: DeleteSurvey, part: ManifestEntries, rows: Ints, numbers: Ints, groups: Ints, wanted: Wanted
) -> dict[int, Affected]:
    entries = part.take(rows)
    assigned = survey.applying(entries)
    assert assigned is not None  # one of the chosen applies to each
    offsets, deletes = assigned.all()
    files = entries.data_files()
    own = entries.column(f.SEQUENCE_NUMBER).to_pylist()
    made = {}
    for place, (number, file) in enumerate(zip(numbers.tolist(), files, strict=True)):
        highest = int(survey.sequences[deletes[offsets[place] : offsets[place + 1]]].max())
        applying = tuple(one for one in assigned.files(place) if wanted(one))
        task = FileScanTask(file, delete_files=applying, data_sequence_number=own[place])
        made[number] = Affected(task, int(groups[number]), highest)
    return made


def _groups(parts: Sequence[ManifestEntries]) -> Ints:
    numbers: dict[Hashable, int] = {}
    found = [np.zeros(0, np.int64)]
    for part in parts:
        rows, examples = tuple_groups(part.partition)
        keys = partition_keys(part.spec_id, part.partition, examples)
        found.append(np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)[rows])
    return np.concatenate(found)
