"""Checks of storage: each file exists with its size, and delete files are readable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from icefield import manifest as f
from icefield.errors import IcefieldError
from icefield.manifest import DataFile, DataFileContent, EntryStatus, ManifestEntries

from icefield_maintenance.doctor.tables import delete_checks, rules
from icefield_maintenance.doctor.tables.groups import RuleGroup
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.sampling import sampled
from icefield_maintenance.doctor.tables.subject import Subject

_AT_ONCE: Final = 64
"""The number of files in one call of ``stat_many``."""
_NEEDED: Final = "without the delete file, the rows that it deletes would be there again"


@dataclass(slots=True)
class _Files:
    """The live files of the heads, by path: size and rows in the first entry, and other sizes in further entries."""

    sizes: dict[str, int] = field(default_factory=dict)
    other_sizes: dict[str, set[int]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    deletes: dict[tuple[str, int | None, int], DataFile] = field(default_factory=dict)

    def add(self, entries: ManifestEntries) -> None:
        """Add the live entries of a manifest."""
        live = entries.filter(entries.status() != EntryStatus.DELETED)
        paths = live.column(f.FILE_PATH).to_pylist()
        for path, size in zip(paths, live.column(f.FILE_SIZE).to_pylist(), strict=True):
            if self.sizes.setdefault(path, size) != size:
                self.other_sizes.setdefault(path, set()).add(size)
        is_data = np.asarray(live.column(f.CONTENT)) == DataFileContent.DATA
        counts = live.column(f.RECORD_COUNT).to_pylist()
        for path, count, data in zip(paths, counts, is_data, strict=True):
            if data:
                self.rows.setdefault(path, count)
        deletes = live.filter(~is_data).data_files()
        # Many vectors may be in one file.
        self.deletes.update(((file.file_path, file.content_offset, file.record_count), file) for file in deletes)


def examine_files(subject: Subject, ledger: Ledger) -> None:
    """Check the files in storage: one request for each file, several at once. A sample of delete files is read."""
    files = _Files()
    for entries in subject.readable():
        files.add(entries)
    _look_at_sizes(subject, files, ledger)
    footers: delete_checks.Footers = {}
    for kind in (True, False):
        deletes = [file for file in files.deletes.values() if file.is_deletion_vector is kind]
        for file in sampled(deletes, subject.sample):
            delete_checks.look_at_deletes(subject, file, files.rows, footers, ledger)


def _look_at_sizes(subject: Subject, files: _Files, ledger: Ledger) -> None:
    storage, paths = subject.io.storage(), list(files.sizes)
    for start in range(0, len(paths), _AT_ONCE):
        some = paths[start : start + _AT_ONCE]
        ledger.look_at(rules.FILES_MISSING)
        try:
            found = storage.stat_many(some)
        except IcefieldError as error:
            ledger.skip(rules.FILES_MISSING, str(error))
            return
        ledger.look_at(rules.FILE_SIZES)
        for path, info in zip(some, found, strict=True):
            if info is None:
                why = "" if path in files.rows else _NEEDED
                ledger.breach(rules.FILES_MISSING, path, "a live file of the table is not there", no_repair=why)
                continue
            for stated in (files.sizes[path], *sorted(files.other_sizes.get(path, ()))):
                if info.size != stated:
                    said = f"it has {info.size:,} bytes, and its manifest says {stated:,}"
                    ledger.breach(rules.FILE_SIZES, path, said)


RULES: Final = RuleGroup(
    (rules.FILES_MISSING, rules.FILE_SIZES, *delete_checks.RULES),
    examine_files,
)
