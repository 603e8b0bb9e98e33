"""Finds files in the manifests of a head: by path, and by partition. Whole columns at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import InvalidArgument, ValidationFailed
from icefield.expressions import AlwaysTrue, BooleanExpression, BoundPredicate, Op, conjunction, disjunction
from icefield.manifest import schemas as f
from icefield.manifest.data_file import DataFile
from icefield.manifest.encoding import partition_array
from icefield.manifest.entries import ManifestEntries
from icefield.manifest.manifest_file import ManifestContent, ManifestFile
from icefield.partitioning.tuples import tuple_groups
from icefield.scan.planning.pruning import manifests_that_may_match
from icefield.transaction.head.branch_head import Head, Mask
from icefield.types import NestedField, UnknownType

# More values than these are represented by their range.
_MOST_VALUES: Final = 200


class NamedFiles:
    """A set of named files: by path alone, or with their partition, which saves reading other manifests.

    A deletion vector of a scan plan names this vector alone, not its whole Puffin file.
    """

    def __init__(self) -> None:
        self._files: dict[str, DataFile | None] = {}
        self._vectors: dict[tuple[str, int], DataFile] = {}

    def add(self, *files: DataFile | str) -> None:
        """Name files. Naming one twice is no error."""
        for file in files:
            path, known = (file, None) if isinstance(file, str) else (file.file_path, file)
            if not path:
                raise InvalidArgument("a file is named by its location, which is empty")
            if known is not None and known.is_deletion_vector and known.content_offset is not None:
                self._vectors[path, known.content_offset] = known
            else:
                self._files[path] = self._files.get(path) or known

    def __len__(self) -> int:
        return len(self._files) + len(self._vectors)

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def find(self, head: Head, contents: Iterable[ManifestContent] = ManifestContent) -> dict[int, Mask]:
        """Masks of the named live entries, by position of their manifest in the list."""
        if not len(self):
            return {}
        wanted = pa.array(self._files, pa.string())
        paths, offsets = ([key[at] for key in self._vectors] for at in (0, 1))
        vectors = _pairs(pa.array(paths, pa.string()), pa.array(offsets, pa.int64()))
        known = [file for file in (*self._files.values(), *self._vectors.values()) if file is not None]
        find = PartitionSet(head, known).manifests if len(known) == len(self) else head.live
        return head.find(
            [one for content in contents for one in find(content)],
            lambda entries: (
                np.asarray(pc.is_in(entries.column(f.FILE_PATH), value_set=wanted)) | _named_vectors(entries, vectors)
            ),
        )

    def require_all(self, head: Head, found: Mapping[int, Mask], what: str) -> None:
        """Raise ``ValidationFailed`` that names the files of this set that are not live any more."""
        # A Puffin file named by its path has an entry for each vector.
        shared = bool(self._files) and any(head.manifests[one].content is ManifestContent.DELETES for one in found)
        if not shared and sum(int(mask.sum()) for mask in found.values()) >= len(self):
            return
        live: set[tuple[str, int | None]] = set()
        read = head.read([head.manifests[position] for position in found])
        for mask, entries in zip(found.values(), read, strict=True):
            chosen = entries.filter(mask)
            paths, offsets = chosen.column(f.FILE_PATH).to_pylist(), chosen.column(f.CONTENT_OFFSET).to_pylist()
            live.update(zip(paths, offsets, strict=True))
            live.update((path, None) for path in paths)
        missing = [path for path in self._files if (path, None) not in live]
        missing += [path for path, offset in self._vectors if (path, offset) not in live]
        if not missing:
            return
        snapshot = head.snapshot.snapshot_id if head.snapshot is not None else None
        raise ValidationFailed(
            f"{what}: {len(missing)} of {len(self)} files are not in snapshot {snapshot} (any more): "
            f"{', '.join(missing[:5])}{', ...' if len(missing) > 5 else ''}; load the table again",
            files=tuple(missing[:100]),
            snapshot_id=snapshot,
        )


def _named_vectors(entries: ManifestEntries, vectors: pa.StructArray) -> Mask:
    """A mask of the entries that are among some deletion vectors, each a path and an offset."""
    paths, offsets = entries.column(f.FILE_PATH), entries.column(f.CONTENT_OFFSET)
    mask = np.asarray(pc.is_in(paths, value_set=vectors.field(0))).copy()
    if mask.any():
        chosen = pa.array(mask)
        mask[mask] = same_tuples(_pairs(paths.filter(chosen), offsets.filter(chosen)), vectors)
    return mask


def _pairs(paths: pa.Array, offsets: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays([paths, offsets], ["path", "offset"])


class PartitionSet:
    """A set of partitions, each of one spec, that finds their entries in manifests.

    Floats are equal when their bits are, with NaN normalised (PART-24); values of unknown transforms count too.
    """

    def __init__(self, head: Head, files: Iterable[DataFile]) -> None:
        """The partitions of some files."""
        self._head = head
        self._tuples: dict[int, list[tuple[Any, ...]]] = {}
        self._arrays: dict[int, pa.StructArray] = {}
        for file in files:
            self._tuples.setdefault(file.spec_id, []).append(file.partition)

    def manifests(self, content: ManifestContent) -> list[tuple[int, ManifestFile]]:
        """The manifests, with their positions, that may hold files of a named partition."""
        live = self._head.live(content)
        of_spec: dict[int, list[int]] = {}
        for position, manifest in live:
            if manifest.partition_spec_id in self._tuples:
                of_spec.setdefault(manifest.partition_spec_id, []).append(position)
        chosen: set[int] = set()
        for spec_id, positions in of_spec.items():
            manifest_list = self._head.manifest_list
            assert manifest_list is not None  # it has live manifests
            kind = self._head.partition_type(spec_id)
            rows = np.array(positions, np.int64)
            chosen.update(rows[manifests_that_may_match(manifest_list, rows, kind, self._filter(spec_id))].tolist())
        return [(position, manifest) for position, manifest in live if position in chosen]

    def _filter(self, spec_id: int) -> BooleanExpression:
        columns = zip(*self._tuples[spec_id], strict=True)
        fields = self._head.partition_type(spec_id).fields
        return conjunction([_one_of(field, values) for field, values in zip(fields, columns, strict=False)])

    def read(self, manifests: Sequence[ManifestFile]) -> Iterator[ManifestEntries]:
        """The entries of manifests, in their order."""
        return self._head.read(manifests)

    def may_match(self, entries: ManifestEntries) -> Mask:
        """A mask of the entries in a named partition."""
        tuples = self._tuples.get(entries.spec_id)
        if tuples is None:
            return np.zeros(len(entries), bool)
        if entries.spec_id not in self._arrays:
            self._arrays[entries.spec_id] = partition_array(tuples, entries.partition.type)
        return same_tuples(entries.partition, self._arrays[entries.spec_id])


def same_tuples(partition: pa.StructArray, named: pa.StructArray) -> Mask:
    """A mask of the tuples that occur in another column of the same type."""
    numbers, _ = tuple_groups(pa.concat_arrays([named, partition.cast(named.type)]))
    return np.isin(numbers[len(named) :], numbers[: len(named)])


def _one_of(field: NestedField, values: Collection[Any]) -> BooleanExpression:
    """A bound predicate that each of the values passes: exactly the values, or their range if there are many."""
    path = (field.name,)
    known = {value for value in values if value is not None}
    if any(value != value for value in known) or isinstance(field.field_type, UnknownType):
        return AlwaysTrue()
    parts: list[BooleanExpression] = []
    if len(known) != len(set(values)):
        parts.append(BoundPredicate(Op.IS_NULL, field, path))
    if len(known) > _MOST_VALUES:
        low = BoundPredicate(Op.GT_EQ, field, path, min(known))
        parts.append(conjunction([low, BoundPredicate(Op.LT_EQ, field, path, max(known))]))
    elif known:
        parts.append(BoundPredicate(Op.IN, field, path, tuple(known)))
    return disjunction(parts)
