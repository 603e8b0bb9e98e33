"""Rewriting manifests, while writers append."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from icefield.abc import Note, WorkRunner
from icefield.engine import ChangeCounter, FileChanges, Head, ManifestForm, SnapshotProducer
from icefield.manifest import ManifestFile
from icefield.metadata import MAIN_BRANCH, MANIFEST_TARGET_SIZE, Operation, get_int
from icefield.toolkit import html_of, short_repr
from icefield.transaction import Action, ActionContext

from icefield_maintenance.manifests.choice import GroupKey, ManifestChoice
from icefield_maintenance.manifests.clustering import cluster
from icefield_maintenance.manifests.runs import cluster_runs
from icefield_maintenance.manifests.work import Plan, WriteExisting, parts


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RewriteManifestsResult:
    """The result of a rewrite of manifests, or its plan with ``dry_run``.

    ``entries`` counts the live entries that were carried over. Sizes are in bytes; ``added_bytes`` of a dry run is an
    estimate. ``snapshot_id`` is None where nothing was committed.
    """

    rewritten_manifests: int = 0
    added_manifests: int = 0
    kept_manifests: int = 0
    entries: int = 0
    rewritten_bytes: int = 0
    added_bytes: int = 0
    snapshot_id: int | None = None
    dry_run: bool = False

    __repr__ = short_repr
    _repr_html_ = html_of


class RewriteManifests(SnapshotProducer):
    """Replace manifests with new manifests that hold the same live entries.

    The entries become EXISTING, and keep their snapshots, sequence numbers and row ids. Manifests that others add
    meanwhile are kept. If others remove a chosen manifest meanwhile, the manifests of its spec and content are chosen
    again. A plain manifest list of an encrypted table is written anew in any case.
    """

    merges = False

    def __init__(
        self,
        stage: Callable[[Action], None],
        choice: ManifestChoice,
        *,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
        runner: WorkRunner | None = None,
    ) -> None:
        super().__init__(stage, branch=branch, snapshot_properties=snapshot_properties)
        self._choice = choice
        self._runner = runner
        self._plans: dict[GroupKey, Plan] = {}
        self._is_planned = self._has_plain_list = False
        self._note: Note = _unnoted
        self.result = RewriteManifestsResult()

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """Choose the manifests; no file comes or goes."""
        self.plan(head, hold=self._runner is None)
        self._note = context.written.add
        is_plain = head.snapshot is not None and head.snapshot.key_id is None
        self._has_plain_list = is_plain and context.io.key_length is not None
        return FileChanges()

    def operation(self, changes: FileChanges) -> Operation:
        """The rows stay the same."""
        return Operation.REPLACE

    def plan(self, head: Head, *, hold: bool = False) -> None:
        """Choose the manifests of a head. The choice of an earlier attempt stays while the head has all of them."""
        listed = {_identity(manifest) for manifest in head.manifests}
        gone = {
            key
            for key, plan in self._plans.items()
            if not all(_identity(manifest) in listed for manifest in plan.manifests)
        }
        if self._is_planned and not gone:
            self._count(head)
            return
        for key in gone:
            del self._plans[key]
        target = get_int(head.metadata.properties, MANIFEST_TARGET_SIZE)
        for key, manifests in self._choice.groups(head).items():
            if self._is_planned and key not in gone:
                continue
            cluster_by = self._choice.cluster_by
            made: Plan = cluster_runs(head, manifests, cluster_by, target) or cluster(
                head, manifests, cluster_by, target, hold=hold
            )
            if not made.is_settled:
                self._plans[key] = made
        self._is_planned = True
        self._count(head)

    def _is_needless(self, changes: FileChanges) -> bool:
        return not (self._plans or self._has_plain_list)

    def _entries_processed(self, changes: FileChanges) -> int:
        return sum(plan.count for plan in self._plans.values())

    def _remaining(self, head: Head, changes: FileChanges, counter: ChangeCounter, new: int) -> list[ManifestFile]:
        replaced = {_identity(manifest) for plan in self._plans.values() for manifest in plan.manifests}
        kept = [manifest for manifest in head.manifests if _identity(manifest) not in replaced]
        added = [manifest for plan in self._plans.values() for manifest in self._written(head, plan)]
        self._count(head, added)
        return [*kept, *added]

    def _written(self, head: Head, plan: Plan) -> list[ManifestFile]:
        names = tuple(_identity(manifest) for manifest in plan.manifests)
        runner = self._runner
        if runner is None:
            return self._assembler.of_existing(names, plan.spec_id, plan.content, lambda: plan.entries(head))

        def write(form: ManifestForm) -> Iterator[ManifestFile]:
            work = WriteExisting(form, head.partition_type(plan.spec_id))
            for made in runner.run(work, parts(plan, runner.slots), self._note):
                yield from made

        return self._assembler.of_work(names, plan.spec_id, plan.content, write)

    def _count(self, head: Head, added: list[ManifestFile] | None = None) -> None:
        plans = self._plans.values()
        rewritten = [manifest for plan in plans for manifest in plan.manifests]
        self.result = RewriteManifestsResult(
            rewritten_manifests=len(rewritten),
            added_manifests=sum(plan.added for plan in plans) if added is None else len(added),
            kept_manifests=len(head.manifests) - len(rewritten),
            entries=sum(plan.count for plan in plans),
            rewritten_bytes=sum(manifest.manifest_length for manifest in rewritten),
            added_bytes=(
                sum(plan.live_bytes for plan in plans) if added is None else sum(one.manifest_length for one in added)
            ),
            snapshot_id=None if added is None else self._snapshot_id,
        )


def _identity(manifest: ManifestFile) -> tuple[str, int]:
    return manifest.manifest_path, manifest.sequence_number


def _unnoted(*locations: str) -> None:
    """Ignore locations, before an attempt begins."""
