"""Upkeep that is one commit, or a dry run of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

from icefield.metadata import TableMetadata, refuse_plain_files
from icefield.transaction import Action, TableAccess
from icefield.transaction.branch_head import Head
from icefield.transaction.history import head_of

from icefield_maintenance.deletes import ConvertEqualityDeletesResult, RemoveDanglingDeletesResult, RewriteDeletesResult
from icefield_maintenance.manifests import RewriteManifestsResult

Stage = Callable[[Action], None]
R = TypeVar(
    "R",
    ConvertEqualityDeletesResult,
    RemoveDanglingDeletesResult,
    RewriteDeletesResult,
    RewriteManifestsResult,
)


class Upkeep(Protocol[R]):
    """An action that says what it did, or what it would do."""

    result: R

    def plan(self, head: Head) -> object:
        """Choose what changes of a head, and state it in ``result``."""

    def commit(self) -> None:
        """Stage the action."""


def done(target: TableAccess, begin: Callable[[Stage], Upkeep[R]], branch: str, *, dry_run: bool) -> R:
    """What the action did on the branch, or with ``dry_run`` would do; ``begin`` makes it."""
    if dry_run:

        def planned(metadata: TableMetadata) -> R:
            refuse_plain_files(metadata)
            upkeep = begin(_not_staged)
            upkeep.plan(Head(metadata, head_of(metadata, branch), target.io))
            return upkeep.result

        return replace(target.reading_version(planned), snapshot_id=None, dry_run=True)
    with target.begin() as tx:
        action = begin(tx.stage)
        action.commit()
    return action.result


def _not_staged(action: Action) -> None:
    """Where the actions of dry runs go, which are never committed."""
