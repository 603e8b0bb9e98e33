"""Building proposals for commit strategies from metadata, updates and requirements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icefield.abc import Proposal
from icefield.metadata import RemoveSnapshotRef, SetSnapshotRef, TableMetadata, TableUpdate
from icefield.metadata.requirements import AssertCreate, AssertRefSnapshotID, AssertTableUUID, TableRequirement, holds
from icefield.metadata.updates.apply import apply_updates, creation_updates


def creation_of(
    created: TableMetadata, updates: Iterable[TableUpdate] = (), metadata: TableMetadata | None = None
) -> Proposal:
    """The proposal of a new table: ``created``, or ``metadata``, the result of ``updates`` on it."""
    return Proposal(metadata or created, (*creation_updates(created), *updates), (AssertCreate(),))


def change_of(
    base: TableMetadata,
    updates: Iterable[TableUpdate],
    requirements: Iterable[TableRequirement] = (),
    metadata: TableMetadata | None = None,
) -> Proposal:
    """The proposal of a change: ``updates`` on ``base``; ``metadata`` is their result, if it is already built.

    It requires that the table is the same and that the branches and tags it moves have not moved. An action of a
    transaction states requirements on the result of the actions before it. The proposal keeps the requirements that
    hold for the base, without duplicates. The others refer to the results of earlier actions of the transaction; the
    requirements of those actions protect them.
    """
    steps = tuple(updates)
    table: list[TableRequirement] = [AssertTableUUID(base.table_uuid)] if base.table_uuid is not None else []
    stated = dict.fromkeys((*_refs_moved(base, steps), *requirements))
    found = (*table, *(each for each in stated if each not in table and holds(each, base)))
    return Proposal(apply_updates(base, steps) if metadata is None else metadata, steps, found, base)


def _refs_moved(base: TableMetadata, updates: Iterable[TableUpdate]) -> Iterator[TableRequirement]:
    for update in updates:
        if isinstance(update, SetSnapshotRef | RemoveSnapshotRef):
            ref = base.refs.get(update.name)
            yield AssertRefSnapshotID(update.name, None if ref is None else ref.snapshot_id)
