"""Which epochs of a query a table holds: what makes a sink write each of them once.

The snapshot of an epoch names the query and the epoch in its summary, as with Iceberg's Java runtime. Whether an epoch
is there is looked up by the very commit that would add it, on each base that it tries, so that of two attempts at one
epoch, by drivers that know nothing of each other, one finds that of the other. A table remembers the last epochs of its
queries when their snapshots have expired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from icefield import Table
from icefield.errors import IcefieldError, ValidationFailed
from icefield.metadata import MAIN_BRANCH, STREAM_EPOCH_ID, STREAM_QUERY_ID, TableMetadata, last_epoch
from icefield.transaction import Action, ActionContext, Changes

RUN_ID: Final = "icefield.streaming.run-id"
WRITE_ID: Final = "icefield.write-id"
"""Keys of a summary, beside those that name the query and the epoch."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch of a query: what one micro-batch wrote. ``run`` distinguishes the query's starts."""

    query: str
    number: int
    run: str = ""

    @property
    def marker(self) -> str:
        """What is in the names of the files of every attempt at it, and of no others."""
        return f"{self.query}-{self.number}-"

    def properties(self) -> dict[str, str]:
        """What the summary of its snapshot says."""
        run = {RUN_ID: self.run} if self.run else {}
        return {STREAM_QUERY_ID: self.query, STREAM_EPOCH_ID: str(self.number), **run}

    def claim(self, transaction: Any, branch: str | None, strings: Mapping[str, str] | None) -> dict[str, str]:
        """Have a transaction commit only where a branch does not hold the epoch; what its snapshot is to say."""
        write_id = uuid4().hex
        WriteOnce(transaction.stage, self, branch or MAIN_BRANCH, write_id).commit()
        return {**(strings or {}), **self.properties(), WRITE_ID: write_id}


def is_written(table: Table, query_id: str, epoch_id: int, branch: str = "main") -> bool:
    """Whether a table holds an epoch of a query, or a later one: asked by a function of ``foreachBatch`` that appends.

    What it appends then goes under ``epoch_properties``.
    """
    found = last_epoch(table.refresh().metadata, branch, str(query_id))
    return found is not None and found[0] >= epoch_id


def epoch_properties(query_id: str, epoch_id: int) -> dict[str, str]:
    """Snapshot properties that name an epoch of a query, for ``is_written`` to find."""
    return Epoch(str(query_id), epoch_id).properties()


class EpochWritten(ValidationFailed):
    """The epoch is in the table already."""


@contextmanager
def written_once(table: Table) -> Iterator[None]:
    """A commit of an epoch: where the table holds the epoch already, nothing is left to do."""
    try:
        yield
    except EpochWritten:
        table.refresh()


class WriteOnce(Action):
    """Lets the commit of a transaction go on only while a branch does not hold an epoch."""

    shapes = False

    def __init__(self, stage: Callable[[Action], None], epoch: Epoch, branch: str, write_id: str) -> None:
        super().__init__(stage)
        self._epoch = epoch
        self._branch = branch
        self._write_id = write_id

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """Nothing to change. Raises ``EpochWritten``."""
        found = last_epoch(base, self._branch, self._epoch.query)
        if found is None or found[0] < self._epoch.number:
            return Changes()
        number, snapshot = found
        if snapshot is None or snapshot.summary.get(WRITE_ID) == self._write_id:
            context.written.forget()  # they are the very files that the table has, or may be
        raise EpochWritten(
            f"epoch {self._epoch.number} of query {self._epoch.query} is in the table, whose last one is {number}"
        )


def sweep_epoch(table: Table, epoch: Epoch, branch: str, folders: Iterable[str]) -> None:
    """Delete what other attempts at an epoch left, once the table holds it. Raises nothing: upkeep finds what stays.

    From then on no commit can add their files, whoever they belong to and whether their drivers still run: it would
    meet the epoch. It lists the table's folders, so that it is for the first epoch of a run.
    """
    found = last_epoch(table.metadata, branch, epoch.query)
    kept = _write_ids(table.metadata, epoch)
    if found is None or found[0] != epoch.number or not kept:
        return
    with suppress(IcefieldError, OSError):
        lost = []
        for folder in folders:
            for info in table.io.list_files(f"{folder}/"):
                name = info.location.rpartition("/")[2]
                if epoch.marker in name and not any(each in name for each in kept):
                    lost.append(info.location)
        table.io.delete_many(lost)


def _write_ids(metadata: TableMetadata, epoch: Epoch) -> set[str] | None:
    """The attempts at an epoch that any kept snapshot may hold; None where that is not known.

    There can be several: a table that was rolled back keeps the snapshots of the time before.
    """
    parents = {snapshot.parent_snapshot_id for snapshot in metadata.snapshots}
    found = set()
    for leaf in metadata.snapshots:
        if leaf.snapshot_id in parents:
            continue
        oldest = leaf
        for oldest in metadata.ancestors(leaf.snapshot_id):
            number = (
                oldest.summary.get(STREAM_EPOCH_ID, "") if oldest.summary.get(STREAM_QUERY_ID) == epoch.query else ""
            )
            if number.isdecimal() and int(number) <= epoch.number:
                if int(number) == epoch.number:
                    found.add(oldest.summary.get(WRITE_ID))
                break
        else:
            if oldest.parent_snapshot_id is not None:
                return None
    # One that does not state its attempt was not written here, nor do the names of its files.
    return {each for each in found if each}
