"""A simulator of maintenance: it replays a history of commits, and sums the costs of scans and rewrites.

A partition is a list of data files with bytes, rows and deleted rows, and a number of delete files. Files are chosen
for a rewrite by the rules of compaction. Scans come evenly and read the newest partitions. Deletes fall evenly on the
rows of a partition. If a commit removes a file that a rewrite has merged, the largest file loses as many rows. The
simulator leaves out manifests, caches, and rewrites that lose to writers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from icefield.errors import InvalidArgument

from icefield_maintenance.compaction.planning import pack
from icefield_maintenance.compaction.policy import Sizes
from icefield_maintenance.tend.costs import REQUEST_BYTES
from icefield_maintenance.tend.goals import Goals

_LOOKBACK: Final = 10
_HOURS_PER_DAY: Final = 24
_MOST_FILES: Final = 1_000_000

_SAME: Final = 0.5
"""A smaller difference of two numbers of rows comes from rounding."""

_DELETE_BYTES: Final = 12
"""The bytes of one deleted position in a delete file, about."""


@dataclass(frozen=True, slots=True)
class SimulatedCommit:
    """A change of one partition, ``hour`` hours after the start: new files, and deleted rows of older files.

    ``removed`` are the rows of each data file that it removes. ``delete_files`` are the new delete files without those
    that it removes. Partitions are numbered by their age, the oldest first.
    """

    hour: float
    partition: int
    sizes: tuple[int, ...] = ()
    rows: int = 0
    deleted_rows: int = 0
    delete_files: int = 0
    removed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The commits of a table in the order of time, and its scans: how many a day, of how many newest partitions.

    ``target`` is the target size of data files in bytes, where no goal states it.
    """

    commits: Sequence[SimulatedCommit]
    scans_per_day: float = 24.0
    scanned_partitions: int = 7
    target: int = 512 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The maintenance of a simulated table: at its goals each ``every`` hours. ``rewrites_all``: every file, always."""

    goals: Goals
    every: float = 1.0
    rewrites_all: bool = False


NIGHTLY: Final = Schedule(goals=Goals(files_per_scan=1), every=_HOURS_PER_DAY, rewrites_all=True)
"""A full compaction each night."""

NEVER: Final = Schedule(goals=Goals(), every=1e9)
"""No maintenance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCosts:
    """The costs of a schedule: requests and bytes of all scans, and the rewritten bytes and data files.

    ``debt`` is the mean number of files, beyond those that the bytes need, that a scan opened.
    """

    scan_requests: float = 0.0
    scan_bytes: float = 0.0
    rewritten_bytes: int = 0
    rewritten_files: int = 0
    debt: float = 0.0

    @property
    def scan_cost(self) -> float:
        """The cost of all scans as a number of bytes; see ``REQUEST_BYTES``."""
        return self.scan_bytes + REQUEST_BYTES * self.scan_requests

    def __add__(self, other: SimulatedCosts) -> SimulatedCosts:
        return SimulatedCosts(
            scan_requests=self.scan_requests + other.scan_requests,
            scan_bytes=self.scan_bytes + other.scan_bytes,
            rewritten_bytes=self.rewritten_bytes + other.rewritten_bytes,
            rewritten_files=self.rewritten_files + other.rewritten_files,
            debt=self.debt + other.debt,
        )


