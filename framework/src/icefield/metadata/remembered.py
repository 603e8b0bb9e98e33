"""Records of committed stream epochs and published staged changes, kept in table properties that outlive snapshots.

Such a change must not be made twice. As with Iceberg's Java runtime, snapshot summaries name the epochs of streams and
the published staged changes. Writers look for them among the ancestors of a branch, which are its line. Snapshot
expiry, by any engine, cuts the line off. Therefore the commit that adds the snapshot also sets two table properties for
the branch. Other places do not last. If each commit copied the records into its summary, the first commit of another
engine would drop them. If expiry kept their snapshots, the first expiry of another engine would drop those snapshots.
Each property holds the latest entries only, up to 3,500 characters (some 50 entries), which fits the columns of old
metastores.

An entry counts only if the line of the branch no longer reaches back to it. If a line reaches back to the time of the
entry, or to the first snapshot, but lacks the entry's snapshot, the branch was rolled back. Then the change may be made
again. A branch that Icefield moves, creates or renames takes over the entries of its new line. If another engine rolls
a branch back and everything older than the branch's next commits expires, the change counts as made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import reduce
from hashlib import sha256
from typing import Final, TypeVar

import msgspec

from icefield.errors import InvalidMetadata
from icefield.metadata.snapshots import PUBLISHED_WAP_ID, SOURCE_SNAPSHOT_ID, STAGED_WAP_ID, Snapshot
from icefield.metadata.table_metadata import TableMetadata
from icefield.metadata.updates.base import TableUpdate
from icefield.metadata.updates.table import RemoveProperties, SetProperties

STREAM_QUERY_ID: Final = "spark.sql.streaming.queryId"
"""Key of a summary: the id of the streaming query that wrote the snapshot."""

STREAM_EPOCH_ID: Final = "spark.sql.streaming.epochId"
"""Key of a summary: the number of that epoch."""

_EPOCHS: Final = "icefield.epochs."
_PUBLISHED: Final = "icefield.published."
_MOST_CHARACTERS: Final = 3_500
_LONGEST_NAME: Final = 100

_Entry = tuple[int, int, int]
"""The number of the epoch or the id of the publishing snapshot; that snapshot's sequence number and its time."""

_Memory = dict[str, dict[str, _Entry]]
"""The entries of a branch by the beginning of their property's name. Not to be changed."""

_Made = TypeVar("_Made")


def is_memory(name: str) -> bool:
    """Whether a table property is one of these records, not a setting of a user."""
    return name.startswith((_EPOCHS, _PUBLISHED))


def remembering(base: TableMetadata, branch: str, snapshots: Iterable[Snapshot]) -> tuple[SetProperties, ...]:
    """The update that records the epochs and publications of snapshots, the oldest first; empty if none is new."""
    nothing: _Memory = {}
    return _stating(base, {branch: reduce(_with_deeds, snapshots, nothing)})


def remembering_expired(base: TableMetadata, branches: Iterable[str], gone: Set[int]) -> tuple[SetProperties, ...]:
    """The update that records the epochs and publications of expiring snapshots; empty if none is new.

    ``gone`` are the ids of the expiring snapshots; only lines of ``branches`` are searched.
    """

    def step(memory: _Memory, snapshot_id: int) -> _Memory:
        snapshot = base.snapshot_by_id(snapshot_id) if snapshot_id in gone else None
        return memory if snapshot is None else _with_deeds(memory, snapshot)

    heads = {branch: base.refs[branch].snapshot_id for branch in branches}
    nothing: _Memory = {}
    memories = _along_lines(base, heads.values(), nothing, step)
    return _stating(base, {branch: memories.get(head, nothing) for branch, head in heads.items()})


def branches_moved(base: TableMetadata, moved: Mapping[str, int | None]) -> tuple[TableUpdate, ...]:
    """The updates that give moved branches exactly the entries of their new lines.

    ``moved``: the snapshots that branches are set to; None for a branch that is removed.
    """
    if not any(map(is_memory, base.properties)):
        return ()
    sets: dict[str, str] = {}
    gone: list[str] = []
    memories = _of_lines(base, {target for target in moved.values() if target is not None})
    for branch, snapshot_id in moved.items():
        memory = {} if snapshot_id is None else memories[snapshot_id]
        for kind in (_EPOCHS, _PUBLISHED):
            if kind in memory:
                sets[kind + branch] = memory[kind]
            elif kind + branch in base.properties:
                gone.append(kind + branch)
    sets = {key: string for key, string in sets.items() if base.properties.get(key) != string}
    return (*((SetProperties(sets),) if sets else ()), *((RemoveProperties(tuple(gone)),) if gone else ()))


def _of_lines(base: TableMetadata, targets: Set[int]) -> dict[int, dict[str, str]]:
    """For each target snapshot, by kind, the entries of branches that contain it, without newer entries."""
    heads = {
        name: ref.snapshot_id
        for name, ref in base.refs.items()
        if ref.is_branch and any(kind + name in base.properties for kind in (_EPOCHS, _PUBLISHED))
    }

    def step(passed: tuple[int, ...], snapshot_id: int) -> tuple[int, ...]:
        return (*passed, snapshot_id) if snapshot_id in targets else passed

    none: tuple[int, ...] = ()
    passed = _along_lines(base, heads.values(), none, step)
    found: dict[int, _Memory] = {target: {} for target in targets}
    for name, head in heads.items():
        reached = passed.get(head, none)
        memory = {kind: _held(base, kind + name) for kind in (_EPOCHS, _PUBLISHED)} if reached else {}
        for target in reached:
            snapshot = base.snapshot_by_id(target)
            assert snapshot is not None
            until = (snapshot.sequence_number, snapshot.timestamp_ms)
            for kind, held in memory.items():
                made = found[target].setdefault(kind, {})
                for key, entry in held.items():
                    if entry[1:] <= until and (key not in made or made[key][1:] < entry[1:]):
                        made[key] = entry
    return {
        target: {
            kind: _encoded(dict(sorted(made.items(), key=lambda item: item[1][1:])))
            for kind, made in memory.items()
            if made
        }
        for target, memory in found.items()
    }


