"""What was done once and must not be done again, kept where the expiry of snapshots does not reach.

The epochs of streams, and what was published of staged changes, are named by the summaries of snapshots, as with
Iceberg's Java runtime, and looked up among the ancestors of a branch. Once expiry has cut that line off, whoever ran
it, only what the table itself holds is left: two properties for each branch, set by the very commit that adds the
snapshot. A summary that each commit carries on would be lost with the first commit of another engine; snapshots that
expiry keeps, with the first expiry of another engine. Each property holds the latest entries only, up to 3,500
characters (some 50 entries), which fits the columns of old Hive metastores.

An entry counts only for a line that is cut off behind it. Where the line reaches back to the time of the entry, or to
the first snapshot, and does not hold its snapshot, the branch was rolled back, and the change may be made again. A
branch that is moved, created or renamed here takes the memory of its new line along. Where another engine rolls one
back, and all that is older than its next commits expires, the change counts as made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Final

import msgspec

from icefield.errors import InvalidMetadata
from icefield.metadata.snapshots import PUBLISHED_WAP_ID, SOURCE_SNAPSHOT_ID, STAGED_WAP_ID, Snapshot
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates import RemoveProperties, SetProperties, TableUpdate

STREAM_QUERY_ID: Final = "spark.sql.streaming.queryId"
"""Key of a summary: the streaming query that the snapshot holds an epoch of."""

STREAM_EPOCH_ID: Final = "spark.sql.streaming.epochId"
"""Key of a summary: the number of that epoch."""

_EPOCHS: Final = "icefield.epochs."
_PUBLISHED: Final = "icefield.published."
_MOST_CHARACTERS: Final = 3_500
_LONGEST_NAME: Final = 100

_Entry = tuple[int, int, int]
"""The number of the epoch, or the id of the snapshot that published; the snapshot's sequence number and its time."""


def is_memory(name: str) -> bool:
    """Whether a table property is one that remembers, and none that somebody set."""
    return name.startswith((_EPOCHS, _PUBLISHED))


def remembering(base: TableMetadata, branch: str, snapshots: Iterable[Snapshot]) -> tuple[SetProperties, ...]:
    """The update by which a table remembers what snapshots of a branch did, the oldest first; none where nothing is."""
    made: dict[str, dict[str, _Entry]] = {}
    for snapshot in snapshots:
        for key, name, number in _deeds(snapshot):
            held = made.setdefault(key + branch, _held(base, key + branch))
            entry = (number, snapshot.sequence_number, snapshot.timestamp_ms)
            if name not in held or held[name][1:] <= entry[1:]:
                held.pop(name, None)
                held[name] = entry
    changed = {key: _encoded(held) for key, held in made.items()}
    changed = {key: string for key, string in changed.items() if base.properties.get(key) != string}
    return (SetProperties(changed),) if changed else ()


def following(base: TableMetadata, moved: Mapping[str, int | None]) -> tuple[TableUpdate, ...]:
    """The updates by which branches remember what the lines hold that they are moved to, and no more.

    ``moved``: the snapshots that branches are set to; None for a branch that is removed.
    """
    if not any(map(is_memory, base.properties)):
        return ()
    sets: dict[str, str] = {}
    gone: list[str] = []
    for branch, snapshot_id in moved.items():
        for kind in (_EPOCHS, _PUBLISHED):
            held = {} if snapshot_id is None else _of_line(base, kind, snapshot_id)
            if held:
                sets[kind + branch] = _encoded(held)
            elif kind + branch in base.properties:
                gone.append(kind + branch)
    sets = {key: string for key, string in sets.items() if base.properties.get(key) != string}
    return (*((SetProperties(sets),) if sets else ()), *((RemoveProperties(tuple(gone)),) if gone else ()))


def _of_line(base: TableMetadata, kind: str, snapshot_id: int) -> dict[str, _Entry]:
    """What branches whose line goes through a snapshot remember of it and of those before it."""
    snapshot, found = base.snapshot_by_id(snapshot_id), dict[str, _Entry]()
    if snapshot is None:
        return found
    until = (snapshot.sequence_number, snapshot.timestamp_ms)
    for name, ref in base.refs.items():
        if ref.is_branch and kind + name in base.properties and snapshot_id in base.ancestor_ids(ref.snapshot_id):
            held = _held(base, kind + name)
            found |= {
                key: entry
                for key, entry in held.items()
                if entry[1:] <= until and (key not in found or found[key][1:] < entry[1:])
            }
    return dict(sorted(found.items(), key=lambda item: item[1][1:]))


