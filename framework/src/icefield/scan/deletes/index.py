"""Which delete files apply to which data files.

Spec: "Scan Planning". By the *data* sequence number: an equality delete applies to files strictly older than itself, a
position delete and a deletion vector also to files of the same commit. All apply within one partition of one spec,
except for equality deletes of an unpartitioned spec, which are global. A deletion vector replaces all position delete
files of its data file.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.base.concurrency import LruCache
from icefield.errors import InvalidMetadata
from icefield.manifest import DataFileContent, ManifestEntries, ManifestFile
from icefield.manifest import schemas as f
from icefield.manifest.cache import cache_scope, decoded_cache
from icefield.manifest.decoded import MANIFESTS
from icefield.metadata import TableMetadata
from icefield.partitioning.tuples import tuple_groups
from icefield.scan.deletes.assigned import AssignedDeletes, ScanDeletes
from icefield.scan.deletes.scopes import ByAge, ByBounds, ByPath, FilesToAssign, Mask
from icefield.scan.deletes.targets import data_files, path_bounds, vectors, without_empty
from icefield.scan.partitions.united import partition_keys
from icefield.storage import FileIO
from icefield.types.arrow.equality import Ints

_NONE: Final = np.zeros(0, np.int64)


class DeleteIndex:
    """The delete files of a snapshot, indexed for lookups of many data files at once.

    ``entries`` are live entries of delete manifests, read with ``DELETE_STATISTICS``; ``unpartitioned`` are the ids
    of the specs without partitions. Raises ``InvalidMetadata`` for two deletion vectors of one data file.
    """

    def __init__(self, entries: Iterable[ManifestEntries], unpartitioned: Collection[int]) -> None:
        self._files = ScanDeletes([part for part in entries if len(part)])
        self._whole: dict[Hashable, AssignedDeletes | None] = {}
        self._partitions: dict[tuple[Hashable, ...], int] = {}
        self._global: ByAge | None = None
        self._equality: ByAge | None = None
        self._unbounded: ByAge | None = None
        self._bounded: ByBounds | None = None
        self._by_path: ByPath | None = None
        if len(self._files):
            self._build(frozenset(unpartitioned))

    def __len__(self) -> int:
        return len(self._files)

    def assign(self, data: ManifestEntries) -> AssignedDeletes | None:
        """The delete files that apply to each of some data files of one spec; None when none applies to any."""
        return self.assign_all([data])[0]

    def assign_all(self, parts: Sequence[ManifestEntries], whole: Sequence[bool] = ()) -> list[AssignedDeletes | None]:
        """Like ``assign``, for several manifests at once, because the fixed cost of a lookup exceeds its cost per file.

        ``whole`` says which parts have all files of their manifests; the assignments of these parts are cached.
        """
        keys = [
            (part.manifest.manifest_path, part.manifest.sequence_number) if kept else None
            for part, kept in zip(parts, whole or [False] * len(parts), strict=True)
        ]
        new = [place for place, key in enumerate(keys) if key is None or key not in self._whole]
        made = dict(zip(new, self._assigned([parts[place] for place in new]), strict=True))
        self._whole.update((keys[place], one) for place, one in made.items() if keys[place] is not None)
        return [made[place] if place in made else self._whole[key] for place, key in enumerate(keys)]

    @property
    def has_equality_deletes(self) -> bool:
        """Whether the index has equality deletes."""
        return self._global is not None or self._equality is not None

    @property
    def nbytes(self) -> int:
        """The size in bytes of the files, their keys and their assignments, as if all objects were created."""
        assigned = sum(one.nbytes for one in self._whole.values() if one is not None)
        return self._files.nbytes + 200 * (len(self) + len(self._partitions) + len(self._whole)) + assigned

    def _assigned(self, parts: Sequence[ManifestEntries]) -> list[AssignedDeletes | None]:
        filled = [part for part in parts if len(part)] if len(self) else []
        if not filled:
            return [None] * len(parts)
        paths = [part.column(f.FILE_PATH) for part in filled]
        files = FilesToAssign(
            paths[0] if len(paths) == 1 else pa.concat_arrays(paths),
            np.concatenate([self._groups(part) for part in filled]),
            np.concatenate([_sequences(part) for part in filled]),
        )
        assigned = self._assign(files)
        bounds = np.cumsum([0, *map(len, parts)]).tolist()
        found = [assigned.part(start, stop) for start, stop in pairwise(bounds)]
        return [one if one.counts().any() else None for one in found]

    def _assign(self, files: FilesToAssign) -> AssignedDeletes:
        ranges = []
        if self._global is not None:
            ranges.append(self._global.find(FilesToAssign(files.paths, np.zeros_like(files.groups), files.sequences)))
        if self._equality is not None:
            ranges.append(self._equality.find(files))
        rows, found, with_vector = self._positions(files)
        if self._unbounded is not None:
            unbounded = self._unbounded.find(files)
            unbounded.ends = np.where(with_vector, unbounded.firsts, unbounded.ends)
            ranges.append(unbounded)
        offsets = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(files.groups)))))
        return AssignedDeletes(self._files, ranges, offsets, found)

    def _positions(self, files: FilesToAssign) -> tuple[Ints, Ints, Mask]:
        """Pairs of a data file and a position delete file, oldest first, and which files have a deletion vector."""
        with_vector = np.zeros(len(files.groups), bool)
        found = [one.find(files) for one in (self._bounded, self._by_path) if one is not None]
        if not found:
            return _NONE, _NONE, with_vector
        rows, numbers = (np.concatenate(part) for part in zip(*found, strict=True))
        is_vector = self._files.is_vector[numbers]
        if is_vector.any():
            with_vector[rows[is_vector]] = True
            kept = is_vector | ~with_vector[rows]
            rows, numbers = rows[kept], numbers[kept]
        order = np.lexsort((numbers, self._sequences[numbers], rows))
        return rows[order], numbers[order], with_vector

    def _build(self, unpartitioned: frozenset[int]) -> None:
        files = self._files
        self._sequences = np.concatenate([_sequences(part) for part in files.parts])
        groups = np.concatenate([self._groups(part, new=True) for part in files.parts])
        specs = np.repeat([part.spec_id for part in files.parts], [len(part) for part in files.parts])
        equality = np.asarray(files.column(f.CONTENT)) == DataFileContent.EQUALITY_DELETES
        is_global = equality & np.isin(specs, list(unpartitioned))
        self._global = self._by_age(is_global, np.zeros_like(groups), inclusive=False)
        self._equality = self._by_age(equality & ~is_global, groups, inclusive=False)
        files.is_vector = ~equality & vectors(files.column(f.FILE_FORMAT))
        referenced = without_empty(files.column(f.REFERENCED_DATA_FILE))
        self._check_vectors(referenced)
        low, high = path_bounds([*files.parts])
        named = data_files(files.is_vector, referenced, low, high)
        with_path = files.of_one_file = ~equality & np.asarray(pc.is_valid(named))
        bounded = ~equality & ~with_path & np.asarray(pc.or_(pc.is_valid(low), pc.is_valid(high)))
        self._unbounded = self._by_age(~equality & ~with_path & ~bounded, groups, inclusive=True)
        if with_path.any():
            rows = np.flatnonzero(with_path)
            paths = named.take(pa.array(rows))
            self._by_path = ByPath(rows, groups[rows], self._sequences[rows], paths)
        if bounded.any():
            rows = np.flatnonzero(bounded)
            low, high = low.take(pa.array(rows)), high.take(pa.array(rows))
            self._bounded = ByBounds(rows, groups[rows], self._sequences[rows], low, high)

    def _by_age(self, mask: Mask, groups: Ints, *, inclusive: bool) -> ByAge | None:
        rows = np.flatnonzero(mask)
        return ByAge(rows, groups[rows], self._sequences[rows], inclusive=inclusive) if len(rows) else None

    def _groups(self, part: ManifestEntries, *, new: bool = False) -> Ints:
        """The number of each file's partition; -1 for an unknown partition, unless ``new`` ones get a number."""
        numbers = np.zeros(len(part), np.int64)
        keys: list[tuple[Hashable, ...]] = [(part.spec_id,)]
        if part.partition.type.num_fields:
            numbers, examples = tuple_groups(part.partition)
            keys = partition_keys(part.spec_id, part.partition, examples)
        known = self._partitions
        groups = [known.setdefault(key, len(known)) if new else known.get(key, -1) for key in keys]
        return np.array(groups, np.int64)[numbers]

    def _check_vectors(self, referenced: pa.StringArray) -> None:
        vectors = np.flatnonzero(self._files.is_vector)
        paths = referenced.take(pa.array(vectors))
        if paths.null_count:
            manifest = self._files.manifest_of(int(vectors[np.flatnonzero(np.asarray(paths.is_null()))[0]]))
            raise InvalidMetadata(f"{manifest} has a deletion vector that names no data file", location=manifest)
        counts = paths.value_counts()
        twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        if len(twice):
            place = int(np.flatnonzero(np.asarray(pc.equal(paths, twice[0])))[1])
            manifest = self._files.manifest_of(int(vectors[place]))
            raise InvalidMetadata(f"{manifest}: data file {twice[0]} has two deletion vectors", location=manifest)


