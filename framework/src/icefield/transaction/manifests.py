"""The manifests of a snapshot: new for new files, rewritten where files are removed, or merged.

Each manifest is written once for an action and used again by all of its attempts, since the sequence numbers of its
entries are null and inherited. So a retry writes a manifest list and no manifest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Final
from uuid import uuid4

import numpy as np

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
from icefield.transaction.branch_head import Head

Numbers = int | Mapping[tuple[str, int | None], int]
"""A data sequence number of all files, or one by location and, for deletion vectors, offset."""

# The number of files that are written between two checks of the manifest's size.
_FILES_AT_ONCE: Final = 2_000


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
class _ManifestTarget:
    """The snapshot and the base that manifests are written for."""

    base: TableMetadata
    context: ActionContext
    snapshot_id: int


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
        self._uuid = uuid4()
        self._numbers = count()
        self._made: dict[Any, tuple[ManifestFile, ...]] = {}
        self._removed: dict[Any, list[ManifestEntries]] = {}
        self._used: set[Any] = set()
        self._target: _ManifestTarget | None = None

    @property
    def uuid(self) -> str:
        """The marker in the names of this action's files."""
        return str(self._uuid)

    def begin(self, base: TableMetadata, context: ActionContext, snapshot_id: int) -> None:
        """Begin an attempt."""
        self._target = _ManifestTarget(base, context, snapshot_id)
        self._used.clear()

    def finish(self) -> None:
        """End an attempt: manifests that it did not use are retired, and deleted unless a later attempt needs them."""
        written = self._now.context.written
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
            # A group's files are the same on every attempt, or other files under other paths.
            names = tuple((file.file_path, file.content_offset) for file in members)
            numbered = [(number, members)] if not isinstance(number, Mapping) else _by_number(members, number)
            key = ("added", spec_id, content, tuple((one, len(some)) for one, some in numbered), names)
            write = partial(self._write_added, spec_id, content, numbered)
            made += self._once(key, write)
        return made

    def of_existing(
        self, key: Any, spec_id: int, content: ManifestContent, groups: Callable[[], Iterator[ManifestEntries]]
    ) -> list[ManifestFile]:
        """A manifest for each group of live entries of one spec and content, which are EXISTING from now on.

        ``key`` distinguishes the groups from other groups of this action. A manifest is published by a thread while the
        next one is encoded.
        """
        key = self._key("existing", key, spec_id, content)
        self._used.add(key)
        if key not in self._made:
            made: dict[Any, tuple[ManifestFile, ...]] = {}
            with closing(_Publishing(made, self._now.context.io)) as publishing:
                for number, entries in enumerate(groups()):
                    writer = self._writer(spec_id, content)
                    try:
                        writer.existing(entries)
                    except BaseException:
                        writer.abort()
                        raise
                    publishing.add(number, writer, at_once=False)
                publishing.finish()
            self._made[key] = tuple(manifest for number in sorted(made) for manifest in made[number])
        return [*self._made[key]]

    def of_work(
        self, key: Any, spec_id: int, content: ManifestContent, write: Callable[[ManifestForm], Iterable[ManifestFile]]
    ) -> list[ManifestFile]:
        """Like ``of_existing``, for manifests that ``write`` writes in the form that it is given."""
        key = self._key("existing", key, spec_id, content)
        self._used.add(key)
        if key not in self._made:
            form = self._form(spec_id, content)
            self._made[key] = tuple(write(replace(form, mark=f"{form.mark}-w{next(self._numbers)}")))
        return [*self._made[key]]

    def remaining(
        self,
        parts: Sequence[Remaining],
        new: int,
        *,
        merging: bool,
        removed: Callable[[ManifestEntries], None],
    ) -> list[ManifestFile]:
        """The manifests of a base that stay: unchanged, without removed entries, or merged by ``commit.manifest.*``.

        ``removed`` is called with the live entries that are removed, of one manifest each, without their statistics.
        ``new`` more manifests are about to join them. Manifests of different specs or contents are never mixed. The
        newest group waits until it has the minimum number of members; older groups are full, and merged at once.
        """
        if not merging:
            return self._rewritten([[part] for part in parts], removed)
        properties = self._now.base.properties
        target = get_int(properties, MANIFEST_TARGET_SIZE)
        at_least = get_int(properties, MANIFEST_MIN_COUNT_TO_MERGE)
        groups: dict[tuple[int, ManifestContent], list[Remaining]] = {}
        for part in parts:
            groups.setdefault((part.manifest.partition_spec_id, part.manifest.content), []).append(part)
        together: list[Sequence[Remaining]] = []
        for members in groups.values():
            bins = _packed(members, target)
            for position, members_of_bin in enumerate(bins):
                newest = position == len(bins) - 1
                if newest and len(members_of_bin) + new < at_least:
                    together += [[part] for part in members_of_bin]
                else:
                    together.append(members_of_bin)
        return self._rewritten(together, removed)

    def _rewritten(
        self, groups: Sequence[Sequence[Remaining]], removed: Callable[[ManifestEntries], None]
    ) -> list[ManifestFile]:
        """Write one manifest for each group: its live entries, with removed entries marked as deleted by this snapshot.

        Entries that an earlier snapshot deleted are dropped; the others are EXISTING from now on. A single manifest
        without removed entries stays itself. Manifests are read ahead, and a manifest is published by a thread while
        the next one is encoded.
        """
        keys = [
            None if len(group) == 1 and group[0].gone is None else self._key("rewritten", *(part.key for part in group))
            for group in groups
        ]
        missing = {
            key: group for key, group in zip(keys, groups, strict=True) if key is not None and key not in self._made
        }
        entries = self._read([part.manifest for group in missing.values() for part in group])
        with closing(_Publishing(self._made, self._now.context.io)) as publishing:
            for key, group in missing.items():
                first = group[0].manifest
                writer = self._writer(first.partition_spec_id, first.content)
                try:
                    self._removed[key] = [
                        gone for part in group if (gone := _carry(writer, next(entries), part.gone)) is not None
                    ]
                except BaseException:
                    writer.abort()
                    raise
                publishing.add(key, writer, at_once=len(missing) == 1)
            publishing.finish()
        for used in keys:
            if used is not None:
                self._used.add(used)
                for gone in self._removed[used]:
                    removed(gone)
        return [
            group[0].manifest if key is None else self._made[key][0] for key, group in zip(keys, groups, strict=True)
        ]

    def _read(self, manifests: Sequence[ManifestFile]) -> Iterator[ManifestEntries]:
        """The whole entries of manifests of the base, in their order, read ahead."""
        return Head(self._now.base, None, self._now.context.io).read(manifests, ALL_COLUMNS)

    @property
    def _now(self) -> _ManifestTarget:
        assert self._target is not None, "begin() was not called"
        return self._target

    def _key(self, *parts: Any) -> tuple[Any, ...]:
        # A manifest of an older version would lose its sequence numbers in a table that was upgraded meanwhile.
        return (*parts, self._now.base.format_version, self._now.snapshot_id)

    def _once(self, key: Any, write: Callable[[], Iterator[ManifestFile]]) -> tuple[ManifestFile, ...]:
        key = self._key(key)
        self._used.add(key)
        if key not in self._made:
            self._made[key] = tuple(write())
        return self._made[key]

    def _writer(self, spec_id: int, content: ManifestContent) -> ManifestWriter:
        form = self._form(spec_id, content)
        location = form.location(next(self._numbers))
        # Recorded before the write: if it fails half-way, nothing is left behind.
        self._now.context.written.add(location)
        return form.writer(location)

    def _form(self, spec_id: int, content: ManifestContent) -> ManifestForm:
        base, context = self._now.base, self._now.context
        spec = base.spec_by_id(spec_id)
        return ManifestForm(
            context.io,
            LocationProvider.from_metadata(base),
            f"{context.marker}{self._uuid}",
            spec,
            schema_of_spec(base, spec),
            base.format_version,
            self._now.snapshot_id,
            content,
            tuple(base.schemas),
        )

    def _write_added(
        self, spec_id: int, content: ManifestContent, numbered: Sequence[tuple[int | None, Sequence[DataFile]]]
    ) -> Iterator[ManifestFile]:
        target = get_int(self._now.base.properties, MANIFEST_TARGET_SIZE)
        parts = deque(
            (number, files[start : start + _FILES_AT_ONCE])
            for number, files in numbered
            for start in range(0, len(files), _FILES_AT_ONCE)
        )
        while parts:
            with self._writer(spec_id, content) as writer:
                _add(writer, *parts.popleft())
                while parts and writer.estimated_size < target:
                    _add(writer, *parts.popleft())
                manifest = writer.close()
            yield manifest


