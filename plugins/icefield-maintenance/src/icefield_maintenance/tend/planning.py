"""The plan for a table: the operations that bring it to its goals, each with its reason, gain and cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from icefield.errors import IcefieldError, InvalidArgument
from icefield.manifest import read_manifest_list
from icefield.metadata import GC_ENABLED, LONG_MAX, WRITE_TARGET_FILE_SIZE, TableMetadata, get_bool, get_int

from icefield_maintenance import gains
from icefield_maintenance.compaction.policy import STREAMED_GROUP_BYTES
from icefield_maintenance.expiry.retention import Retention, expired
from icefield_maintenance.gains import Gain
from icefield_maintenance.properties import TEND_ENABLED
from icefield_maintenance.tend.costs import ScanCost, scan_cost, total
from icefield_maintenance.tend.goals import Goals, goals_in
from icefield_maintenance.tend.lease import TableLease
from icefield_maintenance.tend.policy import Erasure, Policy
from icefield_maintenance.tend.quantities import FileSize

if TYPE_CHECKING:
    from icefield import Table

_DAY_MS: Final = 86_400_000
_HOUR_MS: Final = 3_600_000
_ALL: Final = 1 << 62
_WORTH_IT: Final = 0.1
"""The share of the snapshots that makes an expiry worth its commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An operation that a table needs: a method of ``table.maintenance`` with its keywords, and the reason.

    ``gain`` is the cost by which a scan of the whole table falls, and ``rewritten_bytes`` the bytes that the operation
    reads to rewrite them. ``is_urgent``: it waits for no window, and no budget limits it. With a ``fault``, a part of
    the plan could not be made, and there is nothing to carry out. ``part`` makes a decision for a part of the work, of
    at most so many rewritten bytes; None if no part is so small.
    """

    operation: str
    reason: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    gain: ScanCost = field(default_factory=ScanCost)
    rewritten_bytes: int = 0
    is_urgent: bool = False
    fault: str = ""
    part: Callable[[Table, int], Decision | None] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def impossible(cls, fault: str) -> Self:
        """A part of a plan that could not be made."""
        return cls(operation="plan", reason="the table was planned", fault=fault)


INTERRUPTED: Final = Decision(
    operation="expire_snapshots",
    reason="a process that maintained the table has ended early: its expiry may have left files",
    options={"older_than": 0},
)


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The decisions for a table, in the order in which they are carried out."""

    table: tuple[str, ...]
    decisions: tuple[Decision, ...]

    @property
    def gain(self) -> ScanCost:
        """The cost by which a scan falls."""
        return sum((each.gain for each in self.decisions), ScanCost())

    @property
    def rewritten_bytes(self) -> int:
        """The bytes that all operations rewrite."""
        return sum(each.rewritten_bytes for each in self.decisions)

    @property
    def rank(self) -> tuple[bool, float]:
        """The rank among the tables, the lowest first: urgent plans, then the gain of each rewritten byte."""
        return not any(each.is_urgent for each in self.decisions), -self.gain.weight / (self.rewritten_bytes + 1)

    @property
    def can_be_carried_out(self) -> bool:
        """Whether the plan has an operation: not all decisions are faults."""
        return not all(each.fault for each in self.decisions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The parts of a table's record that a plan depends on.

    These are the time of the last search for orphans, and the reasons of the finished erasures.
    """

    orphans_ms: int | None = None
    erasures: frozenset[str] = frozenset()


def decisions(
    table: Table, goals: Goals, now_ms: int, done: Done, erasures: Sequence[Erasure] = ()
) -> Iterator[Decision]:
    """The decisions for a table, one after another. Reads metadata and manifests, but no data file.

    Each follows from the version that the table has when it is asked for. So a caller that carries them out as they
    come sees the effect of the earlier ones. ``now_ms`` is in ms since 1970 UTC. A part that raises an error is a
    decision with a fault, and hinders no other part.
    """
    yield from _erasures(erasures, done, now_ms)
    if table.current_snapshot() is None:
        return
    parts: list[Callable[[], Iterator[Decision]]] = [
        *(partial(each, table, goals) for each in (_of_equality_deletes, _of_data_files)),
        *(partial(each, table, goals) for each in (_of_position_deletes, _of_manifests)),
        *(partial(each, table, goals, now_ms) for each in (_statistics, _expiry)),
        partial(_orphans, table, goals, now_ms, done),
    ]
    for part in parts:
        try:
            yield from part()
        except Exception as error:
            yield Decision.impossible(fault_of(error))


def decisions_by(
    policy: Policy, table: Table, done: Done, now_ms: int, owner: str = "", *, with_erasures: bool = True
) -> Iterator[Decision]:
    """The decisions for a table by a policy and by the table's own properties; see ``decisions``.

    Another owner's lease that is over makes an expiry that finishes its work. A property that cannot be used is a
    fault. No property of a table stops an erasure: erasures are the policy's alone.
    """
    name, goals = table.name(), Goals()
    erasures = policy.erasures_of(name) if with_erasures else []
    faults: list[str] = []
    try:
        if get_bool(table.properties, TEND_ENABLED):
            goals, faults = goals_in(table.properties, policy.goals_of(name) or Goals())
        elif not erasures:
            return
    except InvalidArgument as error:
        faults.append(str(error))
    held = TableLease.of(table.metadata)
    if held is not None and held.owner != owner and held.is_over(now_ms):
        yield INTERRUPTED
    if faults:
        yield Decision.impossible("; ".join(faults))
    yield from decisions(table, goals, now_ms, done, erasures)


def fault_of(error: Exception) -> str:
    """The message of an error, with its class for errors of other libraries."""
    return str(error) if isinstance(error, IcefieldError) else f"{type(error).__name__}: {error}"


def _erasures(erasures: Sequence[Erasure], done: Done, now_ms: int) -> Iterator[Decision]:
    for each in erasures:
        if each.reason not in done.erasures:
            yield Decision(
                operation="erase",
                reason=each.reason,
                options={"row_filter": each.where},
                is_urgent=now_ms > each.deadline_ms - _DAY_MS,
            )


def _of_data_files(table: Table, goals: Goals) -> Iterator[Decision]:
    if goals.files_per_scan is None and goals.deleted_rows is None:
        return
    options: dict[str, Any] = {
        # A partition with few files is left alone, unless its rows are deleted.
        "min_input_files": _ALL if goals.files_per_scan is None else goals.files_per_scan + 1,
        "delete_ratio_threshold": goals.deleted_rows or 1.0,
    }
    stated = get_int(table.metadata.properties, WRITE_TARGET_FILE_SIZE)
    target = FileSize.nearest(stated) if goals.bytes_per_file is None else goals.bytes_per_file
    if target != stated:
        options["target_file_size_bytes"] = int(target)
    summary = _summary(table.metadata)
    rows, deleted = total(summary.get("total-records")), total(summary.get("total-position-deletes"))
    decision = _rewrite(options, deleted / rows if rows else 0.0, table)
    if decision is not None:
        yield decision


def _rewrite(options: Mapping[str, Any], share: float, table: Table, most: int | None = None) -> Decision | None:
    """A rewrite of data files, of at most ``most`` bytes; ``share`` is the share of deleted rows."""
    limited = dict(options) if most is None else {**options, "max_rewritten_bytes": most}
    gain = gains.of_data_files(table, share, **limited) if most != 0 else None
    if gain is None:
        return None
    reason = f"{_many(gain.before, 'data file')} in {_many(gain.places, 'partition')} become about {gain.after}"
    if gain.rewritten > STREAMED_GROUP_BYTES:  # so that an end of the process loses a tenth of the work
        limited["partial_progress"] = True
    return replace(_decision(gain, reason), options=limited, part=partial(_rewrite, options, share))


def _of_equality_deletes(table: Table, goals: Goals) -> Iterator[Decision]:
    if goals.delete_files is None or _summary(table.metadata).get("total-equality-deletes") == "0":
        return
    gain = gains.of_equality_deletes(table)
    if gain is not None and gain.before > goals.delete_files:
        yield _decision(gain, f"{_many(gain.before, 'equality delete file')}, of at most {goals.delete_files}")


def _of_position_deletes(table: Table, goals: Goals) -> Iterator[Decision]:
    """Drop delete files that apply to nothing, such as after a rewrite of data files, and pack the others."""
    if goals.delete_files is None or _summary(table.metadata).get("total-delete-files") == "0":
        return
    gain = gains.of_dangling_deletes(table)
    if gain is not None and gain.before > goals.delete_files:
        yield _decision(gain, f"{_many(gain.before, 'delete file')} without a data file to apply to")
    gain = gains.of_position_deletes(table, min_input_files=goals.delete_files + 1)
    if gain is not None:
        yield _decision(gain, _many(gain.before, "small delete file"))


def _of_manifests(table: Table, goals: Goals) -> Iterator[Decision]:
    snapshot = table.current_snapshot()
    if goals.manifests is None or snapshot is None:
        return
    if len(read_manifest_list(table.io, snapshot, table.metadata).manifests) <= goals.manifests:
        return
    gain = gains.of_manifests(table)
    if gain is not None and gain.fewer > goals.manifests:
        yield _decision(gain, f"{_many(gain.before, 'manifest')} become about {gain.after}")


def _decision(gain: Gain, reason: str) -> Decision:
    return Decision(
        operation=gain.operation,
        reason=reason,
        options=gain.options,
        gain=ScanCost(gain.fewer, gain.saved),
        rewritten_bytes=min(max(0, gain.rewritten), LONG_MAX),  # manifests may state any sizes
    )


def _statistics(table: Table, goals: Goals, now_ms: int) -> Iterator[Decision]:
    metadata = table.metadata
    if goals.statistics_age is None:
        return
    kinds: dict[str, Sequence[Any]] = {"compute_table_stats": metadata.statistics}
    if metadata.spec().fields:
        kinds["compute_partition_stats"] = metadata.partition_statistics
    for operation, files in kinds.items():
        snapshots = [metadata.snapshot_by_id(each.snapshot_id) for each in files]
        newest = max((each.timestamp_ms for each in snapshots if each is not None), default=None)
        is_current = any(each.snapshot_id == metadata.current_snapshot_id for each in files)
        if is_current or (newest is not None and now_ms - newest <= goals.statistics_age):
            continue
        age = "there are none" if newest is None else f"they are {_hours(now_ms - newest)} old"
        reads = scan_cost(metadata).bytes if operation == "compute_table_stats" else 0
        yield Decision(operation=operation, reason=f"statistics: {age}", rewritten_bytes=reads)


def _expiry(table: Table, goals: Goals, now_ms: int) -> Iterator[Decision]:
    metadata = table.metadata
    if not get_bool(metadata.properties, GC_ENABLED) or (goals.snapshot_age is None and goals.snapshots is None):
        return
    # A time of 0 lets no snapshot expire by age, but branches and tags do, as their own properties say.
    options: dict[str, Any] = {"older_than": 0 if goals.snapshot_age is None else now_ms - goals.snapshot_age}
    gone = expired(metadata, Retention(now_ms, options["older_than"]))
    many = _beyond_number(metadata, goals, now_ms) - gone.snapshot_ids
    if many:
        options["snapshot_ids"] = sorted(many)
    count = len(gone.snapshot_ids) + len(many)
    if count >= _WORTH_IT * len(metadata.snapshots) or gone.refs:
        reason = f"beyond the age or number: {_many(count, 'snapshot')}"
        yield Decision(operation="expire_snapshots", reason=reason, options=options)


def _beyond_number(metadata: TableMetadata, goals: Goals, now_ms: int) -> frozenset[int]:
    """The snapshots of ``main`` beyond their number that nothing else retains. Staged writes are not of ``main``."""
    if goals.snapshots is None or metadata.current_snapshot_id is None:
        return frozenset()
    ancestors = [*metadata.ancestor_ids(metadata.current_snapshot_id)]
    oldest = metadata.snapshot_by_id(ancestors[: goals.snapshots][-1])
    if len(ancestors) <= goals.snapshots or oldest is None:
        return frozenset()
    return expired(metadata, Retention(now_ms, oldest.timestamp_ms)).snapshot_ids.intersection(ancestors)


def _orphans(table: Table, goals: Goals, now_ms: int, done: Done) -> Iterator[Decision]:
    metadata, age = table.metadata, goals.orphan_age
    if age is None or not get_bool(metadata.properties, GC_ENABLED):
        return
    since = done.orphans_ms if done.orphans_ms is not None else metadata.snapshots[0].timestamp_ms
    if now_ms - since >= age:
        options = {"older_than": now_ms - age, "dry_run": False}
        reason = f"the last search for orphan files was {_hours(now_ms - since)} ago"
        yield Decision(operation="remove_orphan_files", reason=reason, options=options)


def _summary(metadata: TableMetadata) -> Mapping[str, str]:
    snapshot = metadata.current_snapshot()
    return {} if snapshot is None else snapshot.summary


def _hours(span_ms: int) -> str:
    return f"{span_ms / _HOUR_MS:,.0f} hours"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
