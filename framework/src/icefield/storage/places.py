"""Locations that name the same file, for whole columns, and sets of files as 64-bit hashes of canonical locations.

``file:/a``, ``file:///a`` and ``/a`` are one file; so are locations under two schemes of one file system, and locations
that location maps lead to the same place. On local disks ``.``, ``..``, double slashes and links to folders make no
difference. Two locations that may be one file count as one: an orphan may stay, but no file is deleted that is still
referenced. For the same reason a hash is enough: a collision costs one orphan at most, once in some 10^19 pairs.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import IcefieldError
from icefield.storage.file_io import FileIO
from icefield.storage.local_paths import local_path
from icefield.toolkit.authority import scheme_of, split_location

Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

_UNUSUAL: Final = r"[^:/]//|/\.\.?/"
"""Two slashes outside of the scheme's separator, and ``.`` and ``..`` between slashes."""

_REMEMBERED: Final = 1 << 16
_PRIME: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)


class HashedLocations:
    """The canonical forms of locations for one file IO, and their hashes.

    ``root`` is a table's location; most of its files are below. Links on local disks are followed
    above ``root``; with ``follows_links``, below it as well, folder by folder.
    """

    def __init__(self, io: FileIO, root: str, *, follows_links: bool = False) -> None:
        self._io = io
        self._folders: dict[str, str] = {}
        self._schemes: dict[str, str] = {}
        self._has_maps = any(key.startswith("location.map.") for key in io.properties)
        self._root = root.rstrip("/") + "/"
        self._opened_root = self._folder(self._root)
        self._by_root = not (follows_links and self._opened_root.startswith("file:"))

    def place(self, location: str) -> str:
        """The canonical form of a location, equal for all locations of a file."""
        found: str = self.column(pa.array([location], pa.string()))[0].as_py()
        return found

    def column(self, locations: pa.StringArray) -> pa.StringArray:
        """``place`` of each location."""
        if not len(locations):
            return locations
        if self._by_root and not self._has_maps and self._is_plain(locations):
            if self._opened_root == self._root:
                return locations
            return pc.binary_replace_slice(locations, 0, len(self._root.encode()), self._opened_root)
        return self._by_folder(locations)

    def hashes(self, locations: pa.StringArray) -> Hashes:
        """A hash of each file; no location may be null."""
        return path_hashes(self.column(locations))

    def _is_plain(self, locations: pa.StringArray) -> bool:
        """Whether all are below the table's location, and spelled in canonical form."""
        if not pc.all(pc.starts_with(locations, self._root)).as_py():
            return False
        return not pc.any(pc.match_substring_regex(locations, _UNUSUAL)).as_py()

    def _by_folder(self, locations: pa.StringArray) -> pa.StringArray:
        parts = pc.split_pattern(locations, "/", max_splits=1, reverse=True)
        has_folder = np.asarray(pc.list_value_length(parts)) == 2
        if self._has_maps or not has_folder.all():
            # Locations are resolved one by one if a map may apply to a single file, or if one of them has no folder.
            return pa.array([self._single(each) for each in locations.to_pylist()], pa.string())
        values = parts.flatten()
        folders = values.take(pa.array(np.arange(0, len(values), 2))).dictionary_encode()
        names = values.take(pa.array(np.arange(1, len(values), 2)))
        opened = pa.array([self._folder(each + "/") for each in folders.dictionary.to_pylist()], pa.string())
        return pc.binary_join_element_wise(opened.take(folders.indices), names, "")

    def _single(self, location: str) -> str:
        folder, slash, name = location.rpartition("/")
        return self._folder(f"{folder}/") + name if slash and not self._has_maps else self._opened(location)

    def _folder(self, folder: str) -> str:
        found = self._folders.get(folder)
        if found is None:
            if len(self._folders) >= _REMEMBERED:
                self._folders.clear()
            opened = self._opened(folder)
            found = self._folders[folder] = opened if opened.endswith("/") else opened + "/"
        return found

    def _opened(self, location: str) -> str:
        try:
            opened = self._io.resolve(location)
            scheme = scheme_of(opened)
            if scheme == "file":
                return f"file://{os.path.realpath(local_path(opened))}"
            _, authority, path = split_location(opened)
        except (IcefieldError, OSError, ValueError):
            return location  # a location that cannot be opened cannot be deleted either
        if not authority and self._io.base is not None:
            with suppress(IcefieldError):
                authority = split_location(self._io.base).authority
        return f"{self._store(scheme)}://{authority.lower()}/{path}"

    def _store(self, scheme: str) -> str:
        """One name for all schemes of one file system."""
        found = self._schemes.get(scheme)
        if found is None:
            try:
                kind: Any = self._io.plugins.file_system(scheme)
                found = f"{kind.__module__}.{kind.__qualname__}"
            except IcefieldError:
                found = scheme
            self._schemes[scheme] = found
        return found


