"""The manifests of a snapshot: new for new files, rewritten where files are removed, or merged.

Each manifest is written once for an action and used again by all of its attempts, since the sequence numbers of its
entries are null and inherited. So a retry writes a manifest list and no manifest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Final
from uuid import uuid4

import numpy as np

from icefield.base.concurrency import map_ahead
from icefield.manifest.columns import ALL_COLUMNS, PLAN_COLUMNS
from icefield.manifest.data_file import DataFile, DataFileContent, EntryStatus
from icefield.manifest.entries import ManifestEntries
from icefield.manifest.manifest_file import ManifestContent, ManifestFile
from icefield.manifest.writer import ManifestWriter
from icefield.metadata import TableMetadata
from icefield.metadata.properties import MANIFEST_MIN_COUNT_TO_MERGE, MANIFEST_TARGET_SIZE, get_int
from icefield.metadata.table_metadata import schema_of_spec
from icefield.partitioning import PartitionSpec
from icefield.schema import Schema
from icefield.storage import FileIO, LocationProvider
from icefield.transaction.action import ActionContext
from icefield.transaction.head.branch_head import Head

Numbers = int | Mapping[tuple[str, int | None], int]
"""A data sequence number of all files, or one by location and, for deletion vectors, offset."""

# The number of full manifests that one commit merges. The first commit to a table with thousands of small manifests
# would otherwise rewrite them all, while others wait or overtake it; later commits merge the others.
_MERGED_AT_ONCE: Final = 4

# The number of files that are written between two checks of the manifest's size.
_FILES_AT_ONCE: Final = 2_000

# The most entries of several manifests that are encoded together.
_ENTRIES_AT_ONCE: Final = 2_000


@dataclass(frozen=True, slots=True)
class Remaining:
    """A manifest of the base, with a mask ``gone`` of the entries to remove; None removes nothing."""

    manifest: ManifestFile
    gone: np.ndarray[Any, Any] | None = None

    @property
    def key(self) -> tuple[str, int, bytes]:
        """A key that identifies the manifest without its removed entries."""
        gone = b"" if self.gone is None else self.gone.tobytes()
        return self.manifest.manifest_path, self.manifest.sequence_number, gone


@dataclass(frozen=True, slots=True)
class ManifestForm:
    """The settings of new manifests of one spec and content. Picklable. ``mark`` is part of their names."""

    io: FileIO
    locations: LocationProvider
    mark: str
    spec: PartitionSpec
    schema: Schema
    format_version: int
    snapshot_id: int
    content: ManifestContent
    schemas: tuple[Schema, ...]

    def location(self, number: int | str) -> str:
        """The location of a manifest."""
        return self.locations.metadata_location(f"{self.mark}-m{number}.avro")

    def writer(self, location: str) -> ManifestWriter:
        """A writer of one manifest."""
        return ManifestWriter(
            self.io,
            location,
            self.spec,
            self.schema,
            self.format_version,
            self.snapshot_id,
            self.content,
            schemas=self.schemas,
        )


class ManifestAssembler:
    """Writes the manifests that an action needs, each once, and accounts for manifests that an attempt does not use."""

    def __init__(self) -> None:
        self.uuid = str(uuid4())
        """The marker in the names of this action's files."""
        self._numbers = count()
        self._made: dict[Any, list[ManifestFile]] = {}
        self._removed: dict[Any, list[ManifestEntries]] = {}
        self._used: set[Any] = set()

    def begin(self, base: TableMetadata, context: ActionContext, snapshot_id: int) -> None:
        """Begin an attempt."""
        self._base, self._context, self._snapshot_id = base, context, snapshot_id
        self._used.clear()

    def finish(self) -> None:
        """End an attempt: manifests that it did not use are retired, and deleted unless a later attempt needs them."""
        written = self._context.written
        for key, manifests in self._made.items():
            note = written.add if key in self._used else written.retire
            note(*(manifest.manifest_path for manifest in manifests))

    def of_added(self, files: Sequence[DataFile], number: Numbers | None = None) -> list[ManifestFile]:
        """Manifests for new files: each of one spec and one content, and of about the target size.

        ``number`` is the data sequence number of files that must stay older than commits made since their rows were
        read; other files take the number of the commit that adds them.
        """
        groups: dict[tuple[int, ManifestContent], list[DataFile]] = {}
        for file in files:
            content = ManifestContent.DATA if file.content is DataFileContent.DATA else ManifestContent.DELETES
            groups.setdefault((file.spec_id, content), []).append(file)
        made: list[ManifestFile] = []
        for (spec_id, content), members in groups.items():
            # The paths identify the files of a group: an attempt with other files has other paths.
            names = tuple((file.file_path, file.content_offset) for file in members)
            numbered = [(number, members)] if not isinstance(number, Mapping) else _by_number(members, number)
            key = ("added", spec_id, content, tuple((one, len(some)) for one, some in numbered), names)
            made += self._once(key, partial(self._write_added, spec_id, content, numbered))
        return made

    def of_existing(
        self,
        key: Any,
        spec_id: int,
        content: ManifestContent,
        groups: Callable[[], Iterator[Sequence[ManifestEntries]]],
    ) -> list[ManifestFile]:
        """A manifest for each group of live entries of one spec and content, which are EXISTING from now on.

        A group is given in pieces, which are written one after another.
        ``key`` distinguishes the groups from other groups of this action.
        """

        def write() -> Iterator[ManifestFile]:
            return self._published((spec_id, content, partial(_fill, pieces=pieces)) for pieces in groups())

        return self._once(("existing", key, spec_id, content), write)

    def of_work(
        self, key: Any, spec_id: int, content: ManifestContent, write: Callable[[ManifestForm], Iterable[ManifestFile]]
    ) -> list[ManifestFile]:
        """Like ``of_existing``, but ``write`` receives the form of the manifests and writes them."""
        form = self._form(spec_id, content)
        return self._once(
            ("existing", key, spec_id, content),
            lambda: write(replace(form, mark=f"{form.mark}-w{next(self._numbers)}")),
        )

    def remaining(
        self,
        parts: Sequence[Remaining],
        new: int,
        *,
        merging: bool,
        removed: Callable[[ManifestEntries], None],
    ) -> list[ManifestFile]:
        """The manifests of a base that stay: unchanged, without removed entries, or merged by ``commit.manifest.*``.

        ``removed`` is called with the live entries that are removed, without their statistics.
        ``new`` is the number of new manifests that will join them. Manifests of different specs or contents are never
        mixed. The newest group waits until it has the minimum number of members. Older groups are full; a commit
        merges a few of them, the oldest first.
        """
        if not merging:
            return self._rewritten([[part] for part in parts], removed)
        properties = self._base.properties
        target = get_int(properties, MANIFEST_TARGET_SIZE)
        at_least = get_int(properties, MANIFEST_MIN_COUNT_TO_MERGE)
        groups: dict[tuple[int, ManifestContent], list[Remaining]] = {}
        for part in parts:
            groups.setdefault((part.manifest.partition_spec_id, part.manifest.content), []).append(part)
        together: list[Sequence[Remaining]] = []
        for members in groups.values():
            bins = _packed(members, target)
            merged = 0
            for position, members_of_bin in enumerate(bins):
                newest = position == len(bins) - 1
                waits = len(members_of_bin) + new < at_least if newest else merged == _MERGED_AT_ONCE
                if waits:
                    together += [[part] for part in members_of_bin]
                else:
                    together.append(members_of_bin)
                    merged += len(members_of_bin) > 1
        return self._rewritten(together, removed)

    def _rewritten(
        self, groups: Sequence[Sequence[Remaining]], removed: Callable[[ManifestEntries], None]
    ) -> list[ManifestFile]:
        """Write one manifest for each group: its live entries, with removed entries marked as deleted by this snapshot.

        Entries that an earlier snapshot deleted are dropped; the others are EXISTING from now on. A single manifest
        without removed entries stays as it is.
        """
        keys = [
            None if len(group) == 1 and group[0].gone is None else self._key("rewritten", *(part.key for part in group))
            for group in groups
        ]
        missing = {
            key: group for key, group in zip(keys, groups, strict=True) if key is not None and key not in self._made
        }
        parts = [part.manifest for group in missing.values() for part in group]
        entries = Head(self._base, None, self._context.io).read(parts, ALL_COLUMNS, rewriting=True)

        def fill(writer: ManifestWriter, key: Any) -> None:
            removals = [_carry(writer, *joined) for joined in _joined(entries, missing[key])]
            self._removed[key] = [gone for gone in removals if gone is not None]

        made = self._published(
            (group[0].manifest.partition_spec_id, group[0].manifest.content, partial(fill, key=key))
            for key, group in missing.items()
        )
        self._made.update(zip(missing, ([manifest] for manifest in made), strict=True))
        for used in keys:
            if used is not None:
                self._used.add(used)
                for gone in self._removed[used]:
                    removed(gone)
        return [
            group[0].manifest if key is None else self._made[key][0] for key, group in zip(keys, groups, strict=True)
        ]

    def _published(
        self, parts: Iterable[tuple[int, ManifestContent, Callable[[ManifestWriter], None]]]
    ) -> Iterator[ManifestFile]:
        """Manifests of a spec and a content, each filled by a function. Threads publish some while others are encoded.

        After an error, no manifest stays that was not returned yet.
        """
        begun: deque[ManifestWriter] = deque()

        def encoded() -> Iterator[ManifestWriter]:
            for spec_id, content, fill in parts:
                begun.append(self._writer(spec_id, content))
                fill(begun[-1])
                yield begun[-1]

        try:
            for manifest in map_ahead(encoded(), ManifestWriter.close, self._context.io.workers(waiting=True)):
                begun.popleft()
                yield manifest
        except BaseException:
            for writer in begun:
                writer.abort()
            raise

    def _key(self, *parts: Any) -> tuple[Any, ...]:
        # A manifest of an older version would lose its sequence numbers in a table that was upgraded meanwhile.
        return (*parts, self._base.format_version, self._snapshot_id)

    def _once(self, key: Any, write: Callable[[], Iterable[ManifestFile]]) -> list[ManifestFile]:
        key = self._key(key)
        self._used.add(key)
        if key not in self._made:
            self._made[key] = [*write()]
        return self._made[key]

    def _writer(self, spec_id: int, content: ManifestContent) -> ManifestWriter:
        form = self._form(spec_id, content)
        location = form.location(next(self._numbers))
        # Recorded before the write: if it fails half-way, nothing is left behind.
        self._context.written.add(location)
        return form.writer(location)

    def _form(self, spec_id: int, content: ManifestContent) -> ManifestForm:
        base, context = self._base, self._context
        spec = base.spec_by_id(spec_id)
        return ManifestForm(
            context.io,
            LocationProvider.from_metadata(base),
            f"{context.marker}{self.uuid}",
            spec,
            schema_of_spec(base, spec),
            base.format_version,
            self._snapshot_id,
            content,
            tuple(base.schemas),
        )

    def _write_added(
        self, spec_id: int, content: ManifestContent, numbered: Sequence[tuple[int | None, Sequence[DataFile]]]
    ) -> Iterator[ManifestFile]:
        target = get_int(self._base.properties, MANIFEST_TARGET_SIZE)
        parts = deque(
            (number, files[start : start + _FILES_AT_ONCE])
            for number, files in numbered
            for start in range(0, len(files), _FILES_AT_ONCE)
        )

        def fill(writer: ManifestWriter) -> None:
            is_empty = True
            while parts and (is_empty or writer.estimated_size < target):
                number, files = parts.popleft()
                writer.add(files, data_sequence_number=number)
                is_empty = False

        def manifests() -> Iterator[tuple[int, ManifestContent, Callable[[ManifestWriter], None]]]:
            while parts:
                yield spec_id, content, fill

        return self._published(manifests())


