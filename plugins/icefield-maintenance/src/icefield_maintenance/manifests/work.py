"""Writing new manifests as items of work: each item reads the old manifests that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from icefield.abc import Attempt, AttemptFiles, Work
from icefield.engine import ManifestForm, manifest_groups
from icefield.manifest import ManifestEntries, ManifestFile, ManifestReader, ManifestRequest
from icefield.types import StructType

from icefield_maintenance.manifests.clustering import Clustering
from icefield_maintenance.manifests.runs import RunClustering

Plan = Clustering | RunClustering


@dataclass(frozen=True, slots=True)
class WriteExisting(Work[Plan, tuple[ManifestFile, ...]]):
    """Writes the manifests of a part of a clustering. Their entries become EXISTING."""

    form: ManifestForm
    partition_type: StructType

    def do(self, item: Plan, attempt: Attempt) -> tuple[ManifestFile, ...]:
        """Write the new manifests. After an error, only noted files may be left."""
        reader = _ManifestEntryReader(self, attempt.threads)
        made = []
        for number, entries in enumerate(item.entries(reader)):
            location = self.form.location(f"{attempt.item}-{attempt.number}-{number}")
            attempt.note(location)
            with self.form.writer(location) as writer:
                for piece in entries:
                    writer.existing(piece)
                made.append(writer.close())
        return tuple(made)

    def files(self, result: tuple[ManifestFile, ...]) -> Iterable[str]:
        """The new manifests."""
        return [manifest.manifest_path for manifest in result]

    @property
    def traces(self) -> AttemptFiles:
        """Among the table's metadata."""
        return AttemptFiles(self.form.io, self.form.locations.metadata_folder, self.form.mark)


@dataclass(frozen=True, slots=True)
class _ManifestEntryReader:
    work: WriteExisting
    workers: int | None

    def read(
        self, manifests: Sequence[ManifestFile], columns: Iterable[int], *, rewriting: bool
    ) -> Iterator[ManifestEntries]:
        """The entries of several manifests, in their order."""
        typed = [(one, self.work.partition_type) for one in manifests]
        reader = ManifestReader(self.work.form.io, remember=not rewriting)
        request = ManifestRequest(frozenset(columns), encoded=rewriting)
        for group in manifest_groups(reader, typed, request, self.workers):
            yield from group


def parts(plan: Plan, slots: int) -> Iterator[Plan]:
    """Split a plan into parts of several new manifests each, for ``slots`` concurrent workers."""
    return plan.parts(max(1, plan.added // (2 * slots)))
