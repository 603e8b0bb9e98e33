"""Maintenance that is one commit, or a dry run of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

from icefield.engine import Head, head_of
from icefield.metadata import TableMetadata
from icefield.transaction import Action, TableAccess

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


class MaintenanceAction(Protocol[R]):
    """A maintenance action with a result, or with a plan in a dry run."""

    result: R

    def plan(self, head: Head) -> object:
        """Plan the changes of a head, and state them in ``result``."""

    def commit(self) -> None:
        """Stage the action."""


def done(target: TableAccess, begin: Callable[[Stage], MaintenanceAction[R]], branch: str, *, dry_run: bool) -> R:
    """Commit the action on the branch, or only plan it with ``dry_run``, and return its result; ``begin`` makes it."""
    if dry_run:

        def planned(metadata: TableMetadata) -> R:
            maintenance = begin(_not_staged)
            maintenance.plan(Head(metadata, head_of(metadata, branch), target.io))
            return maintenance.result

        return replace(target.reading_version(planned), snapshot_id=None, dry_run=True)
    with target.begin() as tx:
        action = begin(tx.stage)
        action.commit()
    return action.result


def _not_staged(action: Action) -> None:
    """Stage nothing: the action of a dry run is never committed."""
