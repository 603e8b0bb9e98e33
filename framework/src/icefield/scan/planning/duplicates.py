"""Detection of data files that are listed twice in a plan, by 64-bit hashes of the paths.

Whole columns are hashed, and eight bytes per file are kept. If a hash occurs twice, the paths are compared before the
plan is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.errors import InvalidMetadata
from icefield.manifest import ManifestEntries, ManifestFile
from icefield.manifest import schemas as f
from icefield.storage.places import Hashes, path_hashes

_HASHED_AT_ONCE: Final = 1 << 13
_FIRST_CHECK: Final = 1 << 15


class DistinctPaths:
    """The paths of a plan so far. ``paths_of`` reads the paths of a manifest's live files again, to compare them."""

    def __init__(self, paths_of: Callable[[ManifestFile], list[str]]) -> None:
        self._paths_of = paths_of
        self._manifests: list[ManifestFile] = []
        self._hashes: list[Hashes] = []
        self._pending: list[pa.Array] = []
        self._pending_count = 0
        self._count = 0
        self._next_check = _FIRST_CHECK

    def add(self, entries: ManifestEntries) -> None:
        """Add the files of one manifest. Raises ``InvalidMetadata`` if a check finds a path twice."""
        self._manifests.append(entries.manifest)
        self._pending.append(entries.column(f.FILE_PATH))
        self._pending_count += len(entries)
        if self._pending_count >= _HASHED_AT_ONCE:
            self._hash()
        if self._count >= self._next_check:
            # Check at each doubling, so that all checks together cost about twice the last one.
            self._next_check = 2 * self._count
            self.check()

    def _hash(self) -> None:
        """Hash all pending paths at once, because many short vectors cost several times as much as a long one."""
        if self._pending:
            self._hashes.append(path_hashes(pa.concat_arrays(self._pending)))
            self._count += self._pending_count
            self._pending, self._pending_count = [], 0

    def check(self) -> None:
        """Check all paths so far. Raises ``InvalidMetadata`` if one occurs twice."""
        self._hash()
        if not self._hashes:
            return
        hashes = np.concatenate(self._hashes)
        hashes.sort()
        twice = hashes[1:][hashes[1:] == hashes[:-1]]
        seen: dict[str, str] = {}
        for manifest in self._manifests if len(twice) else ():
            paths = self._paths_of(manifest)
            for row in np.flatnonzero(np.isin(path_hashes(pa.array(paths, pa.string())), twice)).tolist():
                path, where = paths[row], manifest.manifest_path
                if path in seen:
                    both = where if seen[path] == where else f"{seen[path]} and {where}"
                    raise InvalidMetadata(f"data file {path} is listed twice, in {both}", location=where)
                seen[path] = where
