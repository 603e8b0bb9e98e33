"""Rewriting manifests, with corrected entries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import manifest as f
from icefield.engine import ChangeCounter, FileChanges, Head, SnapshotProducer, totals_of
from icefield.manifest import ALL_COLUMNS, EntryStatus, ManifestEntries, ManifestFile, data_file_columns
from icefield.metadata import MAIN_BRANCH, Operation
from icefield.toolkit import to_arrow_type
from icefield.transaction import Action, ActionContext

Corrections = Mapping[str, Mapping[str, Any]]
"""By the location of a data file: the fields of its ``DataFile`` to correct, with their new values."""

_OF_ENTRIES = frozenset({f.STATUS, f.SNAPSHOT_ID, f.SEQUENCE_NUMBER, f.FILE_SEQUENCE_NUMBER})


class MendManifests(SnapshotProducer):
    """Rewrite some manifests of a branch, and recount the totals of its summary.

    ``names`` are locations of manifests, or of files that are listed in them. Each attempt looks for them at the head
    that it builds on; entries keep their snapshots, sequence numbers and row ids.
    """

    merges = False

    def __init__(
        self,
        stage: Callable[[Action], None],
        names: Collection[str],
        corrections: Corrections,
        *,
        branch: str = MAIN_BRANCH,
    ) -> None:
        super().__init__(stage, branch=branch)
        self._names = pa.array(sorted({*names, *corrections}), pa.string())
        self._corrections = corrections
        self._chosen: list[ManifestFile] = []
        self._totals: dict[str, str] = {}
        self._is_settled = True

    @property
    def committed_id(self) -> int | None:
        """The id of the snapshot, where the last attempt changed anything."""
        return None if self._is_settled else self._snapshot_id

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """Choose the manifests; no file comes or goes."""
        self._chosen = []
        self._totals = totals_of(self._counted(head))
        said = {} if head.snapshot is None else head.snapshot.summary
        self._is_settled = not self._chosen and all(said.get(name, held) == held for name, held in self._totals.items())
        return FileChanges()

    def operation(self, changes: FileChanges) -> Operation:
        """The rows stay the same."""
        return Operation.REPLACE

    def _counted(self, head: Head) -> Iterator[ManifestEntries]:
        """The entries of every manifest after the repair. Adds each manifest to rewrite to ``_chosen``."""
        for manifest, entries in zip(head.manifests, head.read(head.manifests, ALL_COLUMNS), strict=True):
            named = pc.is_in(pa.array([manifest.manifest_path]), value_set=self._names)[0].as_py()
            if named or pc.any(pc.is_in(entries.column(f.FILE_PATH), value_set=self._names)).as_py():
                self._chosen.append(manifest)
                entries = self._corrected(head, entries)
            yield entries

    def _corrected(self, head: Head, entries: ManifestEntries) -> ManifestEntries:
        """The live entries of a manifest: uncorrected entries first, then corrected ones."""
        live = entries.filter(entries.status() != EntryStatus.DELETED)
        known = pa.array(list(self._corrections), pa.string())
        wrong = np.asarray(pc.is_in(live.column(f.FILE_PATH), value_set=known))
        if not wrong.any():
            return live
        old = live.filter(wrong)
        files = [replace(file, **self._corrections[file.file_path]) for file in old.data_files()]
        columns = data_file_columns(files, to_arrow_type(head.partition_type(entries.spec_id)))
        columns |= {number: array for number, array in old.columns.items() if number in _OF_ENTRIES}
        new = ManifestEntries(entries.manifest, len(old), columns)
        return ManifestEntries.concat([live.filter(~wrong), new]) if not wrong.all() else new

    def _is_needless(self, changes: FileChanges) -> bool:
        return self._is_settled

    def _totals_before(self, head: Head) -> Mapping[str, str]:
        return self._totals

    def _remaining(self, head: Head, changes: FileChanges, counter: ChangeCounter, new: int) -> list[ManifestFile]:
        kept = [manifest for manifest in head.manifests if manifest not in self._chosen]
        for manifest in self._chosen:
            name = (manifest.manifest_path, manifest.sequence_number)
            entries = partial(self._anew, head, manifest)
            kept += self._assembler.of_existing(name, manifest.partition_spec_id, manifest.content, entries)
        return kept

    def _anew(self, head: Head, manifest: ManifestFile) -> Iterator[list[ManifestEntries]]:
        yield [self._corrected(head, entries) for entries in head.read([manifest], ALL_COLUMNS)]
