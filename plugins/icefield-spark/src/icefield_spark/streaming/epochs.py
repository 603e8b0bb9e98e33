"""Looks up the epochs of a query in a table, so that a sink writes each epoch once.

The snapshot of an epoch names the query and the epoch in its summary, as with Iceberg's Java runtime. The commit that
would add an epoch looks it up itself, on each base that it tries. So if two independent drivers attempt one epoch, the
later commit finds the epoch of the earlier. A table remembers the last epochs of its queries when their snapshots have
expired.
"""

from __future__ import annotations

import warnings
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
"""Keys of a summary, beside the keys of the query and the epoch."""

MANY_SNAPSHOTS: Final = 500
"""A stream warns whenever its table has reached a multiple of this number of snapshots: some 200 kB of metadata."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch of a query: one micro-batch. ``run`` distinguishes the query's starts."""

    query: str
    number: int
    run: str = ""

    @property
    def marker(self) -> str:
        """The part of a file's name that marks it as written by an attempt at this epoch."""
        return f"{self.query}-{self.number}-"

    def properties(self) -> dict[str, str]:
        """The properties of the epoch for the summary of its snapshot."""
        run = {RUN_ID: self.run} if self.run else {}
        return {STREAM_QUERY_ID: self.query, STREAM_EPOCH_ID: str(self.number), **run}

    def claim(self, transaction: Any, branch: str | None, strings: Mapping[str, str] | None) -> dict[str, str]:
        """Have a transaction commit only if a branch does not hold the epoch; return the snapshot's properties."""
        write_id = uuid4().hex
        WriteOnce(transaction.stage, self, branch or MAIN_BRANCH, write_id).commit()
        return {**(strings or {}), **self.properties(), WRITE_ID: write_id}


def is_written(table: Table, query_id: str, epoch_id: int, branch: str = "main") -> bool:
    """Whether a table holds an epoch of a query, or a later epoch. It serves functions of ``foreachBatch`` that append.

    Such a function then appends with ``epoch_properties``.
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
    """A context for the commit of an epoch. If the table already holds the epoch, it ends without an error."""
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
            _warn_of_many_snapshots(".".join(context.name), len(base.snapshots))
            return Changes()
        number, snapshot = found
        if snapshot is None or snapshot.summary.get(WRITE_ID) == self._write_id:
            context.written.forget()  # the table has, or may have, these very files
        raise EpochWritten(
            f"epoch {self._epoch.number} of query {self._epoch.query} is in the table, whose last one is {number}"
        )


def _warn_of_many_snapshots(table: str, count: int) -> None:
    # Spark commits each epoch in a new process, which knows nothing of earlier warnings.
    if count and count % MANY_SNAPSHOTS == 0:
        warnings.warn(
            f"table '{table}' has {count:,} snapshots, and each epoch of the stream writes the metadata of them all: "
            f"expire snapshots from time to time, by 'icefield expire-snapshots {table}' or "
            f"CALL system.expire_snapshots('{table}'); the table property history.expire.max-snapshot-age-ms states "
            "how long they are kept",
            stacklevel=2,
        )


def sweep_epoch(table: Table, epoch: Epoch, branch: str, folders: Iterable[str]) -> None:
    """Delete the files of other attempts at an epoch that the table holds. Raises nothing: leftovers are orphans.

    No later commit can add the files of another attempt, even if its driver still runs: the commit would find the
    epoch. This lists the table's folders, so it is for the first epoch of a run only.
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
    """The write ids of attempts at an epoch in any kept snapshot; None if that is unknown.

    There can be several: a table that was rolled back keeps the earlier snapshots.
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
    # A snapshot without a write id comes from another writer, and so do its files.
    return {each for each in found if each}
