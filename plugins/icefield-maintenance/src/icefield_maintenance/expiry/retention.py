"""The choice of snapshots, branches and tags of a table to expire.

See "Snapshot Retention Policy" of the table specification. Java keeps an unreferenced snapshot that is young, too, and
so does this: it may have been staged by a writer that is about to publish it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral

from icefield.errors import InvalidArgument
from icefield.metadata import (
    GC_ENABLED,
    LONG_MAX,
    MAIN_BRANCH,
    MAX_REF_AGE_MS,
    MAX_SNAPSHOT_AGE_MS,
    MIN_SNAPSHOTS_TO_KEEP,
    SnapshotRef,
    TableMetadata,
    Timestamp,
    as_milliseconds,
    get_bool,
    get_int,
)


@dataclass(frozen=True, slots=True)
class Retention:
    """The caller's options of an expiry, with times in ms since 1970 UTC. Ages count from ``now_ms``.

    ``older_than_ms`` and ``retain_last`` override the table's properties, but not the settings of a branch.
    """

    now_ms: int
    older_than_ms: int | None = None
    retain_last: int | None = None
    snapshot_ids: frozenset[int] = frozenset()

    @classmethod
    def asked(
        cls, now_ms: int, older_than: Timestamp | None, retain_last: int | None, snapshot_ids: Iterable[int]
    ) -> Retention:
        """Make it from a user's arguments. Raises ``InvalidArgument``."""
        if retain_last is not None and (not _is_int(retain_last) or not 0 < retain_last <= LONG_MAX):
            raise InvalidArgument(f"retain_last is a number of snapshots, 1 or more, not {retain_last!r}")
        before = None if older_than is None else as_milliseconds(older_than)
        return cls(now_ms, before, retain_last, _ids(snapshot_ids))

    @property
    def by_age(self) -> bool:
        """Whether snapshots expire by age and number. If only ids are given, only these snapshots expire."""
        return not self.snapshot_ids or self.older_than_ms is not None or self.retain_last is not None


@dataclass(frozen=True, slots=True)
class Expired:
    """The snapshots, branches and tags that expire."""

    snapshot_ids: frozenset[int] = frozenset()
    refs: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.snapshot_ids or self.refs)


def expired(metadata: TableMetadata, asked: Retention) -> Expired:
    """The snapshots, branches and tags that expire in a version of a table.

    Raises ``InvalidArgument`` for an id that a branch or tag names, and for a table with ``gc.enabled=false``. Unknown
    ids are ignored.
    """
    if not get_bool(metadata.properties, GC_ENABLED):
        raise InvalidArgument(
            f"snapshots of table {metadata.location} do not expire: its property '{GC_ENABLED.name}' is false, since "
            "other tables may share its files; set it to true if none does",
            location=metadata.location,
        )
    dropped = _refs_beyond_age(metadata, asked) if asked.by_age else []
    refs = {name: ref for name, ref in metadata.refs.items() if name not in dropped}
    known = metadata.snapshots.positions.keys()
    gone = set(known - _retained(metadata, refs, asked)) if asked.by_age else set()
    by_id = asked.snapshot_ids & known
    for name, ref in refs.items():
        if ref.snapshot_id in by_id:
            raise InvalidArgument(
                f"snapshot {ref.snapshot_id} cannot expire: the {ref.type} '{name}' refers to it",
                snapshot_id=ref.snapshot_id,
                ref=name,
            )
    return Expired(frozenset(gone | by_id), tuple(dropped))


def _refs_beyond_age(metadata: TableMetadata, asked: Retention) -> list[str]:
    longest = get_int(metadata.properties, MAX_REF_AGE_MS)
    found = []
    for name, ref in metadata.refs.items():
        allowed = longest if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        if name != MAIN_BRANCH and asked.now_ms - _time(metadata, ref.snapshot_id) > allowed:
            found.append(name)
    return found


def _retained(metadata: TableMetadata, refs: dict[str, SnapshotRef], asked: Retention) -> set[int]:
    """The snapshots that branches and tags keep, and young snapshots outside of all branches."""
    older_than = asked.older_than_ms
    if older_than is None:
        older_than = asked.now_ms - get_int(metadata.properties, MAX_SNAPSHOT_AGE_MS)
    least = asked.retain_last or get_int(metadata.properties, MIN_SNAPSHOTS_TO_KEEP)
    retained: set[int] = set()
    held: set[int] = set()
    followed: dict[tuple[int, int], int] = {}
    """By snapshot and age limit: how many snapshots from there on an earlier branch kept by their number."""
    for ref in refs.values():
        if ref.is_tag:
            retained.add(ref.snapshot_id)
            continue
        limit = older_than if ref.max_snapshot_age_ms is None else asked.now_ms - ref.max_snapshot_age_ms
        count = least if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
        keeps = True
        for number, ancestor in enumerate(metadata.ancestor_ids(ref.snapshot_id)):
            keeps = keeps and (number < count or _time(metadata, ancestor) >= limit)
            if keeps:
                left = max(count - number, 0)
                if followed.get((ancestor, limit), -1) >= left:
                    break  # an earlier branch kept as much from here on
                followed[ancestor, limit] = left
                retained.add(ancestor)
            elif ancestor in held:
                break  # its ancestors are held already
            held.add(ancestor)
    for record in metadata.snapshots.records:
        if record.snapshot_id not in held and record.timestamp_ms >= older_than:
            retained.add(record.snapshot_id)
    return retained


def _time(metadata: TableMetadata, snapshot_id: int) -> int:
    found: int = metadata.snapshots.records[metadata.snapshots.positions[snapshot_id]].timestamp_ms
    return found


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _ids(snapshot_ids: Iterable[int]) -> frozenset[int]:
    given = [snapshot_ids] if isinstance(snapshot_ids, Integral) else [*snapshot_ids]
    for each in given:
        if not isinstance(each, Integral) or isinstance(each, bool):
            raise InvalidArgument(f"a snapshot is named by its id, which is a number, not by {each!r}")
    return frozenset(int(each) for each in given)