class LocationSet:
    """A growing set of hashes: sorted runs, each at least twice as long as the next."""

    def __init__(self) -> None:
        self._runs: list[Hashes] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def copy(self) -> LocationSet:
        """A copy that grows independently."""
        made = LocationSet()
        made._runs = [*self._runs]  # the runs themselves never change
        return made

    def has(self, hashes: Hashes) -> Mask:
        """A mask of the hashes that are in the set."""
        found = np.zeros(len(hashes), np.bool_)
        for run in self._runs:
            found |= is_in(hashes, run)
        return found

    def add_new(self, hashes: Hashes) -> npt.NDArray[np.int64]:
        """Add hashes; the positions of the new ones, each once, in order."""
        distinct, first = np.unique(hashes, return_index=True)
        new = ~self.has(distinct)
        self._add(distinct[new])
        return np.sort(first[new])

    def sorted(self) -> Hashes:
        """All hashes, as one run."""
        while len(self._runs) > 1:
            self._merge()
        return self._runs[0] if self._runs else np.zeros(0, np.uint64)

    def _add(self, run: Hashes) -> None:
        if not len(run):
            return
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            self._merge()

    def _merge(self) -> None:
        merged = np.concatenate([self._runs.pop(), self._runs.pop()])
        merged.sort(kind="stable")  # a stable sort merges sorted runs
        self._runs.append(merged)


def is_in(hashes: Hashes, run: Hashes) -> Mask:
    """A mask of the hashes that are in a sorted run."""
    if not len(run):
        return np.zeros(len(hashes), np.bool_)
    at = np.searchsorted(run, hashes)
    at[at == len(run)] = 0
    found: Mask = run[at] == hashes
    return found


def path_hashes(paths: pa.StringArray) -> Hashes:
    """A 64-bit hash of each path; no path may be null."""
    offsets = np.frombuffer(paths.buffers()[1], np.int32)[paths.offset : paths.offset + len(paths) + 1].astype(np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    lengths = ends - starts
    hashes = lengths.astype(np.uint64) * _PRIME
    if not len(paths) or int(lengths.max()) == 0:
        return hashes
    # Eight bytes in front and behind, so that every path can be read in words of eight.
    string = np.zeros(int(ends[-1] - starts[0]) + 16, np.uint8)
    data = np.frombuffer(paths.buffers()[2], np.uint8)
    string[8:-8] = data[int(starts[0]) : int(ends[-1])]
    words = np.lib.stride_tricks.as_strided(string[:8].view("<u8"), shape=(len(string) - 7,), strides=(1,))
    starts, ends = starts - starts[0] + 8, ends - starts[0] + 8
    shortest = int(lengths.min())
    for step in range(0, int(lengths.max()) - 7, 8):
        if step + 8 <= shortest:
            _mix(hashes, words[step:][starts])
            continue
        inside = np.flatnonzero(lengths >= step + 8)
        some = hashes[inside]
        _mix(some, words[step:][starts[inside]])
        hashes[inside] = some
    # The last eight bytes; for a shorter path the bytes before it are shifted out.
    short = np.maximum(8 - lengths, 0).astype(np.uint64) * np.uint64(8)
    last = np.where(lengths > 0, words[ends - 8] >> np.minimum(short, np.uint64(63)), np.uint64(0))
    _mix(hashes, last)
    return hashes


def _mix(hashes: Hashes, words: Hashes) -> None:
    """Mix eight bytes into each hash; ``words`` is overwritten."""
    np.bitwise_xor(hashes, words, out=hashes)
    np.multiply(hashes, _PRIME, out=hashes)
    np.right_shift(hashes, _SHIFT, out=words)
    np.bitwise_xor(hashes, words, out=hashes)
