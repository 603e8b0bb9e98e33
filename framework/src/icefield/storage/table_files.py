"""The files that a table owns by its own metadata and its folders: maintenance may delete no others.

Metadata may name any file: ``add_files`` takes files of other tables, and a client that may commit may name any file.
So a file is deleted only if it is below a folder of the table, and below no folder with another table's metadata.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.abc import CommitStrategy
from icefield.base import compute as pc
from icefield.base.secrets import without_userinfo
from icefield.errors import IcefieldError, InvalidArgument
from icefield.metadata import METADATA_FOLDER, TableMetadata, decode_metadata
from icefield.storage.file_io import FileIO
from icefield.storage.locations import JOB_FOLDER, LocationProvider
from icefield.storage.neighbours import knows_tables, owned_only, tables_in, tables_noted
from icefield.storage.places import HashedLocations, Mask
from icefield.toolkit.table_folders import folders_around, metadata_of_another

_VERSIONS: Final = 16
"""The maximum number of latest versions that are read for the folders that the table had before."""

_OF_LAYOUT: Final = re.compile(rf".*=.*|[01]{{4}}|[01]{{8}}|[0-9a-f]{{8}}|more-[0-9a-f]{{32}}|{JOB_FOLDER.pattern}")
"""The folders that writers make below a table's folders: no other table is looked for in them."""

_log = logging.getLogger(__name__)


