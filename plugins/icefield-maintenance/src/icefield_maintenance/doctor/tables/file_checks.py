"""Checks of storage: each file exists with its size, and delete files are readable."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa
from icefield import manifest as f
from icefield.errors import IcefieldError
from icefield.manifest import EntryStatus, ManifestContent
from icefield.storage import LocationSet, path_hashes

from icefield_maintenance.doctor.tables import delete_checks, rules
from icefield_maintenance.doctor.tables.groups import RuleGroup
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.row_counts import RowCounts
from icefield_maintenance.doctor.tables.subject import FILE_COLUMNS, Subject, is_data, is_delete_file, is_vector

_AT_ONCE: Final = 64
"""The number of files in one call of ``stat_many``."""
_NEEDED: Final = "without the delete file, the rows that it deletes would be there again"


class _LiveFiles:
    """The live files of the heads: each file comes once for each size that an entry states.

    Only a hash of each location with its size is held; with delete files, also the rows of each data file.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.rows = RowCounts()
        """The row counts of the data files, if the table has delete files."""
        self.with_deletes = [each for each in subject.head_manifests() if each.content is ManifestContent.DELETES]

    def __iter__(self) -> Iterator[tuple[str, int, bool]]:
        """The location and size of each file, and whether it is a data file."""
        sized = LocationSet()
        for entries in self._subject.readable(FILE_COLUMNS):
            live = entries.filter(entries.status() != EntryStatus.DELETED)
            data, sizes = is_data(live), np.asarray(live.column(f.FILE_SIZE))
            hashes = path_hashes(live.column(f.FILE_PATH))
            if self.with_deletes:
                self.rows.add(hashes[data], np.asarray(live.column(f.RECORD_COUNT))[data])
            rows = sized.add_new(hashes ^ (sizes.astype(np.uint64) * _ODD))
            paths = live.column(f.FILE_PATH).take(pa.array(rows)).to_pylist()
            yield from zip(paths, sizes[rows].tolist(), data[rows].tolist(), strict=True)


_ODD: Final = np.uint64(0xD6E8FEB86659FD93)
"""An odd number, by which different sizes give different products."""


def examine_files(subject: Subject, ledger: Ledger) -> None:
    """Check the files in storage: one request for each file, several at once. A sample of delete files is read."""
    files = _LiveFiles(subject)
    _look_at_sizes(subject, files, ledger)
    footers: delete_checks.Footers = {}
    for kind in (is_vector, is_delete_file):
        for file in subject.files(kind, subject.sample, files.with_deletes):
            delete_checks.look_at_deletes(subject, file, files.rows, footers, ledger)


def _look_at_sizes(subject: Subject, files: _LiveFiles, ledger: Ledger) -> None:
    storage, left, is_known, missing = subject.io.storage(), iter(files), True, LocationSet()
    while some := [*islice(left, _AT_ONCE)]:
        if not is_known:
            continue  # the files are still counted
        ledger.look_at(rules.FILES_MISSING)
        try:
            found = storage.stat_many([path for path, *_ in some])
        except IcefieldError as error:
            ledger.skip(rules.FILES_MISSING, str(error))
            is_known = False
            continue
        ledger.look_at(rules.FILE_SIZES)
        gone = [path for (path, _, _), info in zip(some, found, strict=True) if info is None]
        untold = {gone[at] for at in missing.add_new(path_hashes(pa.array(gone, pa.string())))}
        for (path, stated, data), info in zip(some, found, strict=True):
            if info is None:
                if path in untold:
                    untold.remove(path)
                    why = "" if data else _NEEDED
                    ledger.breach(rules.FILES_MISSING, path, "a live file of the table is not there", no_repair=why)
            elif info.size != stated:
                said = f"it has {info.size:,} bytes, and its manifest says {stated:,}"
                ledger.breach(rules.FILE_SIZES, path, said)
        ledger.look_at(None)


RULES: Final = RuleGroup(
    (rules.FILES_MISSING, rules.FILE_SIZES, *delete_checks.RULES),
    examine_files,
)