class _Publishing:
    """Publishes complete manifests by threads, while others are encoded."""

    def __init__(self, made: dict[Any, tuple[ManifestFile, ...]], io: FileIO) -> None:
        self._made = made
        self._workers = io.workers(waiting=True)
        self._pool: ThreadPoolExecutor | None = None
        self._pending: deque[tuple[Any, ManifestWriter, Future[ManifestFile]]] = deque()

    def add(self, key: Any, writer: ManifestWriter, *, at_once: bool) -> None:
        """Publish a manifest, ``at_once`` in this thread. Raises the error of an earlier publication."""
        if at_once:
            self._made[key] = (writer.close(),)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="icefield-manifest")
        self._pending.append((key, writer, self._pool.submit(writer.close)))
        if len(self._pending) > 2 * self._workers:
            self._settle()

    def finish(self) -> None:
        """Wait for all publications. Raises the error of one."""
        while self._pending:
            self._settle()

    def close(self) -> None:
        """Cancel waiting publications, and wait for running ones."""
        for _, writer, future in self._pending:
            if future.cancel():
                writer.abort()
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    def _settle(self) -> None:
        key, _, future = self._pending.popleft()
        self._made[key] = (future.result(),)


def _add(writer: ManifestWriter, number: int | None, files: Sequence[DataFile]) -> None:
    writer.add(files, data_sequence_number=number)


def _by_number(
    files: Sequence[DataFile], numbers: Mapping[tuple[str, int | None], int]
) -> list[tuple[int | None, list[DataFile]]]:
    """The files by data sequence number, oldest first; files without a number come last."""
    found: dict[int | None, list[DataFile]] = {}
    for file in files:
        found.setdefault(numbers.get((file.file_path, file.content_offset)), []).append(file)
    return sorted(found.items(), key=lambda each: (each[0] is None, each[0] or 0))


def _carry(
    writer: ManifestWriter, entries: ManifestEntries, gone: np.ndarray[Any, Any] | None
) -> ManifestEntries | None:
    """Write the live entries of a manifest, and return the removed ones."""
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