def last_epoch(metadata: TableMetadata, branch: str, query: str) -> tuple[int, Snapshot | None] | None:
    """The last epoch of a streaming query that a branch holds, and its snapshot, which may have expired."""
    oldest: Snapshot | None = None
    for oldest in _line(metadata, branch):
        if oldest.summary.get(STREAM_QUERY_ID) == query and oldest.summary.get(STREAM_EPOCH_ID, "").isdecimal():
            return int(oldest.summary[STREAM_EPOCH_ID]), oldest
    number = _recalled(metadata, _EPOCHS + branch, query, oldest)
    return None if number is None else (number, None)


def published_by(metadata: TableMetadata, branch: str, snapshot_id: int, wap_id: str | None) -> tuple[str, int] | None:
    """What a branch holds already of a staged change: the key of its summary, and the id of the snapshot that did it.

    The key is ``source-snapshot-id`` where that very snapshot was taken over, ``wap.id`` where one of its name was.
    """
    oldest: Snapshot | None = None
    for oldest in _line(metadata, branch):
        summary = oldest.summary
        if summary.get(SOURCE_SNAPSHOT_ID) == str(snapshot_id):
            return SOURCE_SNAPSHOT_ID, oldest.snapshot_id
        if wap_id and wap_id in (summary.get(STAGED_WAP_ID), summary.get(PUBLISHED_WAP_ID)):
            return STAGED_WAP_ID, oldest.snapshot_id
    asked = {SOURCE_SNAPSHOT_ID: str(snapshot_id), STAGED_WAP_ID: wap_id}
    for key, name in asked.items():
        number = _recalled(metadata, _PUBLISHED + branch, f"{key}:{name}", oldest) if name else None
        if number is not None:
            return key, number
    return None


def _line(metadata: TableMetadata, branch: str) -> Iterator[Snapshot]:
    head = metadata.snapshot_by_name(branch)
    return iter(()) if head is None else metadata.ancestors(head.snapshot_id)


def _deeds(snapshot: Snapshot) -> Iterator[tuple[str, str, int]]:
    """Which property is to remember what of a snapshot, and the number of the entry."""
    summary = snapshot.summary
    query, epoch = summary.get(STREAM_QUERY_ID), summary.get(STREAM_EPOCH_ID, "")
    if query and epoch.isdecimal():
        yield _EPOCHS, _short(query), int(epoch)
    for name in {summary.get(STAGED_WAP_ID), summary.get(PUBLISHED_WAP_ID)} - {None, ""}:
        yield _PUBLISHED, _short(f"{STAGED_WAP_ID}:{name}"), snapshot.snapshot_id
    if summary.get(SOURCE_SNAPSHOT_ID):
        yield _PUBLISHED, _short(f"{SOURCE_SNAPSHOT_ID}:{summary[SOURCE_SNAPSHOT_ID]}"), snapshot.snapshot_id


def _recalled(metadata: TableMetadata, key: str, name: str, oldest: Snapshot | None) -> int | None:
    """The number of an entry, where it is of before the oldest snapshot that is left of a line."""
    if oldest is None or oldest.parent_snapshot_id is None:
        return None
    entry = _held(metadata, key).get(_short(name))
    if entry is None:
        return None
    number, sequence_number, timestamp_ms = entry
    if sequence_number or oldest.sequence_number:
        return number if sequence_number < oldest.sequence_number else None
    return number if timestamp_ms <= oldest.timestamp_ms else None  # version 1 numbers no commits


def _held(metadata: TableMetadata, key: str) -> dict[str, _Entry]:
    """The entries of a property. Raises ``InvalidMetadata`` for what holds none."""
    try:
        return msgspec.json.decode(metadata.properties.get(key, "{}"), type=dict[str, _Entry])
    except (msgspec.DecodeError, RecursionError):
        raise InvalidMetadata(
            f"table property '{key}' does not hold what Icefield keeps there: remove it, once no stream or publication "
            "of before may be run again"
        ) from None


def _encoded(held: Mapping[str, _Entry]) -> str:
    """The latest entries that have room."""
    entries = list(held.items())
    while len(string := msgspec.json.encode(dict(entries)).decode()) > _MOST_CHARACTERS:
        del entries[0]
    return string


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"sha256:{sha256(name.encode()).hexdigest()}"
