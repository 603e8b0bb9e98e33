"""Detects locations that name the same file, for whole columns of locations.

``file:/a``, ``file:///a`` and ``/a`` are one file; so are locations under two schemes of one file system, and locations
that location maps lead to the same place. On local disks ``.``, ``..``, double slashes and links to folders make no
difference. Two locations that may be one file count as one.
"""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import IcefieldError
from icefield.storage.file_io import FileIO
from icefield.storage.local_paths import local_path
from icefield.toolkit.authority import scheme_of, split_location

_UNUSUAL: Final = r"[^:/]//|/\.\.?/"
"""Two slashes outside of the scheme's separator, and ``.`` and ``..`` between slashes."""

_REMEMBERED: Final = 1 << 16


class CanonicalLocations:
    """The canonical forms of locations for one file IO. ``root`` is a table's location; most of its files are below.

    Links on local disks are followed above ``root``; with ``follows_links``, below it as well, folder by folder.
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

    def _is_plain(self, locations: pa.StringArray) -> bool:
        """Whether all are below the table's location, and spelled in canonical form."""
        if not pc.all(pc.starts_with(locations, self._root)).as_py():
            return False
        return not pc.any(pc.match_substring_regex(locations, _UNUSUAL)).as_py()

    def _by_folder(self, locations: pa.StringArray) -> pa.StringArray:
        parts = pc.split_pattern(locations, "/", max_splits=1, reverse=True)
        cut = np.asarray(pc.list_value_length(parts)) == 2
        if not cut.all():  # a name without a folder is no table's file
            return pa.array([self._single(each) for each in locations.to_pylist()], pa.string())
        values = parts.flatten()
        folders = values.take(pa.array(np.arange(0, len(values), 2))).dictionary_encode()
        names = values.take(pa.array(np.arange(1, len(values), 2)))
        distinct = folders.dictionary.to_pylist()
        if self._has_maps:
            # A map may apply to a single file.
            return pa.array([self._single(each) for each in locations.to_pylist()], pa.string())
        opened = pa.array([self._folder(each + "/") for each in distinct], pa.string())
        return pc.binary_join_element_wise(opened.take(folders.indices), names, "")

    def _single(self, location: str) -> str:
        folder, slash, name = location.rpartition("/")
        if not slash or self._has_maps:
            return self._opened(location)
        return self._folder(folder + "/") + name

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
            authority = _authority(self._io.base)
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


def _authority(location: str) -> str:
    try:
        return split_location(location).authority
    except IcefieldError:
        return ""