def _along_lines(
    base: TableMetadata, heads: Iterable[int], start: _Made, step: Callable[[_Made, int], _Made]
) -> dict[int, _Made]:
    """The result of ``step`` for each snapshot in the lines of heads, computed from the result for its parent.

    A snapshot that lines have in common is visited once.
    """
    found: dict[int, _Made] = {}
    for head in heads:
        made, new = start, list[int]()
        for snapshot_id in base.ancestor_ids(head):
            if snapshot_id in found:
                made = found[snapshot_id]
                break
            new.append(snapshot_id)
        for snapshot_id in reversed(new):
            made = found[snapshot_id] = step(made, snapshot_id)
    return found


def _with_deeds(memory: _Memory, snapshot: Snapshot) -> _Memory:
    """A memory with the epochs and publications of a snapshot; the same object if the snapshot has none."""
    made: _Memory = {}
    for kind, name, number in _deeds(snapshot):
        held = made.setdefault(kind, dict(memory.get(kind, {})))
        _enter(held, name, (number, snapshot.sequence_number, snapshot.timestamp_ms))
    return {**memory, **{kind: _latest(held) for kind, held in made.items()}} if made else memory


def _enter(held: dict[str, _Entry], name: str, entry: _Entry) -> None:
    if name not in held or held[name][1:] <= entry[1:]:
        held.pop(name, None)
        held[name] = entry


def _stating(base: TableMetadata, memories: Mapping[str, _Memory]) -> tuple[SetProperties, ...]:
    """The update that adds entries to the properties of branches; empty if the table holds them already."""
    changed: dict[str, str] = {}
    for branch, memory in memories.items():
        for kind, entries in memory.items():
            held = _held(base, kind + branch)
            for name, entry in entries.items():
                _enter(held, name, entry)
            changed[kind + branch] = _encoded(held)
    changed = {key: string for key, string in changed.items() if base.properties.get(key) != string}
    return (SetProperties(changed),) if changed else ()


def last_epoch(metadata: TableMetadata, branch: str, query: str) -> tuple[int, Snapshot | None] | None:
    """The last epoch of a streaming query that a branch holds, and its snapshot, which may have expired."""
    oldest: Snapshot | None = None
    for oldest in _line(metadata, branch):
        if oldest.summary.get(STREAM_QUERY_ID) == query and oldest.summary.get(STREAM_EPOCH_ID, "").isdecimal():
            return int(oldest.summary[STREAM_EPOCH_ID]), oldest
    number = _recalled(metadata, _EPOCHS + branch, query, oldest)
    return None if number is None else (number, None)


def published_by(metadata: TableMetadata, branch: str, snapshot_id: int, wap_id: str | None) -> tuple[str, int] | None:
    """The earlier publication of a staged change on a branch: the key of the match and the publishing snapshot's id.

    The key is ``source-snapshot-id`` if that very snapshot was published, ``wap.id`` if a change of the same name was.
    None if neither was.
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
    """The entries of a snapshot: the beginning of the property's name, the entry's key and its number."""
    summary = snapshot.summary
    query, epoch = summary.get(STREAM_QUERY_ID), summary.get(STREAM_EPOCH_ID, "")
    if query and epoch.isdecimal():
        yield _EPOCHS, _short(query), int(epoch)
    for name in {summary.get(STAGED_WAP_ID), summary.get(PUBLISHED_WAP_ID)} - {None, ""}:
        yield _PUBLISHED, _short(f"{STAGED_WAP_ID}:{name}"), snapshot.snapshot_id
    if summary.get(SOURCE_SNAPSHOT_ID):
        yield _PUBLISHED, _short(f"{SOURCE_SNAPSHOT_ID}:{summary[SOURCE_SNAPSHOT_ID]}"), snapshot.snapshot_id


def _recalled(metadata: TableMetadata, key: str, name: str, oldest: Snapshot | None) -> int | None:
    """The number of an entry that is older than the oldest remaining snapshot of a line, else None."""
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
    """The entries of a property. Raises ``InvalidMetadata`` for an undecodable value."""
    try:
        return msgspec.json.decode(metadata.properties.get(key, "{}"), type=dict[str, _Entry])
    except (msgspec.DecodeError, RecursionError):
        raise InvalidMetadata(
            f"table property '{key}' does not hold what Icefield keeps there: remove it, once no stream or publication "
            "of before may be run again"
        ) from None


def _encoded(held: Mapping[str, _Entry]) -> str:
    """The latest entries within the size limit, as a JSON string."""
    return msgspec.json.encode(_latest(held)).decode()


def _latest(held: Mapping[str, _Entry]) -> dict[str, _Entry]:
    kept: list[tuple[str, _Entry]] = []
    size = 1
    for name, entry in reversed(list(held.items())):
        size += len(msgspec.json.encode({name: entry}).decode()) - 1  # with a comma instead of two braces
        if size > _MOST_CHARACTERS:
            break
        kept.append((name, entry))
    return dict(reversed(kept))


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"sha256:{sha256(name.encode()).hexdigest()}"
