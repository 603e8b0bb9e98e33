"""Finding files in the manifests of a head: by path, and by partition. Whole columns at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield.errors import InvalidArgument, ValidationFailed
from icefield.manifest import schemas as f
from icefield.manifest.data_file import DataFile, EntryStatus
from icefield.manifest.encoding import partition_array
from icefield.manifest.entries import ManifestEntries
from icefield.manifest.manifest_file import ManifestContent, ManifestFile
from icefield.transaction.head import Head

Mask = np.ndarray[Any, Any]


class FileSet:
    """Files that are named: by path alone, or with what is known of their partition, which spares reading manifests."""

    def __init__(self) -> None:
        self._files: dict[str, DataFile | None] = {}

    def add(self, file: DataFile | str) -> None:
        """Name a file. Naming it twice is no error."""
        path = file if isinstance(file, str) else file.file_path
        if not path:
            raise InvalidArgument("a file is named by its location, which is empty")
        known = None if isinstance(file, str) else file
        self._files[path] = self._files.get(path) or known

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, path: str) -> bool:
        return path in self._files

    @property
    def paths(self) -> Collection[str]:
        """The paths."""
        return self._files.keys()

    def find(self, head: Head, contents: Iterable[ManifestContent] = ManifestContent) -> dict[int, Mask]:
        """Which live entries of which manifests (by position in the list) are named."""
        found: dict[int, Mask] = {}
        if not self._files:
            return found
        wanted = pa.array(self._files, pa.string())
        partitions = self._partitions(head)
        for content in contents:
            for position, manifest in head.live(content):
                if partitions is not None and not _may_hold(head, manifest, partitions):
                    continue
                entries = head.entries(manifest)
                mask = np.asarray(pc.is_in(entries.column(f.FILE_PATH), value_set=wanted))
                mask = mask & (entries.status() != EntryStatus.DELETED)
                if mask.any():
                    found[position] = mask
        return found

    def require_all(self, head: Head, found: Mapping[int, Mask], what: str) -> None:
        """Raise ``ValidationFailed`` that names the files of this set that are not live any more."""
        if sum(int(mask.sum()) for mask in found.values()) >= len(self._files):
            return
        live: set[str] = set()
        for position, mask in found.items():
            entries = head.entries(head.manifests[position])
            live.update(entries.column(f.FILE_PATH).filter(pa.array(mask)).to_pylist())
        missing = [path for path in self._files if path not in live]
        snapshot = head.snapshot.snapshot_id if head.snapshot is not None else None
        raise ValidationFailed(
            f"{what}: {len(missing)} of {len(self._files)} files are not in snapshot {snapshot} (any more): "
            f"{', '.join(missing[:5])}{', ...' if len(missing) > 5 else ''}; load the table again and repeat the change",
            files=tuple(missing[:100]),
            snapshot_id=snapshot,
        )

    def _partitions(self, head: Head) -> PartitionSet | None:
        """The partitions of the files; None when one is not known."""
        partitions = PartitionSet(head)
        for file in self._files.values():
            if file is None:
                return None
            partitions.add(file.spec_id, file.partition)
        return partitions


class PartitionSet:
    """Partitions, each of one spec; tells which entries of a manifest lie in one of them.

    Floats are equal when their bits are, with NaN normalised (PART-24); values of unknown transforms count too.
    """

    def __init__(self, head: Head) -> None:
        self._head = head
        self._tuples: dict[int, list[tuple[Any, ...]]] = {}
        self._arrays: dict[int, pa.StructArray] = {}

    def add(self, spec_id: int, values: tuple[Any, ...]) -> None:
        """Name a partition."""
        self._tuples.setdefault(spec_id, []).append(values)
        self._arrays.pop(spec_id, None)

    def has_spec(self, spec_id: int) -> bool:
        """Whether any partition of that spec is named."""
        return spec_id in self._tuples

    def of_spec(self, spec_id: int, like: pa.StructType) -> pa.StructArray:
        """The partitions of one spec as a column."""
        if spec_id not in self._arrays:
            self._arrays[spec_id] = partition_array(self._tuples.get(spec_id, []), like)
        return self._arrays[spec_id]

    def mask(self, entries: ManifestEntries) -> Mask:
        """Which entries lie in a named partition."""
        if not self.has_spec(entries.spec_id):
            return np.zeros(len(entries), bool)
        named = self.of_spec(entries.spec_id, entries.partition.type)
        return same_tuples(entries.partition, named)


def same_tuples(partition: pa.StructArray, named: pa.StructArray) -> Mask:
    """Which tuples of one column occur in another of the same type."""
    rows = np.zeros(len(partition), np.int64)
    keys = np.zeros(len(named), np.int64)
    inside = np.ones(len(partition), bool)
    for position in range(named.type.num_fields):
        values, others = comparable(partition.field(position)), comparable(named.field(position))
        distinct = others.unique()
        codes = np.asarray(pc.fill_null(pc.index_in(values, value_set=distinct), -1))
        inside &= codes >= 0
        # Codes so far are renumbered, so that the product never grows beyond the pairs that occur.
        pairs = keys * len(distinct) + np.asarray(pc.index_in(others, value_set=distinct))
        found, keys = np.unique(pairs, return_inverse=True)
        rows = np.searchsorted(found, pairs_of := rows * len(distinct) + np.maximum(codes, 0))
        rows = np.minimum(rows, max(len(found) - 1, 0))
        inside &= (found[rows] == pairs_of) if len(found) else False
    return inside & (len(named) > 0)


def comparable(values: pa.Array) -> pa.Array:
    """Partition values in a form in which equal bits mean equal values."""
    if pa.types.is_null(values.type):
        return values.cast(pa.int8())
    if not pa.types.is_floating(values.type):
        return values
    numbers = np.asarray(values.cast(pa.float64()).fill_null(0.0), np.float64).copy()
    numbers[np.isnan(numbers)] = np.nan
    return pa.array(numbers.view(np.int64), mask=np.asarray(values.is_null()))


def _may_hold(head: Head, manifest: ManifestFile, partitions: PartitionSet) -> bool:
    return partitions.has_spec(manifest.partition_spec_id)