def _fill(writer: ManifestWriter, pieces: Sequence[ManifestEntries]) -> None:
    for entries in pieces:
        writer.existing(entries)


def _by_number(
    files: Sequence[DataFile], numbers: Mapping[tuple[str, int | None], int]
) -> list[tuple[int | None, list[DataFile]]]:
    """The files by data sequence number, oldest first; files without a number come last."""
    found: dict[int | None, list[DataFile]] = {}
    for file in files:
        found.setdefault(numbers.get((file.file_path, file.content_offset)), []).append(file)
    return sorted(found.items(), key=lambda each: (each[0] is None, each[0] or 0))


def _joined(
    entries: Iterator[ManifestEntries], parts: Sequence[Remaining]
) -> Iterator[tuple[ManifestEntries, np.ndarray[Any, Any] | None]]:
    """The entries of the parts with the mask of the removed ones; small manifests together, to be encoded at once."""
    waiting: list[tuple[ManifestEntries, Remaining]] = []
    size = 0

    def together() -> tuple[ManifestEntries, np.ndarray[Any, Any] | None]:
        gone = None
        if any(part.gone is not None for _, part in waiting):
            masks = [np.zeros(len(one), bool) if part.gone is None else part.gone for one, part in waiting]
            gone = np.concatenate(masks)
        return ManifestEntries.concat([one for one, _ in waiting]), gone

    for part in parts:
        one = next(entries)
        # The types of a partition differ if no schema of the table has its source any more.
        if waiting and (size + len(one) > _ENTRIES_AT_ONCE or waiting[0][0].partition.type != one.partition.type):
            yield together()
            waiting, size = [], 0
        waiting.append((one, part))
        size += len(one)
    if waiting:
        yield together()


def _carry(
    writer: ManifestWriter, entries: ManifestEntries, gone: np.ndarray[Any, Any] | None
) -> ManifestEntries | None:
    """Write the live entries, and return the removed ones."""
    live = entries.status() != EntryStatus.DELETED
    if gone is None:
        writer.existing(entries.filter(live))
        return None
    deleted = entries.filter(live & gone)
    writer.existing(entries.filter(live & ~gone))
    writer.delete(deleted)
    return deleted.select(PLAN_COLUMNS)


def _packed(parts: Sequence[Remaining], target: int) -> list[list[Remaining]]:
    """Group manifests in order of age, oldest first, with at most ``target`` bytes in a group."""
    bins: list[list[Remaining]] = []
    weight = 0
    for part in sorted(parts, key=lambda part: part.manifest.sequence_number):
        if not bins or weight + part.manifest.manifest_length > target:
            bins.append([])
            weight = 0
        bins[-1].append(part)
        weight += part.manifest.manifest_length
    return bins