class TableFiles:
    """Selects the files that one table owns, however their locations are spelled.

    The table's folders are its location and its folders of data and metadata, now and in its earlier versions. A folder
    outside of its location counts only if no metadata file of another table is in it or around it; its location does
    not count if another table of the catalog is there. If a note says that another table has files there too, only
    files with the table's name in their location count, as in the object storage layout.
    """

    def __init__(self, io: FileIO, metadata: TableMetadata, strategy: CommitStrategy | None) -> None:
        self._io, self._metadata, self._strategy = io, metadata, strategy
        self._everything = not owned_only(io, metadata)
        self._places = HashedLocations(io, "", follows_links=True)
        self._location = self._folder(metadata.location)
        self._context = self._location.rstrip("/").split("/")[-2:]
        self._roots: dict[str, str | None] = {}  # as the table spells them; None for a folder that is not its own
        self._shared = set[str]()  # folders in which other tables have files, too
        self._former: Iterator[TableMetadata] | None = None
        self._verdicts: dict[str, bool] = {}
        self._looked_at: dict[str, bool] = {}
        self._take(metadata)

    def of(self, locations: Sequence[str]) -> list[str]:
        """The owned files among ``locations``."""
        column = pa.array(locations, pa.string())
        found: list[str] = column.filter(pa.array(self.mask(column))).to_pylist()
        return found

    def mask(self, locations: pa.StringArray) -> Mask:
        """A mask of the owned files."""
        if self._everything or not len(locations):
            return np.ones(len(locations), np.bool_)
        folders = folders_in(self._places.column(locations)).dictionary_encode()
        owned = np.array([self._owns(folder) for folder in folders.dictionary.to_pylist()], np.bool_)
        found: Mask = owned[np.asarray(folders.indices)]
        return found

    def _owns(self, folder: str) -> bool:
        """Whether the files directly in a folder, given in canonical form, are owned."""
        if folder not in self._verdicts:
            self._verdicts[folder] = self._judged(folder)
        return self._verdicts[folder]

    def _judged(self, folder: str) -> bool:
        while (root := self._root_of(folder)) is None:
            if not self._look_further_back():
                return False
        top = place = f"{self._roots[root]}/"
        parts = folder[len(root) :].split("/")[:-1]
        if root in self._shared and not self._names_the_table(parts):
            return False
        hashed = False
        for part in parts:
            place += f"{part}/"
            is_layout = _OF_LAYOUT.fullmatch(part) is not None
            hashed |= is_layout
            if is_layout or (hashed and part in self._context):
                continue
            if self._has_another(place) or self._noted(place):
                return False
            if root != self._location and self._has_another(top):  # a table in the folder of data or of metadata
                return False
        return True

    def _root_of(self, folder: str) -> str | None:
        """The deepest folder of the table that contains or equals a folder."""
        around = [root for root, stated in self._roots.items() if stated is not None and folder.startswith(root)]
        return max(around, key=len, default=None)

    def _look_further_back(self) -> bool:
        """Add the folders of the next earlier version; False if no version is left."""
        if self._former is None:
            self._former = self._earlier()
        metadata = next(self._former, None)
        if metadata is None:
            return False
        self._take(metadata)
        return True

    def _earlier(self) -> Iterator[TableMetadata]:
        log = [entry.metadata_file for entry in self._metadata.metadata_log]
        latest = {each.rpartition("/")[0]: each for each in log}  # of each folder
        for location in dict.fromkeys([*reversed(log[-_VERSIONS:]), *latest.values(), *log[:1]]):
            try:
                version = decode_metadata(self._io.read_metadata(location), location)
            except IcefieldError as error:
                _log.info("the version in %s is not looked at: %s", without_userinfo(location), error)
                continue
            if version.table_uuid == self._metadata.table_uuid:
                yield version

    def _take(self, metadata: TableMetadata) -> None:
        """Add the folders of a version."""
        try:
            stated = folders_of(metadata)
        except InvalidArgument:  # properties that cannot be used
            stated = (metadata.location,)
        lists = {each.manifest_list.rpartition("/")[0] for each in metadata.snapshots if each.manifest_list is not None}
        for each in [*stated, *sorted(lists - {""})]:
            folder = self._folder(each)
            # A list below the location is judged by its path there: another table may have written it.
            if folder not in self._roots and (each in stated or not folder.startswith(self._location)):
                self._roots[folder] = each.rstrip("/") if self._is_own(folder, each) else None
                around = () if folder.startswith(self._location) else _with_parents(each)
                others = [other for above in around for other in self._noted(above)]
                if others:
                    self._shared.add(folder)
                if any(other.split("/")[-3:-1] == self._context for other in others):  # the same names elsewhere
                    self._roots[folder] = None

    def _is_own(self, folder: str, stated: str) -> bool:
        """Whether a stated folder is the table's: below its own location, or without a sign of another table."""
        places = [f"{place.rstrip('/')}/" for place in (stated, *folders_around(stated))]
        if folder == self._location:
            return not any(self._is_used(place) for place in places)
        if folder.startswith(self._location):
            return self._roots[self._location] is not None
        return not any(self._has_another(place) for place in places)

    def _is_used(self, place: str) -> bool:
        """Whether another table is at a location. One that was dropped does not count, if the catalog tells."""
        home = f"{place}{METADATA_FOLDER}"
        if knows_tables(self._strategy):
            return bool(tables_in(self._io, self._strategy, f"{home}/-"))
        return self._has_another(place) or bool(self._noted(home))

    def _names_the_table(self, parts: Sequence[str]) -> bool:
        """Whether the folders below a folder of data follow the object storage layout, with the table's context."""
        start = next((at for at, part in enumerate(parts) if _OF_LAYOUT.fullmatch(part) is None), 0)
        return start > 0 and parts[start : start + 2] == self._context

    def _noted(self, place: str) -> list[str]:
        return tables_noted(self._io, None, place.rstrip("/"), self._metadata.table_uuid)

    def _has_another(self, place: str) -> bool:
        """Whether a metadata file of another table is at a location; True if that cannot be determined."""
        found = self._looked_at.get(place)
        if found is None:
            try:
                uuid, logged = self._metadata.table_uuid, {each.metadata_file for each in self._metadata.metadata_log}
                found = metadata_of_another(self._io.storage(place), place, uuid, logged) is not None
            except IcefieldError as error:
                _log.warning("files in %s stay: %s", without_userinfo(place), error)
                found = True
            self._looked_at[place] = found
        return found

    def _folder(self, location: str) -> str:
        return self._places.place(location.rstrip("/") + "/x")[:-1]


def _with_parents(location: str) -> Iterator[str]:
    """A folder and its parents, the nearest first, without the store's root."""
    scheme, separator, path = location.rstrip("/").rpartition("://")
    while path.strip("/"):
        yield f"{scheme}{separator}{path}"
        path = path.rpartition("/")[0]


def folders_in(locations: pa.StringArray) -> pa.StringArray:
    """The folder of each location, with a slash at its end."""
    return pc.replace_substring_regex(locations, "[^/]*$", "")


def folders_of(metadata: TableMetadata) -> tuple[str, ...]:
    """The folders for a table's files by its own metadata: its location, and its folders of data and metadata."""
    placed = LocationProvider.from_metadata(metadata)
    return metadata.location, placed.data_folder, placed.metadata_folder
