"""Planning groups of files to rewrite. Files are judged in columns; only chosen files become objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from icefield import manifest as f
from icefield.engine import AssignedDeletes, PlannedFiles, tuple_groups
from icefield.manifest import ManifestEntries
from icefield.metadata import TableMetadata
from icefield.partitioning import PartitionSpec
from icefield.scan import FileScanTask, TableScan
from icefield.storage import Mask

from icefield_maintenance.compaction.policy import RewriteDataPolicy, Sizes
from icefield_maintenance.tend.costs import REQUEST_BYTES

Ints = npt.NDArray[np.int64]

_LOOKBACK: Final = 10
"""How many groups of a partition are open for further files."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Files of one manifest that may be rewritten; ``rows`` are their positions in ``deletes``."""

    entries: ManifestEntries
    deletes: AssignedDeletes | None
    rows: Ints
    heavy: Mask
    """The mask of files with so many deletes that they are rewritten even alone."""
    dead: Ints
    """The bytes of deleted rows, by the share of each file's rows."""


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that are rewritten together. ``respecified``: some are of another spec than the new files."""

    tasks: tuple[FileScanTask, ...]
    partition: str
    respecified: bool

    @property
    def nbytes(self) -> int:
        """The size of the files."""
        return sum(task.file.file_size_in_bytes for task in self.tasks)

    @property
    def paths(self) -> list[str]:
        """The locations of the files."""
        return [task.file.file_path for task in self.tasks]

    @property
    def has_unnumbered_rows(self) -> bool:
        """Whether a file has no row ids yet, so that the next commit of any writer assigns ids to its rows."""
        return any(task.file.first_row_id is None for task in self.tasks)


class RewritePlan:
    """The groups of one version of a table. ``only`` names the files that are considered; None: all."""

    def __init__(
        self, scan: TableScan, policy: RewriteDataPolicy, spec: PartitionSpec, sizes: Sizes, only: pa.Array | None
    ) -> None:
        self._scan, self._policy, self._spec, self._sizes, self._only = scan, policy, spec, sizes, only

    @property
    def metadata(self) -> TableMetadata:
        """The version of the table."""
        return self._scan.metadata

    def groups(self) -> list[FileGroup]:
        """The groups in the order of the policy, by default by partition."""
        parts = list(self._candidates())
        if not parts:
            return []
        sizes = np.concatenate([np.asarray(part.entries.column(f.FILE_SIZE)) for part in parts])
        heavy = np.concatenate([part.heavy for part in parts])
        partitions = self._partitions(parts)
        order = np.argsort(partitions, kind="stable")
        ends = np.flatnonzero(np.diff(partitions[order], append=-2)) + 1
        starts = np.concatenate(([0], ends[:-1]))
        found: list[Ints] = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            members = order[start:end]
            for packed in pack(sizes[members].tolist(), self._sizes.group, _LOOKBACK):
                chosen = members[packed]
                total, is_heavy = int(sizes[chosen].sum()), bool(heavy[chosen].any())
                if self._sizes.is_worth_it(total, len(chosen), self._policy.min_input_files, is_heavy=is_heavy):
                    found.append(chosen)
        if self._policy.max_rewritten_bytes is not None:
            dead = np.concatenate([part.dead for part in parts])
            found = most_gainful(found, sizes, dead, heavy, self._sizes.target, self._policy.max_rewritten_bytes)
        tasks = _tasks(parts, found)
        groups = [self._group([tasks[each] for each in chosen.tolist()]) for chosen in found]
        return in_job_order(groups, self._policy.rewrite_job_order)

    def _candidates(self) -> Iterator[Candidates]:
        only = self._only
        planner = self._scan.planner()
        if planner is None:
            return
        if self._policy.row_filter is not None:
            # A plan with a filter leaves out deletes that cannot match. So this plan only selects the files, and
            # another plan has the deletes.
            matching = self._scan.filter(self._policy.filter).planner()
            assert matching is not None
            paths = [_paths(planned) for planned in matching.files()]
            named = pa.concat_arrays(paths) if paths else pa.array([], pa.string())
            only = named if only is None else named.filter(pc.is_in(named, value_set=only))
        for planned in planner.files():
            mask, heavy, dead = self._judged(planned)
            if only is not None:
                mask &= np.asarray(pc.is_in(_paths(planned), value_set=only))
            rows = np.flatnonzero(mask)
            if len(rows):
                yield Candidates(planned.entries.take(rows), planned.deletes, rows, heavy[rows], dead[rows])

    def _judged(self, planned: PlannedFiles) -> tuple[Mask, Mask, Ints]:
        """The masks of files that are worth rewriting, and that are so even alone; and the bytes of deleted rows."""
        policy, entries = self._policy, planned.entries
        sizes = np.asarray(entries.column(f.FILE_SIZE))
        heavy, dead = np.full(len(entries), policy.rewrite_all), np.zeros(len(entries), np.int64)
        if planned.deletes is not None:
            if policy.delete_file_threshold is not None:
                heavy |= planned.deletes.counts() >= policy.delete_file_threshold
            rows, gone = np.asarray(entries.column(f.RECORD_COUNT)), planned.deletes.known_deleted_rows()
            heavy |= (gone > 0) & (gone >= policy.delete_ratio_threshold * np.maximum(rows, 0))
            dead = (sizes * np.clip(gone / np.maximum(rows, 1), 0, 1)).astype(np.int64)
        return heavy | (sizes < self._sizes.least) | (sizes > self._sizes.most), heavy, dead

    def _partitions(self, parts: Sequence[Candidates]) -> Ints:
        """A number for the partition of each file. All files with another spec than the new files share one number."""
        numbers = np.full(sum(len(part.entries) for part in parts), -1, np.int64)
        current = np.concatenate([np.full(len(p.entries), p.entries.spec_id == self._spec.spec_id) for p in parts])
        if current.any():
            tuples = [part.entries.partition for part in parts if part.entries.spec_id == self._spec.spec_id]
            numbers[current] = tuple_groups(pa.concat_arrays(tuples))[0]
        return numbers

    def _group(self, tasks: list[FileScanTask]) -> FileGroup:
        respecified = any(task.spec_id != self._spec.spec_id for task in tasks)
        partition = ""
        if not respecified and self._spec.fields:
            partition = self._spec.partition_path(self.metadata.schema(), tasks[0].file.partition)
        return FileGroup(tuple(tasks), partition, respecified)


def most_gainful(groups: Sequence[Ints], sizes: Ints, dead: Ints, heavy: Mask, target: int, most: int) -> list[Ints]:
    """The groups that gain most for each byte, of at most ``most`` bytes in all; a group that does not fit is divided.

    Groups are positions in the other arrays. A part has the smallest files of its group, and its heavy ones: at least
    two files, or one that is heavy or above the target.
    """

    def gain(group: Ints) -> float:
        total = max(1, int(sizes[group].sum()))
        return float((len(group) - -(-total // target)) * REQUEST_BYTES + int(dead[group].sum())) / total

    chosen, left = [], most
    for group in sorted(groups, key=gain, reverse=True):
        ordered = group[np.argsort(sizes[group] - dead[group], kind="stable")]
        part = ordered[np.cumsum(sizes[ordered]) <= left]
        if len(part) > 1 or heavy[part].any() or (sizes[part] > target).any():
            chosen.append(np.sort(part))
            left -= int(sizes[part].sum())
    return chosen


def in_job_order(groups: list[FileGroup], order: str) -> list[FileGroup]:
    """Groups by their bytes or files, ascending or descending; ``none`` leaves them."""
    measure, _, direction = order.partition("-")
    if not direction:
        return groups
    return sorted(
        groups,
        key=lambda group: group.nbytes if measure == "bytes" else len(group.tasks),
        reverse=direction == "desc",
    )


def _tasks(parts: Sequence[Candidates], groups: Sequence[Ints]) -> dict[int, FileScanTask]:
    """The tasks of the files in groups, by their positions in all parts. A manifest's files are made in one step."""
    wanted = np.sort(np.concatenate([np.empty(0, np.int64), *groups]))
    found: dict[int, FileScanTask] = {}
    end = 0
    for part in parts:
        start, end = end, end + len(part.entries)
        positions = wanted[slice(*np.searchsorted(wanted, (start, end)))]
        chosen = part.entries.take(positions - start)
        numbers: list[Any] = chosen.column(f.SEQUENCE_NUMBER).to_pylist()
        rows = part.rows[positions - start].tolist()
        for position, row, number, file in zip(positions.tolist(), rows, numbers, chosen.data_files(), strict=True):
            deletes = () if part.deletes is None else part.deletes.files(row)
            found[position] = FileScanTask(file, delete_files=deletes, data_sequence_number=number)
    return found


def _paths(planned: PlannedFiles) -> pa.Array:
    return planned.entries.column(f.FILE_PATH)


def pack(sizes: Sequence[int], most: int, lookback: int) -> list[list[int]]:
    """Pack sizes into bins of at most ``most``, first fit among ``lookback`` open bins, and return their positions.

    A larger size has a bin to itself.
    """
    done: list[list[int]] = []
    open_bins: list[tuple[int, list[int]]] = []
    for place, size in enumerate(sizes):
        for number, (held, members) in enumerate(open_bins):
            if held + size <= most:
                members.append(place)
                open_bins[number] = (held + size, members)
                break
        else:
            open_bins.append((size, [place]))
            if len(open_bins) > lookback:
                fullest = max(range(lookback), key=lambda one: open_bins[one][0])
                done.append(open_bins.pop(fullest)[1])
    return done + [members for _, members in open_bins]