def _sequences(entries: ManifestEntries) -> Ints:
    """The data sequence numbers. Raises ``InvalidMetadata`` when a live entry has none."""
    column = entries.column(f.SEQUENCE_NUMBER)
    if column.null_count:
        location = entries.manifest.manifest_path
        raise InvalidMetadata(f"manifest {location} has a live entry without a sequence number", location=location)
    return np.asarray(column)


def delete_index(metadata: TableMetadata, entries: Iterable[ManifestEntries]) -> DeleteIndex:
    """An index of delete files of a table."""
    return DeleteIndex(entries, [spec.spec_id for spec in metadata.partition_specs if spec.is_unpartitioned])


DELETE_INDEXES: Final[LruCache[Hashable, DeleteIndex]] = decoded_cache(64 << 20)
"""Indexes of all live entries of their manifests, up to a size limit."""


def index_key(
    io: FileIO, metadata: TableMetadata, manifests: Sequence[ManifestFile], *others: Hashable
) -> Hashable | None:
    """The cache key for an index of delete manifests; None if caching is off.

    ``others`` are the other inputs of the index: the schema, and the columns to read.
    """
    scope = cache_scope(io)
    if scope is None or not MANIFESTS.capacity:
        return None
    listed = tuple((io.resolve(one.manifest_path), one.sequence_number, one.partition_spec_id) for one in manifests)
    return (scope, metadata.location, metadata.table_uuid, listed, *others)


def kept_index(key: Hashable | None, *, filtered: bool) -> DeleteIndex | None:
    """The cached index of a key. A filtered scan gets none with equality deletes, since it needs only some of these."""
    found = None if key is None else DELETE_INDEXES.get(key)
    return None if found is None or (filtered and found.has_equality_deletes) else found
