"""The files below a location that may be orphans: old enough, and not in use by others according to their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield.abc import FileInfo
from icefield.engine import FOLDER_NOTE
from icefield.metadata import METADATA_FOLDER, VERSION_HINT
from icefield.storage import JOB_FOLDER, Mask

from icefield_maintenance.orphans.result import SCHEMA

_AT_ONCE: Final = 8192
_HIDDEN_FOLDER: Final = r"(^|/)[._][^/=]*/"
"""Internal folders of engines and file systems; a partition folder such as ``_kind=a`` is not hidden."""
_HIDDEN_NAME: Final = r"(^|/)[._][^/=]*$"
_NEVER_PUBLISHED: Final = r"\.icefield-tmp$|(^|/)\.icefield-clock-[^/]*$"
"""Hidden files of a killed writer, or of a killed search for orphans. No table ever uses them."""
_OF_A_KILLED_JOB: Final = r"^([^._/][^/]*/)*" + JOB_FOLDER.pattern + r"/_(temporary/.*|SUCCESS)$"
"""Files of a killed job of an engine's own writer."""
_OF_A_TABLE: Final = r"\.metadata\.json(\.gz)?$"
_VERSIONS: Final = r"(^|/)(v[0-9]+(\.gz)?\.metadata\.json(\.gz)?|" + VERSION_HINT.replace(".", r"\.") + ")$"
"""Versions of a table with its file system as catalog, in any folder."""


@dataclass(slots=True)
class Listing:
    """The results of a listing of ``root`` so far. ``others`` are folders below ``root`` with tables of their own.

    ``belongs``: whether a metadata file is a version of the table. ``unknown`` are other metadata files in a metadata
    folder directly in ``root``, if the folder is the table's own (``is_own``): newer versions, versions of lost
    commits, or versions of another table. ``own_versions`` counts the table's versions in a metadata folder directly in
    ``root``. ``is_of_another``: whether a metadata file belongs to another table; it is called for files in folders
    with another name than ``metadata``. ``notes`` are files that name tables with files in their folders.
    """

    root: str
    limit_ms: int
    belongs: Callable[[str], bool]
    is_of_another: Callable[[str], bool]
    is_own: bool = True
    listed: int = 0
    own_versions: int = 0
    notes: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    others: set[str] = field(default_factory=set)

    def candidates(self, found: Iterable[FileInfo]) -> Iterator[pa.RecordBatch]:
        """The files that may be orphans, in batches. A file without a time, or with a future time, is no orphan."""
        start = len(self.root.rstrip("/").encode()) + 1
        infos = iter(found)
        while some := [*islice(infos, _AT_ONCE)]:
            self.listed += len(some)
            locations = pa.array([info.location for info in some], pa.string())
            below = pc.binary_replace_slice(locations, 0, start, "")
            self._note_tables(locations, below)
            times = pa.array([info.modified_ms for info in some], pa.int64())
            old = np.asarray(pc.fill_null(pc.less(times, self.limit_ms), False))
            chosen = np.flatnonzero(old & ~_kept(below))
            if len(chosen):
                sizes = pa.array([info.size for info in some], pa.int64())
                rows = pa.array(chosen)
                yield pa.record_batch([each.take(rows) for each in (locations, sizes, times)], schema=SCHEMA)

    def without_others(self, orphans: pa.Table) -> pa.Table:
        """The files that are in no folder of another table."""
        for prefix in self.other_places():
            orphans = orphans.filter(pc.invert(pc.starts_with(orphans.column("location"), prefix)))
        return orphans

    def other_places(self) -> tuple[str, ...]:
        """The folders of other tables, each with a slash at its end."""
        return tuple(f"{self.root.rstrip('/')}/{folder}" for folder in sorted(self.others))

    def _note_tables(self, locations: pa.StringArray, below: pa.StringArray) -> None:
        """Remember the folders below with metadata files of other tables: their files are not cleaned."""
        self.notes += locations.filter(pc.ends_with(locations, f"/{FOLDER_NOTE}")).to_pylist()
        found = pc.match_substring_regex(below, _OF_A_TABLE)
        for location, path in zip(locations.filter(found).to_pylist(), below.filter(found).to_pylist(), strict=True):
            folder, is_named = _table_folder(path)
            if folder in self.others:
                continue
            if self.belongs(location):
                self.own_versions += is_named and not folder
            elif not is_named:  # ``write.metadata.path`` of this table, or of another
                if self.is_of_another(location):
                    self.others.add(folder)
            elif folder or not self.is_own:
                self.others.add(folder)
            else:
                self.unknown.append(location)


def _table_folder(path: str) -> tuple[str, bool]:
    """The table folder of a metadata file, and whether the file is in a folder called ``metadata`` in it."""
    folder = path[: path.rfind("/") + 1]
    around = folder.removesuffix(f"{METADATA_FOLDER}/")
    is_named = around != folder and (not around or around.endswith("/"))
    return around if is_named else folder, is_named


def _kept(below: pa.StringArray) -> Mask:
    """The mask of files that are never orphans because of their names."""
    kept: Mask = np.asarray(pc.match_substring_regex(below, f"{_HIDDEN_FOLDER}|{_VERSIONS}"))
    hidden = np.asarray(pc.match_substring_regex(below, _HIDDEN_NAME))
    if hidden.any():
        kept |= hidden & ~np.asarray(pc.match_substring_regex(below, _NEVER_PUBLISHED))
    if kept.any():
        kept = kept & ~np.asarray(pc.match_substring_regex(below, _OF_A_KILLED_JOB))
    return kept
