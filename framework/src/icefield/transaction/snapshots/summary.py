"""Counts the files that a snapshot adds and removes, for its summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.manifest import schemas as f
from icefield.manifest.data_file import DataFile, DataFileContent, EntryStatus
from icefield.manifest.entries import ManifestEntries, partition_tuples, take
from icefield.metadata import TableMetadata
from icefield.metadata.properties import WRITE_PARTITION_SUMMARY_LIMIT, get_int
from icefield.metadata.snapshots import TOTALS, Operation, SummaryBuilder
from icefield.partitioning.spec import normalised_key
from icefield.partitioning.tuples import tuple_groups


class ChangeCounter:
    """Counts files into a ``SummaryBuilder``: added files one by one, removed files by column."""

    def __init__(self, base: TableMetadata, strings: Mapping[str, str]) -> None:
        self.builder = SummaryBuilder()
        for name, value in strings.items():
            self.builder.set(name, value)
        self._base = base
        self.partition_limit = get_int(base.properties, WRITE_PARTITION_SUMMARY_LIMIT)

    def added(self, files: Iterable[DataFile]) -> None:
        """Count files that the snapshot adds."""
        for file in files:
            is_vector = file.is_deletion_vector
            self.builder.touch([(file.spec_id, normalised_key(file.partition))])
            self.builder.count(
                added=True,
                content=int(file.content),
                files=1,
                records=file.record_count,
                size=(file.content_size_in_bytes or 0) if is_vector else file.file_size_in_bytes,
                dvs=int(is_vector),
                path=self._path(file.spec_id, file.partition),
            )

    def removed(self, entries: ManifestEntries) -> None:
        """Count files that the snapshot removes."""
        contents = np.asarray(entries.column(f.CONTENT))
        for partition, members in self._by_partition(entries):
            for content in DataFileContent:
                mask = contents == content
                if members is not None:
                    mask &= members
                if mask.any():
                    _count(self.builder, entries, content, mask, partition)
        for values in distinct_partitions(entries.partition):
            self.builder.touch([(entries.spec_id, normalised_key(values))])

    def _by_partition(self, entries: ManifestEntries) -> Iterator[tuple[str, np.ndarray[Any, Any] | None]]:
        """All entries at once, unless the summary is to state them by partition."""
        if not self.partition_limit:
            yield "", None
            return
        numbers, rows = tuple_groups(entries.partition)
        for number, values in enumerate(partition_tuples(take(entries.partition, pa.array(rows)))):
            yield self._path(entries.spec_id, values), numbers == number

    def _path(self, spec_id: int, values: tuple[Any, ...]) -> str:
        if not self.partition_limit:
            return ""
        return self._base.spec_by_id(spec_id).partition_path(self._base.schema(), values)


def totals_of(manifests: Iterable[ManifestEntries]) -> dict[str, str]:
    """The totals of a summary, counted in the live entries of all manifests of a snapshot."""
    builder = SummaryBuilder()
    for entries in manifests:
        contents, live = np.asarray(entries.column(f.CONTENT)), entries.status() != EntryStatus.DELETED
        for content in DataFileContent:
            mask = live & (contents == content)
            if mask.any():
                _count(builder, entries, content, mask, added=True)
    return {name: value for name, value in builder.build(Operation.REPLACE, None).items() if name in TOTALS}


def _count(
    builder: SummaryBuilder,
    entries: ManifestEntries,
    content: DataFileContent,
    mask: np.ndarray[Any, Any],
    path: str = "",
    *,
    added: bool = False,
) -> None:
    dvs, sizes = 0, np.asarray(entries.column(f.FILE_SIZE))
    if content is DataFileContent.POSITION_DELETES:
        is_vector = np.asarray(pc.equal(pc.utf8_lower(entries.column(f.FILE_FORMAT)), "puffin"))
        dvs = int(np.count_nonzero(is_vector & mask))
        # Many vectors share a Puffin file, so its size is not the size of a vector.
        sizes = np.where(is_vector, np.asarray(pc.fill_null(entries.column(f.CONTENT_SIZE), 0)), sizes)
    builder.count(
        added=added,
        content=int(content),
        files=int(np.count_nonzero(mask)),
        records=int(np.maximum(np.asarray(entries.column(f.RECORD_COUNT)), 0)[mask].sum()),
        size=int(sizes[mask].sum()),
        dvs=dvs,
        path=path,
    )


def distinct_partitions(partition: pa.StructArray) -> list[tuple[Any, ...]]:
    """The partition tuples without repetition."""
    _, rows = tuple_groups(partition)
    return partition_tuples(take(partition, pa.array(rows)))