@dataclass(slots=True)
class _SimulatedFiles:
    """The files of a partition: parallel lists of bytes, rows and deleted rows, and the number of delete files."""

    sizes: list[int] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    deleted: list[float] = field(default_factory=list)
    delete_files: int = 0

    def add(self, commit: SimulatedCommit) -> None:
        for rows in commit.removed:
            self._remove(rows)
        if commit.deleted_rows and (live := sum(self.rows) - sum(self.deleted)) > 0:
            share = min(1.0, commit.deleted_rows / live)
            self.deleted = [gone + share * (rows - gone) for rows, gone in zip(self.rows, self.deleted, strict=True)]
            self.delete_files += commit.delete_files
        else:
            self.delete_files += min(0, commit.delete_files)
        self.delete_files = max(0, self.delete_files) if any(self.deleted) else 0
        total = sum(commit.sizes)
        for size in commit.sizes:
            self.sizes.append(size)
            self.rows.append(commit.rows * (size / total if total else 1 / len(commit.sizes)))
            self.deleted.append(0.0)

    def _remove(self, rows: float) -> None:
        """Remove the file with so many rows. Without such a file, the largest ones lose the rows."""
        at = next((at for at, held in enumerate(self.rows) if abs(held - rows) < _SAME), None)
        while rows > 0 and max(self.rows, default=0) > 0:
            at = max(range(len(self.rows)), key=self.rows.__getitem__) if at is None else at
            held, left = self.rows[at], max(0.0, 1 - rows / self.rows[at])
            rows -= held
            if left * held < _SAME:
                del self.sizes[at], self.rows[at], self.deleted[at]
            else:
                self.sizes[at] = int(left * self.sizes[at])
                self.rows[at] *= left
                self.deleted[at] *= left
            at = None

    def compact(self, goals: Goals, sizes: Sizes, *, rewrites_all: bool) -> tuple[int, int]:
        """Rewrite files by the rules of compaction; return the rewritten bytes and files."""
        if goals.files_per_scan is None and goals.deleted_rows is None:
            return 0, 0
        ratio = goals.deleted_rows or 1.0
        least = 1 << 62 if goals.files_per_scan is None else goals.files_per_scan + 1
        heavy = [
            rewrites_all or (gone > 0 and gone >= ratio * rows)
            for rows, gone in zip(self.rows, self.deleted, strict=True)
        ]
        chosen = [at for at, size in enumerate(self.sizes) if heavy[at] or not sizes.least <= size <= sizes.most]
        rewritten = 0
        gone: set[int] = set()
        for members in pack([self.sizes[at] for at in chosen], sizes.group, _LOOKBACK):
            group = [chosen[at] for at in members]
            total = sum(self.sizes[at] for at in group)
            if sizes.is_worth_it(total, len(group), least, is_heavy=any(heavy[at] for at in group)):
                rewritten += total
                gone.update(group)
                self._write(group, sizes)
        if gone:
            kept = [at for at in range(len(self.sizes)) if at not in gone]
            self.sizes = [self.sizes[at] for at in kept]
            self.rows = [self.rows[at] for at in kept]
            self.deleted = [self.deleted[at] for at in kept]
            if not any(self.deleted):
                self.delete_files = 0
        return rewritten, len(gone)

    def _write(self, group: list[int], sizes: Sizes) -> None:
        """Add the files that take the place of a group, without its deleted rows."""
        rows = sum(self.rows[at] - self.deleted[at] for at in group)
        held = sum(self.rows[at] for at in group)
        total = int(sum(self.sizes[at] for at in group) * (rows / held if held else 1.0))
        count = -(-total // sizes.output(total))
        if len(self.sizes) + count > _MOST_FILES:  # metadata may state any sizes
            raise InvalidArgument(f"a partition of the history has more than {_MOST_FILES:,} files after a rewrite")
        for _ in range(count):
            self.sizes.append(total // count)
            self.rows.append(rows / count)
            self.deleted.append(0.0)

    def pack_deletes(self, goals: Goals) -> int:
        """Pack delete files; return the rewritten bytes."""
        if goals.delete_files is None or self.delete_files <= goals.delete_files:
            return 0
        self.delete_files = 1
        return int(_DELETE_BYTES * sum(self.deleted))

    def cost(self, target: int) -> tuple[int, int, int]:
        """The requests and the bytes of a scan, and the files beyond those that the bytes need."""
        total = sum(self.sizes)
        requests = len(self.sizes) + self.delete_files
        return requests, total, max(0, requests - (-(-total // target)))


class _Simulation:
    """A table on its way through time."""

    def __init__(self, history: History, schedule: Schedule, hours: float) -> None:
        self._history, self._schedule, self._hours = history, schedule, hours
        self._target = schedule.goals.bytes_per_file or history.target
        self._sizes = Sizes.around(self._target)
        self._partitions: dict[int, _SimulatedFiles] = {}
        self._costs: dict[int, tuple[int, int, int]] = {}
        self._changed: set[int] = set()
        self._scan = (0, 0, 0)
        self._sums = [0.0, 0.0, 0.0]
        self._rewritten = self._rewritten_files = 0
        self._now, self._next = 0.0, schedule.every

    def run(self) -> SimulatedCosts:
        for commit in self._history.commits:
            if commit.hour > self._hours:
                break
            self._maintain_until(commit.hour)
            self._partitions.setdefault(commit.partition, _SimulatedFiles()).add(commit)
            self._changed.add(commit.partition)
            self._note(commit.partition)
        self._maintain_until(self._hours)
        requests, nbytes, debt = self._sums
        scans = self._history.scans_per_day / _HOURS_PER_DAY
        return SimulatedCosts(
            scan_requests=requests * scans,
            scan_bytes=nbytes * scans,
            rewritten_bytes=self._rewritten,
            rewritten_files=self._rewritten_files,
            debt=debt / self._hours,
        )

    def _maintain_until(self, hour: float) -> None:
        """Let time pass to an hour, with the maintenance that is due until then."""
        while self._next <= hour and self._next < self._hours:
            self._pass(self._next - self._now)
            self._now, self._next = self._next, self._next + self._schedule.every
            self._maintain()
        self._pass(hour - self._now)
        self._now = hour

    def _maintain(self) -> None:
        schedule = self._schedule
        for number in [*self._partitions] if schedule.rewrites_all else sorted(self._changed):
            files = self._partitions[number]
            nbytes, count = files.compact(schedule.goals, self._sizes, rewrites_all=schedule.rewrites_all)
            self._rewritten += nbytes + files.pack_deletes(schedule.goals)
            self._rewritten_files += count
            self._note(number)
        self._changed.clear()

    def _note(self, number: int) -> None:
        """Renew the cost of a scan after a change of a partition."""
        self._costs[number] = self._partitions[number].cost(self._target)
        newest = sorted(self._costs)[-self._history.scanned_partitions :]
        if number >= newest[0]:
            scanned = [self._costs[each] for each in newest]
            self._scan = (sum(c[0] for c in scanned), sum(c[1] for c in scanned), sum(c[2] for c in scanned))

    def _pass(self, hours: float) -> None:
        self._sums = [held + hours * each for held, each in zip(self._sums, self._scan, strict=True)]


def simulate(histories: Iterable[History], schedule: Schedule, *, days: float = 30.0) -> SimulatedCosts:
    """The costs of tables with such histories under a schedule; ``debt`` is summed over the tables.

    Raises ``InvalidArgument`` if a rewrite makes more than a million files of a partition.
    """
    costs = SimulatedCosts()
    for history in histories:
        costs += _Simulation(history, schedule, days * _HOURS_PER_DAY).run()
    return costs


def searched(
    histories: Sequence[History], most_bytes: float, *, days: float = 30.0
) -> tuple[Schedule, SimulatedCosts] | None:
    """The schedule with the least cost of scans among all of a grid that rewrite at most so many bytes.

    The grid has the goals that a simulation knows, and the time between two runs. None if no schedule keeps the limit.
    """
    has_deletes = any(commit.deleted_rows for history in histories for commit in history.commits)
    shares: Sequence[float | None] = (0.05, 0.1, 0.2, 0.4) if has_deletes else (None,)
    packed: Sequence[int | None] = (2, 8) if has_deletes else (None,)
    best: tuple[Schedule, SimulatedCosts] | None = None
    for files, share, most, every in product((1, 2, 3, 4, 6, 8, 12, 24, 48), shares, packed, (1, 3, 6, 12, 24)):
        schedule = Schedule(goals=Goals(files_per_scan=files, deleted_rows=share, delete_files=most), every=every)
        costs = simulate(histories, schedule, days=days)
        if costs.rewritten_bytes <= most_bytes and (best is None or costs.scan_cost < best[1].scan_cost):
            best = schedule, costs
    return best
